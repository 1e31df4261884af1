"""Implicit locks of a call: its thread has nothing of them when it is over, however it ends."""

from contextlib import nullcontext

import pytest

from hms_gateway.handlers.implicit_locks import ImplicitLocks, UnderImplicitLocks
from hms_gateway.handlers.recorded_calls import as_recorded
from hms_gateway.rpc.call import Call
from hms_gateway.runtime.presented import lock_caller
from hms_gateway.structs import METHODS, MetaException


def test_a_call_that_is_refused_before_it_begins_leaves_its_caller_nowhere():
    call, method = Call("ann", recorded_at="7"), METHODS["drop_table"]
    refusing = as_recorded(call, administrators=(), fence=nullcontext())
    with (
        pytest.raises(MetaException, match="user ann is not an administrator"),
        UnderImplicitLocks(ImplicitLocks(timeout_ms=1_000), method, call, method.arguments(), refusing),
    ):
        pass
    assert lock_caller() is None
