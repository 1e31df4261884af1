"""A message in, a message out: names bound to handlers, results and exceptions put where the IDL wants them."""

from app.rpc.binding import BindingError, bind
from app.rpc.call import Call, Dialect, Waiting
from app.rpc.errors import Failed, Unavailable
from app.rpc.processor import Around, MessageProcessor, Processor, Reply
from app.rpc.releases import Releases
from app.rpc.repeatable import Deferred, KeyReused, RepeatableProcessor

__all__ = [
    "Around",
    "Deferred",
    "BindingError",
    "Call",
    "Dialect",
    "Failed",
    "KeyReused",
    "MessageProcessor",
    "Processor",
    "Releases",
    "RepeatableProcessor",
    "Reply",
    "Unavailable",
    "Waiting",
    "bind",
]
