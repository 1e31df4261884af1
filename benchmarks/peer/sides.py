"""The sides, loaded and running: the real metastore, and ours by HTTPS, Thrift port and bridge, and on SQLite."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from benchmarks.peer import content
from benchmarks.peer.caller import Address, Caller
from benchmarks.peer.content import Sizes
from benchmarks.peer.speech import Binary, Speech, Tjson
from benchmarks.peer.usage import Used, cpu_seconds, resident_bytes, waits_of
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.storage.migrations.revisions import migrate
from tests.bridge.bridge_process import BridgeProcess
from tests.oracle.peer import RealMetastore
from tests.support.server import API_PATH, GatewayServer, basic, free_port

THEIRS: Final = "theirs"
OURS: Final = "ours"
BRIDGE: Final = "bridge"
SQLITE: Final = "sqlite"
PORT: Final = "port"
TWO_PORT: Final = "two-port"
SQLITE_PORT: Final = "sqlite-port"
TITLES: Final = {
    THEIRS: "Hive Metastore 2.3.10, binary over TCP, PostgreSQL",
    OURS: "hms-gateway, TJSON over HTTPS, PostgreSQL",
    BRIDGE: "hms-gateway through the bridge, binary over TCP, PostgreSQL",
    SQLITE: "hms-gateway, TJSON over HTTPS, SQLite",
    PORT: "hms-gateway, binary over TCP (its Thrift port), PostgreSQL",
    TWO_PORT: "hms-gateway, two processes (workers = 2), binary over TCP (its Thrift port), PostgreSQL",
    SQLITE_PORT: "hms-gateway, binary over TCP (its Thrift port), SQLite",
}
# Those that speak as Hive's own clients do without anything in between, and the others.
PORTS: Final = (THEIRS, PORT, TWO_PORT, SQLITE_PORT)
OTHERS: Final = (THEIRS, OURS, BRIDGE, SQLITE)


@dataclass(frozen=True, slots=True)
class Side:
    """`servers` are the processes that answer, `databases` those of its database server; both are counted.

    Sides of the same `data` see each other's changes. Many clients are shared out among the `addresses`.
    """

    name: str
    addresses: tuple[Address, ...]
    speech: Speech
    servers: tuple[int, ...]
    databases: tuple[int, ...]
    warehouse: str
    data: str

    def caller(self) -> Caller:
        return Caller(self.addresses[0], self.speech)

    def used(self) -> Used:
        return Used(cpu_seconds(self.servers), cpu_seconds(self.databases), waits_of(self.databases))

    def resident_bytes(self) -> int:
        """Without the database server, which all but SQLite share."""
        return resident_bytes(self.servers)


@dataclass(frozen=True, slots=True)
class Bench:
    """All sides, and how to reach what lies below them."""

    sides: dict[str, Side]
    sizes: Sizes
    folder: Path
    theirs: RealMetastore
    ours: GatewayServer
    database: str  # SQLAlchemy URL of ours
    postgres: str  # libpq URL of the server, without a database
    checkpoint: Callable[[], None]


@contextlib.contextmanager
def running(
    folder: Path, sizes: Sizes, report: Callable[[str], None] = print, gateway_count: int = 1
) -> Iterator[Bench]:
    """Start and load everything below `folder`. Raises PeerUnavailable.

    With several gateways on the database clients of the Thrift port are shared out among them.
    """
    with contextlib.ExitStack() as stack:
        folder.chmod(0o755)  # the account PostgreSQL runs as has to get through
        postgres_port = free_port()
        real_one = RealMetastore(folder / "theirs", notifies=False, postgres_port=postgres_port, measured=True)
        report("starting the real metastore")
        theirs = stack.enter_context(real_one)
        postmaster = int((theirs.folder / "pg/data/postmaster.pid").read_text().split()[0])
        postgres = f"postgresql://hive@127.0.0.1:{postgres_port}"
        their_side = Side(
            THEIRS,
            (Address(theirs.port, False),),
            Binary(),
            (_pid(theirs),),
            (postmaster,),
            str(theirs.warehouse),
            THEIRS,
        )
        report("loading the real metastore")
        with their_side.caller() as caller:
            content.load_theirs(caller, f"{postgres}/metastore", str(theirs.warehouse), sizes)
        report("loading ours")
        database = f"{postgres.replace('postgresql', 'postgresql+psycopg', 1)}/gateway"
        _load_ours(folder, postgres, database, sizes)
        warehouse, other_warehouse = str(folder / "ours/warehouse"), str(folder / "sqlite/warehouse")
        ours = [
            stack.enter_context(_Gateway(folder / f"ours{number or ''}", warehouse, database))
            for number in range(gateway_count)
        ]
        two = stack.enter_context(_Gateway(folder / "two", warehouse, database, workers=2))
        on_sqlite = stack.enter_context(_Gateway(folder / "sqlite", other_warehouse))
        first, pids = ours[0], tuple(gateway.pid for gateway in ours)
        bridge = stack.enter_context(BridgeProcess(first))
        checkpoint = _settled(postgres)
        checkpoint()
        speech = Tjson(API_PATH, basic(first.user, first.password)["Authorization"])
        by_bridge = Address(bridge.port, False)
        ports = tuple(gateway.thrift for gateway in ours)
        servers, databases = (on_sqlite.pid,), (postmaster,)
        sides = [
            their_side,
            Side(OURS, (Address(first.port, True),), speech, pids, databases, warehouse, OURS),
            Side(BRIDGE, (by_bridge,), Binary(), (bridge.pid, *pids), databases, warehouse, OURS),
            Side(SQLITE, (Address(on_sqlite.port, True),), speech, servers, (), other_warehouse, SQLITE),
            Side(PORT, ports, Binary(), pids, databases, warehouse, OURS),
            Side(TWO_PORT, (two.thrift,), Binary(), (two.pid,), databases, warehouse, OURS),
            Side(SQLITE_PORT, (on_sqlite.thrift,), Binary(), servers, (), other_warehouse, SQLITE),
        ]
        yield Bench({side.name: side for side in sides}, sizes, folder, theirs, first, database, postgres, checkpoint)


class _Gateway(GatewayServer):
    """With a Thrift port beside HTTPS."""

    def __init__(self, folder: Path, warehouse: str, database: str | None = None, workers: int = 1) -> None:
        self.thrift = Address(free_port(), False)
        settings = {"thrift_port": self.thrift.port, "warehouse_dir": f"file:{warehouse}", "workers": workers}
        super().__init__(folder, database=database, settings=settings)


def _load_ours(folder: Path, postgres: str, database: str, sizes: Sizes) -> None:
    with psycopg.connect(f"{postgres}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE gateway")
    migrate(database)
    (folder / "sqlite").mkdir()
    content.load_ours(database, str(folder / "ours/warehouse"), sizes)
    content.load_ours(f"sqlite:///{folder / 'sqlite' / DATABASE_FILE}", str(folder / "sqlite/warehouse"), sizes)


def _settled(postgres: str) -> Callable[[], None]:
    """Statistics and a checkpoint in both databases, so that nobody's load is paid for in another's turn."""

    def settle() -> None:
        for database in ("metastore", "gateway"):
            with psycopg.connect(f"{postgres}/{database}", autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
                connection.execute("CHECKPOINT")

    return settle


def _pid(theirs: RealMetastore) -> int:
    return int((theirs.folder / "pid").read_text())
