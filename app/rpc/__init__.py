"""A message in, a message out: names bound to handlers, results and exceptions put where the IDL wants them."""

from app.rpc.binding import BindingError, bind
from app.rpc.call import Call, Dialect
from app.rpc.processor import Processor, Reply, Unavailable

__all__ = ["BindingError", "Call", "Dialect", "Processor", "Reply", "Unavailable", "bind"]
