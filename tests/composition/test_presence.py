"""Gateways of one database know each other, and how far each has followed the log of events."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy import Update, create_engine, select, update
from structlog.testing import capture_logs

from hms_gateway.cli.operations.doctor import findings
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.composition.health import Presence
from hms_gateway.gateway.observability.costs import cost_report
from hms_gateway.gateway.observability.figures import Figures, Replica, Watched, merged
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.metrics_text import metrics_text
from hms_gateway.metastore.ports.store import Event, StoreError, StoreFailure, StoreUnavailable
from hms_gateway.rpc.structs import Database
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.registry.gateways import KEPT_MS, SHOWN_MS, GatewayRow
from hms_gateway.storage.schema.catalog import GATEWAYS, NOTIFICATIONS
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.support.patience import until
from tests.support.server import GatewayServer, trusting

HOUR_SECONDS = 3_600
NOW = 1_700_000_000.0
EVENT = Event("X", "d", None, "{}")


@pytest.fixture
def store(migrated_server_database: str) -> Iterator[SqlStore]:
    with contextlib.closing(open_store(migrated_server_database, SystemClock(), Limits())) as store:
        yield store


def names(watched: Watched) -> list[str]:
    return [replica.name.partition(":")[2] for replica in watched.others]


def age(database: str, milliseconds: int) -> None:
    """As if all were last seen so long ago."""
    change(database, update(GATEWAYS).values(seen_ms=GATEWAYS.c.seen_ms - milliseconds))


def change(database: str, statement: Update) -> None:
    engine = create_engine(database)
    with engine.begin() as connection:
        connection.execute(statement)
    engine.dispose()


def test_each_sees_the_others_until_they_end(store: SqlStore) -> None:
    one, two, three = (Presence(store, lambda: 0, port) for port in (1, 2, 3))
    for each in (one, two, three):
        each.note()
    assert (names(one.watched()), names(three.watched())) == ([], ["1", "2"])
    one.note()
    assert names(one.watched()) == ["2", "3"]
    two.leave()
    one.note()
    assert names(one.watched()) == ["3"]
    (own,) = one.watched().replicas
    assert own.started is not None
    assert own.seen is not None
    assert own.started <= own.seen


def test_the_lag_is_of_the_moment_in_which_it_was_seen(store: SqlStore, migrated_server_database: str) -> None:
    for _ in range(2):
        store.write(lambda transaction: transaction.append_event(EVENT))
    change(migrated_server_database, update(NOTIFICATIONS).values(event_time=NOTIFICATIONS.c.event_time - HOUR_SECONDS))
    seen = [0]
    behind, current = Presence(store, lambda: seen[0], 1), Presence(store, store.version, 2)
    behind.note()
    current.note()
    (other,) = current.watched().others
    (own,) = current.watched().replicas
    assert (other.event_id, other.lag_events) == (0, 2)
    assert other.lag_seconds is not None
    assert other.lag_seconds >= HOUR_SECONDS - 1
    assert (own.lag_events, own.lag_seconds) == (0, 0.0)
    seen[0] = 2
    behind.note()
    current.note()
    assert current.watched().others[0].lag_events == 0


def test_who_was_killed_is_not_shown_after_a_minute_and_forgotten_after_an_hour(
    store: SqlStore, migrated_server_database: str
) -> None:
    killed, other = Presence(store, lambda: 0, 1), Presence(store, lambda: 0, 2)
    killed.note()
    other.note()
    assert names(other.watched()) == ["1"]
    age(migrated_server_database, SHOWN_MS + 1)
    other.note()
    assert names(other.watched()) == []
    assert [row.name.partition(":")[2] for row in store.known_gateways()] == ["2"]
    age(migrated_server_database, KEPT_MS)
    Presence(store, lambda: 0, 3).note()
    engine = create_engine(migrated_server_database)
    with engine.connect() as connection:
        assert len(connection.execute(select(GATEWAYS)).all()) == 1
    engine.dispose()


def test_the_doctor_names_them_and_warns_of_versions_that_differ(
    store: SqlStore, migrated_server_database: str, tmp_path: Path
) -> None:
    def said() -> list[tuple[str, str]]:
        settings = Settings(data_dir=tmp_path, port=0, database_url=migrated_server_database)
        return [(each.level, each.text) for each in findings(settings, ()) if each.subject == "gateways"]

    assert said() == []
    store.note_gateway(GatewayRow("a", "one:1", 11, "1.0", 0))
    assert said() == [("ok", "one:1 (process 11, version 1.0)")]
    store.note_gateway(GatewayRow("b", "two:1", 12, "1.1", 0))
    ((level, text),) = said()
    assert level == "warning"
    assert "one:1 (process 11, version 1.0), two:1 (process 12, version 1.1)" in text


class OtherClock:
    """Rows in a database whose clock is ahead."""

    ahead_seconds = 0.0

    def note_gateway(self, row: GatewayRow) -> list[GatewayRow]:
        return [msgspec.structs.replace(row, now_ms=round((NOW + self.ahead_seconds) * 1_000))]

    def forget_gateway(self, gateway_id: str) -> None: ...


def test_a_clock_that_is_minutes_off_is_a_metric_and_one_line() -> None:
    rows = OtherClock()
    presence = Presence(rows, lambda: 0, 1, lambda: NOW)
    metrics = Metrics(())
    metrics.watch(presence.watched)
    with capture_logs() as lines:
        for rows.ahead_seconds in (0.0, -600.0, -601.0):
            presence.note()
    assert [(line["log_level"], line["database_ahead_seconds"]) for line in lines] == [("error", -600.0)]
    assert "hms_gateway_clock_difference_seconds -601.0" in metrics_text(metrics).decode()


class Away:
    """Rows in a database that does not answer, or fails."""

    def __init__(self, error: StoreError | None = None) -> None:
        self.error = error or StoreUnavailable("away")

    def note_gateway(self, row: GatewayRow) -> list[GatewayRow]:
        raise self.error

    def forget_gateway(self, gateway_id: str) -> None:
        raise self.error


def test_without_the_database_nothing_is_known_and_nothing_fails() -> None:
    presence = Presence(Away(), lambda: 7, 1)
    presence.note()
    (own,) = presence.watched().replicas
    assert (own.event_id, own.lag_events, presence.watched().others) == (7, None, [])
    presence.leave()


def test_what_was_known_before_the_database_failed_is_not_shown_as_if_it_were_of_now() -> None:
    class Failing(Away):
        fails = False

        def note_gateway(self, row: GatewayRow) -> list[GatewayRow]:
            return super().note_gateway(row) if self.fails else [row]

    rows = Failing(StoreFailure("permission denied"))
    presence = Presence(rows, lambda: 7, 1)
    presence.note()
    assert presence.watched().replicas[0].lag_events == 0
    rows.fails = True
    with pytest.raises(StoreFailure):
        presence.note()
    assert presence.watched().replicas[0].lag_events is None


def test_a_gateway_that_was_killed_and_started_again_is_one_sample() -> None:
    """In a container it has the same name and process id as before."""
    killed, now = (
        Replica("a:1", 1, 5, "old", seen=10.0, lag_events=3),
        Replica("a:1", 1, 9, "new", seen=20.0, lag_events=0),
    )
    text = metrics_text(Metrics(()), Figures(1, 0.0, replicas=[now], others=[killed]), show_names=True).decode()
    assert [line for line in text.splitlines() if line.startswith("hms_gateway_replica_lag_events{")] == [
        'hms_gateway_replica_lag_events{pid="1",replica="a:1"} 0.0'
    ]


def test_workers_show_each_process_once() -> None:
    """Each worker has read the rows of all; those of workers are their own."""
    one = Replica("a:1", 1, 5, "one", lag_events=0, lag_seconds=0.0)
    two = Replica("a:1", 2, 4, "two", lag_events=3, lag_seconds=9.0)
    gone, new = Replica("b:1", 9, 1, "far", seen=10.0, lag_events=4), Replica("b:1", 9, 3, "far", seen=20.0)
    figures = [
        Figures(1, 0.0, replicas=[one], others=[two, new]),
        Figures(2, 0.0, replicas=[two], others=[one, gone]),
    ]
    whole = merged(figures, frozenset({1, 2}))
    assert (whole.replicas, whole.others) == ([one, two], [new])
    rows = cost_report(whole, user="ann", sees_all=True, newest_event=6, now=100.0)["replicas"]
    assert [(row["name"], row["is_own"], row["lag_events"]) for row in rows] == [
        ("a:1", True, 1),
        ("a:1", True, 2),
        ("b:1", False, None),
    ]
    text = metrics_text(Metrics(()), whole, show_names=True).decode()
    for line in ("hms_gateway_replicas 3.0", "hms_gateway_lag_events 3.0", "hms_gateway_lag_seconds 9.0"):
        assert line in text
    assert 'hms_gateway_replica_lag_events{pid="2",replica="a:1"} 3.0' in text
    assert 'hms_gateway_replica_seen_timestamp_seconds{pid="9",replica="b:1"} 20.0' in text
    assert "replica=" not in metrics_text(Metrics(()), whole).decode()


@pytest.mark.postgres
def test_two_gateways_show_each_other(migrated_postgres_database: str, tmp_path: Path) -> None:
    one, two = (
        GatewayServer(
            tmp_path / name,
            database=migrated_postgres_database,
            settings={"warehouse_dir": f"file:{tmp_path}/warehouse"},
        )
        for name in ("one", "two")
    )
    engine = create_engine(migrated_postgres_database)
    with one, two:
        with MetastoreClient(one.url, (one.user, one.password), trusting()) as client:
            client.call("create_database", Database("d"))
        # The one that started first may look for the other only ten seconds later: one of them sees both.
        until(lambda: any(ports(each) == {one.port, two.port} for each in (two, one)), pause_seconds=0.2)
        assert one.stop() == 0
        with engine.connect() as connection:
            left = connection.execute(select(GATEWAYS.c.name)).scalars().all()
        assert {name.rpartition(":")[2] for name in left} <= {str(two.port)}
    engine.dispose()


@pytest.mark.postgres
def test_a_gateway_that_nobody_asks_does_not_lag(migrated_postgres_database: str, tmp_path: Path) -> None:
    with (
        GatewayServer(tmp_path, database=migrated_postgres_database) as idle,
        contextlib.closing(open_store(migrated_postgres_database, SystemClock(), Limits())) as store,
    ):
        newest = store.write(lambda transaction: transaction.append_event(EVENT))
        until(lambda: own_row(idle)["event_id"] >= newest, pause_seconds=0.2)


def own_row(server: GatewayServer) -> dict[str, Any]:
    (row,) = (row for row in replicas(server) if row["is_own"])
    return row


def ports(server: GatewayServer) -> set[int]:
    return {int(row["name"].rpartition(":")[2]) for row in replicas(server) if row["seen"] is not None}


def replicas(server: GatewayServer) -> list[dict[str, Any]]:
    page = f"https://127.0.0.1:{server.port}/status/costs"
    found: list[dict[str, Any]] = httpx.get(page, verify=trusting(), auth=(server.user, server.password)).json()[
        "replicas"
    ]
    return found
