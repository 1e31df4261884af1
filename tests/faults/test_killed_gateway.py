"""A gateway killed again and again while changes flow through the bridge, and started over what it left.

Nobody notices.

The database's own log of events, and the number of the newest transaction, tell what was done twice or not at all.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hms_gateway.rpc.structs import (
    Database,
    FieldSchema,
    NotificationEventRequest,
    OpenTxnRequest,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.bridge.bridge_process import ApacheClient, BridgeProcess, connected
from tests.support.sample import sample
from tests.support.server import GatewayServer

CLIENTS = 4
KILLS = sample(2, of=20)
ROUNDS = sample(12, of=120)
# Far above a start of the gateway.
PATIENCE_SECONDS = "60"


@pytest.mark.parametrize(
    "database",
    [
        # tests/faults/test_directories_without_rows.py kills one on SQLite.
        pytest.param("sqlite", marks=pytest.mark.whole),
        pytest.param("postgres", marks=pytest.mark.postgres),
        # How it commits what a killed gateway has sent, test_cut_connections.py shows message by message.
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.whole]),
    ],
)
def test_every_change_is_made_once_and_answered(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    gateway = GatewayServer(tmp_path / "gateway", database=made_ready(database, request))
    with gateway, patient_bridge(gateway) as bridge:
        progress = Progress()
        clients = [threading.Thread(target=work, args=(bridge, number, progress)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        for kill in range(1, KILLS + 1):
            assert progress.reached(kill * CLIENTS * ROUNDS // (KILLS + 1)), progress.failures
            gateway.kill()
            gateway.start()
        for client in clients:
            client.join(10 * ROUNDS)
        assert progress.failures == []
        assert "call tried again" in bridge.log_text()
        with connected(bridge) as client:
            assert what_happened(client) == dict.fromkeys(wanted(), 1)
            assert client.get_open_txns().txn_high_water_mark == CLIENTS * ROUNDS


def made_ready(database: str, request: pytest.FixtureRequest) -> str | None:
    """The URL of an empty database with its tables; None is the gateway's own SQLite."""
    if database == "sqlite":
        return None
    url: str = request.getfixturevalue(f"migrated_{database}_database")
    return url


def patient_bridge(gateway: GatewayServer) -> BridgeProcess:
    certificate = str(gateway.data_dir / "certificate.pem")
    return BridgeProcess(gateway, "--cacert", certificate, "--patience", PATIENCE_SECONDS)


def what_happened(client: ApacheClient) -> Counter[tuple[str, str, str | None]]:
    events = client.get_next_notification(NotificationEventRequest(0, -1)).events
    return Counter((event.eventType, event.dbName, event.tableName) for event in events if event.dbName != "default")


def wanted() -> Iterator[tuple[str, str, str | None]]:
    for db in (f"db_{number}" for number in range(CLIENTS)):
        yield "CREATE_DATABASE", db, None
        for count in range(ROUNDS):
            yield "CREATE_TABLE", db, f"t_{count}"
            yield "ALTER_TABLE", db, f"t_{count}_renamed"
            yield "DROP_TABLE", db, f"t_{count}_renamed"


class Progress:
    """What the clients have finished, and what they did not understand."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rounds = 0
        self.failures: list[str] = []

    def round_done(self) -> None:
        with self._changed:
            self._rounds += 1
            self._changed.notify_all()

    def failed(self, error: Exception) -> None:
        with self._changed:
            self.failures.append(repr(error))
            self._changed.notify_all()

    def reached(self, rounds: int) -> bool:
        """Waits until so many rounds are done; False when a client failed or nothing moves."""
        with self._changed:
            return (
                self._changed.wait_for(lambda: self._rounds >= rounds or bool(self.failures), 60) and not self.failures
            )


def work(bridge: BridgeProcess, number: int, progress: Progress) -> None:
    try:
        with connected(bridge) as client:
            client.create_database(Database(f"db_{number}"))
            for count in range(ROUNDS):
                one_round(client, f"db_{number}", f"t_{count}")
                progress.round_done()
    except Exception as error:
        progress.failed(error)


def one_round(client: ApacheClient, db: str, name: str) -> None:
    """A table's life. A create, rename or drop that is done twice answers with an exception."""
    columns = StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo())
    table = Table(tableName=name, dbName=db, sd=columns, partitionKeys=[], parameters={})
    client.create_table(table)
    client.alter_table(db, name, msgspec.structs.replace(client.get_table(db, name), tableName=f"{name}_renamed"))
    client.drop_table(db, f"{name}_renamed", True)
    opened = client.open_txns(OpenTxnRequest(1, f"user_{db}", "localhost"))
    assert len(opened.txn_ids) == 1
