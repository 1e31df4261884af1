"""A call on its way through one step, before a handler that the test gives."""

from collections.abc import Callable
from typing import Any

from hms_gateway.rpc.binding import Bound, Step
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.structs import Method, Struct


def through(step: Step, method: Method, call: Call, arguments: Struct, handle: Callable[[], Any] = lambda: None) -> Any:
    """The answer of the handler, as the caller of the method gets it."""
    facts = method_facts()[method.name]
    steps = (step,) if step.concerns(method, facts) else ()
    return Bound(method, facts, lambda *_: handle(), (), steps).answer(call, arguments)
