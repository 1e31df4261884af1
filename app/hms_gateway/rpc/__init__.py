"""A message in, a message out: names bound to handlers, results and exceptions put where the IDL declares them."""

from hms_gateway.rpc.binding import BindingError, bind
from hms_gateway.rpc.call import Call, Dialect, Waiting
from hms_gateway.rpc.errors import Failed, Unavailable
from hms_gateway.rpc.processor import Around, Gate, MessageProcessor, Processor, Reply
from hms_gateway.rpc.releases import Releases
from hms_gateway.rpc.repeatable import KeyReused, RepeatableProcessor, SuspendedCall

__all__ = [
    "Around",
    "SuspendedCall",
    "BindingError",
    "Call",
    "Dialect",
    "Failed",
    "Gate",
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
