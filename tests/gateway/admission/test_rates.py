"""Rates of users and groups: what is refused, for how long, and what never is."""

import json

import httpx
import pytest

from hms_gateway.gateway.admission.identity import Identity, Refused
from hms_gateway.gateway.admission.rates import CALLERS_MAX, OWED_SECONDS_MAX, Rates
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.processor import Reply
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.settings import Rate, SettingsError
from hms_gateway.runtime.settings_reading import load_settings
from tests.gateway.serving import CALL, FakeCache, running

ANN, BOB = Identity("ann", "10.0.0.1"), Identity("bob", "10.0.0.2")


class Moments:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def moments() -> Moments:
    return Moments()


def test_a_burst_is_let_in_and_then_as_many_as_the_rate(moments):
    rates = Rates({"ann": Rate(calls_per_second=2.0, burst_seconds=5.0)}, moments)
    for _ in range(10):
        rates.check(ANN, "get_table")
    with pytest.raises(Refused, match="user ann is used up") as refused:
        rates.check(ANN, "get_table")
    assert (refused.value.status, dict(refused.value.headers)[b"retry-after"]) == (429, b"1")
    assert dict(refused.value.headers)[b"x-call-outcome"] == b"not-tried"
    moments.now += 0.5
    rates.check(ANN, "get_table")
    rates.check(BOB, "get_table")


def test_long_replies_are_paid_for_by_waiting(moments):
    rates = Rates({"*": Rate(bytes_per_second=100.0, burst_seconds=1.0)}, moments)
    rates.check(ANN, "get_partitions")
    rates.pay(ANN, 1_100)
    assert rates.wait(ANN, "get_table") == (10.0, "user ann", "bytes_per_second")
    assert rates.wait(BOB, "get_table")[0] == 0.0
    moments.now += 10.0
    rates.check(ANN, "get_table")


def test_partitions_are_paid_for_after_the_call(moments):
    rates = Rates({"*": Rate(partitions_per_second=100.0, burst_seconds=1.0)}, moments)
    rates.check(ANN, "get_partitions")
    rates.pay(ANN, 0, 1_100)
    assert rates.wait(ANN, "get_table") == (10.0, "user ann", "partitions_per_second")
    assert rates.wait(ANN, "unlock")[0] == rates.wait(BOB, "get_table")[0] == 0.0
    moments.now += 10.0
    rates.check(ANN, "get_table")


def test_what_keeps_or_gives_back_locks_is_paid_for_and_never_refused(moments):
    rates = Rates({"ann": Rate(calls_per_second=1.0, burst_seconds=1.0)}, moments)
    passing = {name for name, facts in method_facts().items() if facts.passes_rates}
    assert {"heartbeat", "unlock", "commit_txn", "extend_lease"} < passing
    for method in sorted(passing):
        rates.check(ANN, method)
    assert rates.wait(ANN, "get_table")[0] == pytest.approx(len(passing))


def test_members_of_a_group_share_its_rate_and_other_logins_of_a_user_share_that_of_the_user(moments):
    rates = Rates({"@etl": Rate(calls_per_second=1.0, burst_seconds=2.0), "bob": Rate(calls_per_second=1.0)}, moments)
    members = [Identity(name, "", groups=frozenset({"etl", "other"})) for name in ("ann", "bob")]
    for member in members:
        rates.check(member, "get_table")
    assert rates.wait(members[0], "get_table")[1:] == ("group etl", "calls_per_second")
    assert rates.wait(ANN, "get_table")[0] == 0.0
    for _ in range(9):
        rates.check(BOB, "get_table")
    moments.now += 0.5
    assert rates.wait(members[1], "get_table")[0] == 0.5


def test_a_member_who_sends_heartbeats_without_end_holds_up_a_group_for_a_minute(moments):
    rates = Rates({"@etl": Rate(calls_per_second=2.0)}, moments)
    ann, bob = (Identity(name, "", groups=frozenset({"etl"})) for name in ("ann", "bob"))
    for _ in range(1_000):
        rates.check(ann, "heartbeat")
    moments.now += OWED_SECONDS_MAX + 0.5
    rates.check(bob, "get_table")


@pytest.mark.slow
def test_the_memory_for_callers_is_bounded(moments):
    rates = Rates({"*": Rate(calls_per_second=1.0)}, moments)
    for number in range(2 * CALLERS_MAX + 5):
        rates.check(Identity(f"u{number}", ""), "get_table")
    assert len(rates._callers) <= CALLERS_MAX
    assert len(rates._shared) <= CALLERS_MAX


@pytest.mark.slow
def test_over_http_it_is_429_with_the_time_to_wait_and_counted(moments):
    with running(rates=Rates({"ann": Rate(calls_per_second=0.1, burst_seconds=10.0)}, moments)) as server:
        assert httpx.post(server.url, content=CALL).status_code == 200
        refused = httpx.post(server.url, content=CALL)
        unlocked = httpx.post(server.url, content=b'[1,"unlock",1,1,{}]')
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
    assert "user_rates" in json.loads(refused.content)[4]["1"]["str"]
    assert unlocked.status_code == 200
    assert server.metrics.limited == {"calls_per_second": 1}
    assert [line["outcome"] for line in server.log_lines()][:2] == ["ok", "rate"]


class ManyPartitions:
    def process(self, codec, message, call):
        return Reply(MessageType.REPLY, b"{}", "ok", partitions=31)


def test_the_partitions_of_a_reply_are_paid_for_over_http(moments):
    rates = Rates({"ann": Rate(partitions_per_second=1.0, burst_seconds=1.0)}, moments)
    with running(ManyPartitions(), rates=rates) as server:
        answers = [httpx.post(server.url, content=CALL) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1].headers["retry-after"] == "30"
    assert "partitions_per_second" in json.loads(answers[1].content)[4]["1"]["str"]


def test_a_call_whose_sender_has_an_older_answer_is_paid_for_once(moments):
    rates = Rates({"ann": Rate(calls_per_second=0.1, burst_seconds=10.0)}, moments)
    with running(rates=rates, cache=FakeCache()) as server:
        answer = httpx.post(server.url, content=CALL, headers={"If-None-Match": '"other"'})
    assert (answer.status_code, "etag" in answer.headers) == (200, True)


def test_rates_are_read_from_the_settings_and_a_wrong_one_names_its_field(tmp_path):
    config = tmp_path / "settings.toml"
    config.write_text('[user_rates."@etl"]\ncalls_per_second = 5\n')
    assert load_settings(config).user_rates == {"@etl": Rate(calls_per_second=5.0)}
    config.write_text("[user_rates.ann]\ncalls_per_second = 0\n")
    with pytest.raises(SettingsError, match=r"user_rates\.ann"):
        load_settings(config)
