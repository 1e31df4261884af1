"""The composition root: settings in, a gateway that can be served out. Nothing imports it but the command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.cache import ReplyCache
from app.clock import Clock, SystemClock
from app.files import Directories, FilePolicy
from app.gateway.application import Gateway
from app.gateway.assembly import build_gateway
from app.gateway.metrics import Metrics
from app.handlers import UNSUPPORTED
from app.handlers.catalogs import Catalogs
from app.handlers.configuration import Configuration
from app.handlers.databases import Databases
from app.handlers.fields import Fields
from app.handlers.functions import Functions
from app.handlers.indexes import Indexes
from app.handlers.locks import Locks
from app.handlers.partition_changes import PartitionChanges
from app.handlers.partitions import Partitions
from app.handlers.service import Service
from app.handlers.tables import Tables
from app.handlers.transactions import Transactions
from app.limits import Limits
from app.metastore.alter_table import AlterTableService
from app.metastore.databases import DatabaseService
from app.metastore.events import EventMaker
from app.metastore.fields import FieldService
from app.metastore.functions import FunctionService
from app.metastore.partitions import PartitionService
from app.metastore.ports import FileSystemError, StoreError, StoreUnavailable
from app.metastore.settings import MetastoreSettings
from app.metastore.tables import TableService
from app.metastore.truncate_table import TruncateService
from app.rpc import Processor, Unavailable
from app.settings import Settings
from app.storage import SqlStore, open_store
from app.structs import METHODS, MetaException, Struct
from app.txn.lock_service import LockService
from app.txn.settings import TxnSettings
from app.txn.transaction_service import TransactionService
from app.wire import Codecs, make_codecs

DATABASE_FILE = "metastore.db"


@dataclass(frozen=True, slots=True)
class Metastore:
    """Everything behind the edge: the store and the handlers over it."""

    store: SqlStore
    codecs: Codecs
    processor: Processor
    events: EventMaker


def database_url(settings: Settings) -> str:
    """The configured database, or the SQLite file of the data folder."""
    return settings.database_url or f"sqlite:///{settings.data_dir.absolute() / DATABASE_FILE}"


def build_metastore(settings: Settings, counters: Callable[[], Mapping[str, int]] = dict) -> Metastore:
    """Open the database, mend what a crash left, and bind the handlers. `counters` gives the calls by method.

    Raises StoreError where the database cannot be used, BindingError when IDL and handlers disagree.
    """
    codecs = make_codecs(settings.limits)
    clock = SystemClock()
    store = open_store(database_url(settings), clock, settings.limits, settings.database_connections_max)
    rules = MetastoreSettings(warehouse_location=settings.warehouse_location)

    def to_tjson(struct: Struct) -> bytes:
        encoded = codecs.tjson.encode(struct)
        assert isinstance(encoded, bytes)
        return encoded

    try:
        parts = (store, _directories(settings), clock, rules, to_tjson)
        handlers = [Service(clock, counters), *_handlers(*parts, settings.limits)]
        processor = Processor(handlers, UNSUPPORTED, translated, settings.limits.cached_reply_bytes_max)
    except BaseException:
        store.close()
        raise
    return Metastore(store, codecs, processor, EventMaker(rules, clock, to_tjson))


def build(settings: Settings) -> Gateway:
    """The gateway one process serves. Raises as `build_metastore`."""
    metrics = Metrics(METHODS.keys())
    metastore = build_metastore(settings, metrics.calls_by_method)
    return build_gateway(
        settings,
        codecs=metastore.codecs,
        processor=metastore.processor,
        cache=ReplyCache(metastore.store, settings.limits),
        ready=metastore.store.ready,
        metrics=metrics,
        on_stop=[metastore.store.close],
    )


def translated(error: Exception) -> Exception:
    """What storage and file systems raise, as the peer is to see it; anything else is a bug and stays what it is."""
    if isinstance(error, StoreUnavailable):
        return Unavailable(str(error))
    if isinstance(error, (StoreError, FileSystemError)):
        return MetaException(str(error))
    return error


def _handlers(
    store: SqlStore,
    files: Directories,
    clock: Clock,
    rules: MetastoreSettings,
    to_tjson: Callable[[Struct], bytes],
    limits: Limits,
) -> list[object]:
    parts = (store, files, clock, rules, to_tjson)
    events = EventMaker(rules, clock, to_tjson)
    databases = DatabaseService(*parts)
    alterations = AlterTableService(*parts)
    partitions = PartitionService(*parts, limits)
    databases.create_default()
    alterations.recover_pending_moves()
    return [
        Configuration(rules),
        Catalogs(rules.warehouse_location),
        Databases(databases),
        Fields(FieldService(store)),
        Tables(TableService(*parts), alterations, TruncateService(*parts)),
        Partitions(partitions),
        PartitionChanges(partitions),
        Functions(FunctionService(store, clock, events)),
        Indexes(),
        *_txn_handlers(store),
    ]


def _txn_handlers(store: SqlStore) -> list[object]:
    settings = TxnSettings()
    locks = LockService(store, settings)
    return [Locks(locks), Transactions(TransactionService(store, locks, settings))]


def _directories(settings: Settings) -> Directories:
    policies = {scheme: FilePolicy(policy) for scheme, policy in settings.file_systems.items()}
    default = None if settings.file_system_default is None else FilePolicy(settings.file_system_default)
    return Directories(policies, settings.file_roots, default=default)
