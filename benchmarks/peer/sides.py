"""The four sides, loaded and running: the real metastore, and ours over HTTPS, through the bridge, and on SQLite."""

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
from benchmarks.peer.usage import cpu_seconds, resident_bytes
from hms_gateway.storage import migrate
from tests.bridge.bridge_process import BridgeProcess
from tests.oracle.peer import RealMetastore
from tests.support.server import API_PATH, GatewayServer, basic, free_port

THEIRS: Final = "theirs"
OURS: Final = "ours"
BRIDGE: Final = "bridge"
SQLITE: Final = "sqlite"
TITLES: Final = {
    THEIRS: "Hive Metastore 2.3.10, binary over TCP, PostgreSQL",
    OURS: "hms-gateway, TJSON over HTTPS, PostgreSQL",
    BRIDGE: "hms-gateway through the bridge, binary over TCP, PostgreSQL",
    SQLITE: "hms-gateway, TJSON over HTTPS, SQLite",
}


@dataclass(frozen=True, slots=True)
class Side:
    """`servers` are the processes that answer, `databases` those of its database server; both are counted.

    Sides of the same `data` see each other's changes.
    """

    name: str
    address: Address
    speech: Speech
    servers: tuple[int, ...]
    databases: tuple[int, ...]
    warehouse: str
    data: str

    def caller(self) -> Caller:
        return Caller(self.address, self.speech)

    def cpu_seconds(self) -> float:
        return cpu_seconds((*self.servers, *self.databases))

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
def running(folder: Path, sizes: Sizes, report: Callable[[str], None] = print) -> Iterator[Bench]:
    """Start and load everything below `folder`. Raises PeerUnavailable."""
    with contextlib.ExitStack() as stack:
        folder.chmod(0o755)  # the account PostgreSQL runs as has to get through
        postgres_port = free_port()
        real_one = RealMetastore(folder / "theirs", notifies=False, postgres_port=postgres_port, measured=True)
        report("starting the real metastore")
        theirs = stack.enter_context(real_one)
        postmaster = int((theirs.folder / "pg/data/postmaster.pid").read_text().split()[0])
        postgres = f"postgresql://hive@127.0.0.1:{postgres_port}"
        their_side = Side(
            THEIRS, Address(theirs.port, False), Binary(), (_pid(theirs),), (postmaster,), str(theirs.warehouse), THEIRS
        )
        report("loading the real metastore")
        with their_side.caller() as caller:
            content.load_theirs(caller, f"{postgres}/metastore", str(theirs.warehouse), sizes)
        report("loading ours")
        database = f"{postgres.replace('postgresql', 'postgresql+psycopg', 1)}/gateway"
        gateways = _gateways(folder, postgres, database, sizes)
        ours, on_sqlite = (stack.enter_context(gateway) for gateway in gateways)
        bridge = stack.enter_context(BridgeProcess(ours))
        checkpoint = _settled(postgres)
        checkpoint()
        speech = Tjson(API_PATH, basic(ours.user, ours.password)["Authorization"])
        warehouse, other_warehouse = (str(gateway.data_dir / "warehouse") for gateway in (ours, on_sqlite))
        sides = [
            their_side,
            Side(OURS, Address(ours.port, True), speech, (ours.pid,), (postmaster,), warehouse, OURS),
            Side(BRIDGE, Address(bridge.port, False), Binary(), (bridge.pid, ours.pid), (postmaster,), warehouse, OURS),
            Side(SQLITE, Address(on_sqlite.port, True), speech, (on_sqlite.pid,), (), other_warehouse, SQLITE),
        ]
        yield Bench({side.name: side for side in sides}, sizes, folder, theirs, ours, database, postgres, checkpoint)


def _gateways(folder: Path, postgres: str, database: str, sizes: Sizes) -> tuple[GatewayServer, GatewayServer]:
    with psycopg.connect(f"{postgres}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE gateway")
    migrate(database)
    ours = GatewayServer(folder / "ours", database=database)
    on_sqlite = GatewayServer(folder / "sqlite")
    content.load_ours(database, str(ours.data_dir / "warehouse"), sizes)
    content.load_ours(f"sqlite:///{on_sqlite.data_dir / 'metastore.db'}", str(on_sqlite.data_dir / "warehouse"), sizes)
    return ours, on_sqlite


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
