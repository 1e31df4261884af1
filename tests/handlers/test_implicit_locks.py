"""Implicit locks of a call: its thread has nothing of them when it is over, however it ends."""

import pytest

from hms_gateway.handlers.steps import ImplicitLocks
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import METHODS, MetaException
from hms_gateway.runtime.presented import lock_caller
from tests.support.steps import through


def test_a_call_that_is_refused_before_it_begins_leaves_its_caller_nowhere():
    method = METHODS["drop_table"]

    def refuse() -> None:
        assert lock_caller() is not None
        raise MetaException("no")

    with pytest.raises(MetaException, match="no"):
        through(ImplicitLocks(timeout_ms=1_000), method, Call("ann"), method.arguments(), refuse)
    assert lock_caller() is None
