"""fb303 (semantics §2.1)."""

from hms_gateway.handlers.service import Service
from hms_gateway.rpc.call import Call
from tests.support.manual_clock import ManualClock

CALL = Call("tester")


def test_who_answers() -> None:
    service = Service(ManualClock(5), lambda: {"get_table": 3})
    assert service.getName(CALL) == "new db based metaserver"
    assert service.getVersion(CALL) == "3.0"
    assert service.getStatus(CALL) == 2
    assert service.getStatusDetails(CALL) == ""
    assert service.getCpuProfile(CALL, 1) == ""
    assert service.aliveSince(CALL) == 5
    assert service.getCounters(CALL) == {"get_table": 3}
    assert (service.getCounter(CALL, "get_table"), service.getCounter(CALL, "x")) == (3, 0)


def test_goodbye_stops_nothing() -> None:
    service = Service(ManualClock())
    service.shutdown(CALL)
    service.reinitialize(CALL)
    assert service.getStatus(CALL) == 2


def test_options_are_kept_up_to_a_number() -> None:
    service = Service(ManualClock())
    assert service.getOption(CALL, "k") is None
    service.setOption(CALL, "k", "v")
    service.setOption(CALL, None, "v")
    assert service.getOptions(CALL) == {"k": "v"}
    for number in range(2000):
        service.setOption(CALL, str(number), "x")
    assert len(service.getOptions(CALL)) == 1000
    assert service.getOption(CALL, "1999") == "x"
