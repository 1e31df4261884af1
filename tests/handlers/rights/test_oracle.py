"""Random histories of rights against an oracle that is written from docs/rights.md alone, with the reply cache on.

Two gateways share a database. Calls go through HTTPS in three protocols and both dialects, with tags of replies that a
client holds and with keys, through the Thrift ports, through bridges, through bridges that act for their users, and to
a third gateway of two processes; changes, too. The whole compares a million decisions, half on each database. A failure
says at which seed and decision.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.catalog.rights import decisions, keeper
from hms_gateway.catalog.rights.policy import Policy
from hms_gateway.handlers.rights import checks
from hms_gateway.metastore.vocabulary.names import EventId
from tests.handlers.rights.at_once import AtOnce
from tests.handlers.rights.histories import History
from tests.handlers.rights.oracle import RULES_TEXT, USERS
from tests.handlers.rights.replicas import ProcessDoor, Replica, processes, replicas
from tests.support.sample import FIRST_SEED, sample

pytestmark = [
    pytest.mark.slow,
    # The loop of the bridges ends while TLS still takes leave; a process would end with it.
    pytest.mark.filterwarnings("ignore:unclosed resource <TCPTransport:ResourceWarning"),
]

DECISIONS = sample(800, of=500_000)
CALLS_PER_CHANGE = 20
SEED = 17 + FIRST_SEED
CHANGES_MAX = 300
CHANGES_AT_ONCE = sample(10, of=100)
REPORT_SECONDS = 60.0
# Where both gateways learn of changes from a server.
on_postgres = pytest.mark.parametrize(
    "gateways",
    [pytest.param("sqlite", marks=pytest.mark.whole), pytest.param("postgres", marks=pytest.mark.postgres)],
    indirect=True,
)


@pytest.fixture(scope="module")
def gateways(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Replica]]:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_database_of_module")
    with replicas(tmp_path_factory.mktemp("oracle"), RULES_TEXT, url) as made:
        yield made


@on_postgres
def test_random_histories_agree_with_the_oracle(gateways: list[Replica], tmp_path: Path) -> None:
    with processes(tmp_path, gateways, USERS) as door:
        play(gateways, door)


def play(gateways: list[Replica], door: ProcessDoor) -> None:
    history = History(gateways, SEED, [door])
    report_at = time.monotonic() + REPORT_SECONDS
    while history.decisions < DECISIONS:
        try:
            history.change()
            for _ in range(CALLS_PER_CHANGE):
                history.compare()
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, decision {history.decisions}") from error
        if time.monotonic() > report_at:
            report_at += REPORT_SECONDS
            print(history.decisions, "decisions agree, of", history.calls, "calls", flush=True)
    assert sum(one.metrics.cache_hits for one in gateways) > 0
    assert history.asker.not_modified > 0
    history.asker.close()


@on_postgres
def test_a_change_that_was_answered_is_in_force_for_calls_that_start_later(gateways: list[Replica]) -> None:
    played = AtOnce(gateways, SEED)
    played.play(CHANGES_AT_ONCE)
    assert played.violations() == []
    assert all(played.reads.values())


@pytest.mark.parametrize("gateways", ["sqlite"], indirect=True)
def test_a_replica_that_keeps_the_policy_of_before_is_found(
    gateways: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    current = keeper.PolicyKeeper._current

    def kept(self: keeper.PolicyKeeper, version: EventId, generation: int) -> Policy:
        is_late = self is gateways[1].metastore.rights and self._policy is not None
        return self._policy if is_late else current(self, version, generation)  # type: ignore[return-value]

    monkeypatch.setattr(keeper.PolicyKeeper, "_current", kept)
    played = AtOnce(gateways, SEED)
    played.play(3)
    assert played.violations()


@pytest.mark.parametrize("gateways", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "leak",
    [
        # Longer histories show them than the others.
        *(pytest.param(leak, marks=pytest.mark.whole) for leak in ("one cache for all", "owners of before")),
        *("grants of before", "unfiltered names", "grants by everybody"),
    ],
)
def test_a_planted_leak_is_found(gateways: list[Replica], monkeypatch: pytest.MonkeyPatch, leak: str) -> None:
    """What the oracle is there to find."""
    if leak == "one cache for all":
        for one in gateways:
            monkeypatch.setattr(one.cache, "viewer", lambda *caller: "everybody")
    elif leak == "owners of before":
        monkeypatch.setattr(keeper.PolicyKeeper, "_refresh_owners", lambda self, tables: True)
    elif leak == "grants of before":
        monkeypatch.setattr(keeper, "_OF_POLICY", frozenset({"CREATE_DATABASE", "DROP_DATABASE"}))
    elif leak == "grants by everybody":
        monkeypatch.setitem(checks._SPECIAL, ("grant", ""), lambda check, need, *places: None)
    else:
        monkeypatch.setattr(decisions.Visible, "select", lambda self, names: list(names))
    history = History(gateways, SEED)

    def play() -> None:
        for _ in range(CHANGES_MAX):
            history.change()
            for _ in range(CALLS_PER_CHANGE):
                history.compare()

    with pytest.raises(AssertionError):
        play()
    history.asker.close()
