"""A gateway of an earlier version beside the present one on one database, as during a rolling upgrade: both write, both
see at once what the other one wrote, and nothing is lost or made twice.
"""

import os
import subprocess
import sys
import tarfile
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
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.storage.migrations.revisions import migrate
from tests.bridge.bridge_process import ApacheClient, connected
from tests.support.sample import sample
from tests.support.server import GatewayServer, free_port

ROOT = Path(__file__).parents[2]
# The last one that ran units of work one by one.
EARLIER = "2939ef6"
CLIENTS, ROUNDS = 4, sample(5, of=15)


class Ported(GatewayServer):
    """With a Thrift port, and perhaps of the code in another folder."""

    def __init__(self, folder: Path, database: str, code: Path | None = None) -> None:
        self.thrift_port = free_port()
        self._code = code
        warehouse = f"file:{folder.parent / 'warehouse'}"
        environment = {} if code is None else {"PYTHONPATH": str(code)}
        # The earlier version does not know the setting.
        authorization = "off" if code is None else None
        settings = {"thrift_port": self.thrift_port, "warehouse_dir": warehouse, "authorization": authorization}
        super().__init__(folder, database=database, settings=settings, environment=environment)

    def _command(self) -> list[str]:
        command = super()._command()
        return command if self._code is None else [sys.executable, "-m", "hms_gateway", *command[1:]]


class Port:
    def __init__(self, number: int) -> None:
        self.port = number


@pytest.fixture
def earlier_code(tmp_path: Path) -> Path:
    archive = tmp_path / "earlier.tar"
    command = ["git", "-C", str(ROOT), "archive", f"--output={archive}", EARLIER, "app", "schema", "CHANGELOG.md"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"the repository does not have the commit {EARLIER}")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path / "earlier", filter="data")
    return tmp_path / "earlier/app"


@pytest.fixture(
    params=[
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.whole]),
    ]
)
def ports(request: pytest.FixtureRequest, tmp_path: Path, earlier_code: Path) -> Iterator[list[Port]]:
    """That of the earlier version, and that of the present one."""
    database: str = request.getfixturevalue(f"fresh_{request.param}_database")
    environment = {**os.environ, "PYTHONPATH": str(earlier_code)}
    migration = [sys.executable, "-m", "hms_gateway", "migrate", "--database", database, "--data-dir", str(tmp_path)]
    subprocess.run(migration, check=True, capture_output=True, env=environment)
    with Ported(tmp_path / "one", database, earlier_code) as earlier:
        code = Path(f"/proc/{earlier.pid}/environ").read_bytes()
        assert os.fsencode(earlier_code) in code
        # The schema is brought forward under a gateway that runs.
        migrate(database)
        with Ported(tmp_path / "other", database) as present:
            yield [Port(earlier.thrift_port), Port(present.thrift_port)]


def test_an_earlier_version_and_this_one_share_a_database(ports: list[Port]) -> None:
    both_write_side_by_side(ports)
    what_one_changes_the_other_one_answers_at_once(ports)


def both_write_side_by_side(ports: list[Port]) -> None:
    failures: list[str] = []
    with connected(ports[0]) as client:
        client.create_database(Database("d"))
        client.create_table(table("shared", ["k"]))
        client.create_table(table("seen", []))
    clients = [threading.Thread(target=work, args=(ports, number, failures)) for number in range(CLIENTS)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join(120)
    assert failures == []
    with connected(ports[0]) as earlier, connected(ports[1]) as present:
        for client in (earlier, present):
            events = client.get_next_notification(NotificationEventRequest(0, -1)).events
            assert [event.eventId for event in events] == list(range(1, len(events) + 1))
            seen = Counter((event.eventType, event.tableName) for event in events if event.dbName == "d")
            assert seen == wanted()
            names = sorted(f"k={number}-{count}" for number in range(CLIENTS) for count in range(ROUNDS))
            assert sorted(client.get_partition_names("d", "shared", -1)) == names
            assert sorted(client.get_all_tables("d")) == ["seen", "shared"]
            assert client.get_open_txns().txn_high_water_mark == CLIENTS * ROUNDS


def what_one_changes_the_other_one_answers_at_once(ports: list[Port]) -> None:
    """Both have the table in their caches when it is changed."""
    with connected(ports[0]) as earlier, connected(ports[1]) as present:
        for number in range(ROUNDS):
            writer, reader = (earlier, present) if number % 2 else (present, earlier)
            found = reader.get_table("d", "seen")
            writer.alter_table("d", "seen", msgspec.structs.replace(found, parameters={"number": str(number)}))
            for client in (writer, reader):
                assert client.get_table("d", "seen").parameters["number"] == str(number)


def table(name: str, keys: list[str]) -> Table:
    descriptor = StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo())
    of_keys = [FieldSchema(key, "string") for key in keys]
    return Table(tableName=name, dbName="d", sd=descriptor, partitionKeys=of_keys, parameters={})


def wanted() -> Counter[tuple[str, str | None]]:
    """Events by type and table."""
    rounds = [(number, count) for number in range(CLIENTS) for count in range(ROUNDS)]
    each = [
        (kind, name)
        for number, count in rounds
        for kind, name in (
            ("CREATE_TABLE", f"t_{number}_{count}"),
            ("ALTER_TABLE", f"t_{number}_{count}_renamed"),
            ("DROP_TABLE", f"t_{number}_{count}_renamed"),
            ("ADD_PARTITION", "shared"),
        )
    ]
    once = [("CREATE_DATABASE", None), ("CREATE_TABLE", "shared"), ("CREATE_TABLE", "seen")]
    return Counter([*each, *once])


def work(ports: list[Port], number: int, failures: list[str]) -> None:
    """The steps of a table's life are made by one version and the other in turns."""
    try:
        with connected(ports[number % 2]) as one, connected(ports[1 - number % 2]) as other:
            for count in range(ROUNDS):
                one_round(one, other, f"t_{number}_{count}", f"{number}-{count}")
    except Exception as error:
        failures.append(repr(error))


def one_round(one: ApacheClient, other: ApacheClient, name: str, value: str) -> None:
    one.create_table(table(name, []))
    other.alter_table("d", name, msgspec.structs.replace(other.get_table("d", name), tableName=f"{name}_renamed"))
    one.drop_table("d", f"{name}_renamed", True)
    descriptor = StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo())
    other.add_partition(Partition([value], "d", "shared", sd=descriptor, parameters={}))
    assert len(one.open_txns(OpenTxnRequest(1, "user", "localhost")).txn_ids) == 1
