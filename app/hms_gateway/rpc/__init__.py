"""A message in, a message out: names bound to handlers, results and exceptions put where the IDL declares them."""

from hms_gateway.rpc.binding import BindingError, Step, bind
from hms_gateway.rpc.call import Call, Dialect, Failed, Releases, Unavailable, Waiting
from hms_gateway.rpc.processor import MessageProcessor, Processor, Reply
from hms_gateway.rpc.repeatable import KeyReused, RepeatableProcessor, SuspendedCall

__all__ = [
    "SuspendedCall",
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
    "Step",
    "Unavailable",
    "Waiting",
    "bind",
]
