"""A message in, a message out: names bound to handlers, results and exceptions put where the IDL wants them."""

from app.rpc.binding import BindingError, bind
from app.rpc.call import Call, Dialect, Waiting
from app.rpc.processor import Around, Failed, MessageProcessor, Processor, Reply, Unavailable
from app.rpc.releases import Releases
from app.rpc.repeatable import Deferred, RepeatableProcessor

__all__ = [
    "Around",
    "Deferred",
    "BindingError",
    "Call",
    "Dialect",
    "Failed",
    "MessageProcessor",
    "Processor",
    "Releases",
    "RepeatableProcessor",
    "Reply",
    "Unavailable",
    "Waiting",
    "bind",
]
