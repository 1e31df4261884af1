"""A low one: a lock request with very many components makes everybody wait, so it has a bound and holds a thread."""

from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.repeatable import RepeatableProcessor, SuspendedCall
from hms_gateway.rpc.structs import METHODS, LockComponent, LockRequest, ShowLocksRequest
from hms_gateway.rpc.wire import Message, MessageType
from tests.attacks.processor_calls import answered, open_metastore


def request(count: int) -> LockRequest:
    return LockRequest([LockComponent(2, 2, "default", f"t{number}") for number in range(count)], None, "ann", "host")


def begun(metastore: Metastore, count: int) -> object:
    codec, processor = metastore.codecs.binary, metastore.processor
    assert isinstance(processor, RepeatableProcessor)
    payload = codec.encode(METHODS["lock"].arguments(request(count)))
    assert isinstance(payload, bytes)
    return processor.begin(codec, Message("lock", MessageType.CALL, 1, payload), Call("ann"))


@pytest.mark.slow
def test_a_request_beyond_the_limit_is_refused_with_its_name(tmp_path: Path) -> None:
    with open_metastore(tmp_path) as metastore:
        before = answered(metastore, "show_locks", ShowLocksRequest())
        for count in (10_001, 20_000, 100_000):
            assert answered(metastore, "lock", request(count)) == (
                "PROTOCOL_ERROR",
                f"lock: {count} components are more than 10000 (limit lock_components_max)",
            )
        assert answered(metastore, "show_locks", ShowLocksRequest()) == before


def test_the_limit_can_be_set(tmp_path: Path) -> None:
    with open_metastore(tmp_path, lock_components_max=3) as metastore:
        assert answered(metastore, "lock", request(3)) == ("ok", None)
        assert answered(metastore, "lock", request(4)) == (
            "PROTOCOL_ERROR",
            "lock: 4 components are more than 3 (limit lock_components_max)",
        )


@pytest.mark.slow
def test_a_request_as_large_as_the_limit_is_granted(tmp_path: Path) -> None:
    with open_metastore(tmp_path) as metastore:
        assert answered(metastore, "lock", request(10_000)) == ("ok", None)


@pytest.mark.slow
def test_a_long_request_is_no_work_for_the_event_loop(tmp_path: Path) -> None:
    with open_metastore(tmp_path) as metastore:
        assert isinstance(begun(metastore, 1), SuspendedCall)
        assert not isinstance(begun(metastore, 10_000), SuspendedCall)
