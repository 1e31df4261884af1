"""The composition root: settings in, a gateway that can be served out. Command line and `testing` import it."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hms_gateway.cache import ReplyCache
from hms_gateway.catalog.access.grants import Privileges
from hms_gateway.catalog.access.roles import Roles, create_default_roles
from hms_gateway.catalog.constraints import Constraints
from hms_gateway.catalog.directories.warehouse import DirectoryMoves, Warehouse
from hms_gateway.catalog.functions import Functions
from hms_gateway.catalog.indexes import Indexes
from hms_gateway.catalog.materialized_views import MaterializedViews
from hms_gateway.catalog.notifications import Notifications, expire_events
from hms_gateway.catalog.partition_marks import PartitionMarks
from hms_gateway.catalog.partitions.additions import PartitionAdditions
from hms_gateway.catalog.partitions.changes import PartitionChanges
from hms_gateway.catalog.partitions.drops import PartitionDrops
from hms_gateway.catalog.partitions.exchange import PartitionExchange
from hms_gateway.catalog.partitions.reads import Partitions
from hms_gateway.catalog.people import People
from hms_gateway.catalog.properties import Properties
from hms_gateway.catalog.resource_plans import ResourcePlans
from hms_gateway.catalog.rights.keeper import PolicyKeeper
from hms_gateway.catalog.rights.rules_file import RulesError, RulesFile
from hms_gateway.catalog.runtime_records import RuntimeRecords, expire_notes
from hms_gateway.catalog.scheduled_queries import ScheduledQueries, expire_executions
from hms_gateway.catalog.schemas import Schemas
from hms_gateway.catalog.statistics.column_statistics import ColumnStatisticsMethods, StatisticsRules
from hms_gateway.catalog.tables.alter import CommitKeyValue, TableAlterations
from hms_gateway.catalog.tables.catalogs import Catalogs
from hms_gateway.catalog.tables.databases import Databases, create_default_database
from hms_gateway.catalog.tables.service import TableService
from hms_gateway.catalog.tables.tables import Tables
from hms_gateway.catalog.tables.truncate import Truncations
from hms_gateway.catalog.tokens import DelegationTokens, SealedTokens, Tokens, TokenTimes
from hms_gateway.catalog.types import Fields, Types
from hms_gateway.composition.health import (
    EVERY_SECONDS,
    FIRST_SECONDS,
    Health,
    Presence,
    check_ready,
    files_of,
    folders_of,
)
from hms_gateway.composition.places import database_url, directories
from hms_gateway.gateway.application import Gateway, SecondaryListener
from hms_gateway.gateway.assembly import EdgeComponents, build_gateway, served_certificate
from hms_gateway.gateway.auth.passwords import UserFile
from hms_gateway.gateway.auth.users import UserFileError, list_users
from hms_gateway.gateway.certificates.served_certificate import LOOK_EVERY_SECONDS
from hms_gateway.gateway.logins import build_groups, impersonation_rules, user_file
from hms_gateway.gateway.observability.figures import Watched
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.handlers.locks import KeyOrder, Leases, Locks
from hms_gateway.handlers.rights.answers import ExplainedRights
from hms_gateway.handlers.rights.authorizer import Authorizer, NoGrants
from hms_gateway.handlers.rights.locations import LocationCheck
from hms_gateway.handlers.service import ChangeTrails, Configuration, FileMetadata, Service
from hms_gateway.handlers.steps import (
    BoundedTexts,
    ImplicitLocks,
    NotedChanges,
    PresentedLease,
    RecordedCalls,
    RequiredLists,
)
from hms_gateway.handlers.transactions import Compactions, Transactions
from hms_gateway.iceberg import METHODS as ICEBERG_METHODS
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.ports.store import FileSystemError, StoreError, StoreFailure, StoreUnavailable
from hms_gateway.metastore.vocabulary.locations import normalize_location
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.binding import Step
from hms_gateway.rpc.call import Failed, Releases, Unavailable
from hms_gateway.rpc.idl.method_facts import lasting_rights
from hms_gateway.rpc.memory import DecodedMemory
from hms_gateway.rpc.processor import MessageProcessor, Processor
from hms_gateway.rpc.repeatable import RepeatableProcessor
from hms_gateway.rpc.structs import METHODS, IcebergHistory, MetaException, Struct, Table
from hms_gateway.rpc.structs.catalogs import InvalidCatalogMarker
from hms_gateway.rpc.wire import Codecs, make_codecs
from hms_gateway.runtime.addresses import host_of
from hms_gateway.runtime.clock import Chore, Clock, Housekeeping, SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.sealing import Seal, SealingError
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.runtime.shares import Holder
from hms_gateway.storage.dialects.integrity import IntegrityCheck, IntegrityWatch, sqlite_file
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.writing.store import SqlStore, open_store
from hms_gateway.txn.services.compaction import CompactionService, Expiry
from hms_gateway.txn.services.leases import LeaseService
from hms_gateway.txn.services.locks import LockService
from hms_gateway.txn.services.materialized_views import RebuildService, ViewFreshnessService
from hms_gateway.txn.services.settings import LeaseSettings, TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService

if TYPE_CHECKING:
    from hms_gateway.iceberg.catalog import Catalog as IcebergCatalog
    from hms_gateway.iceberg.processor import RestProcessor

EXPIRY_SECONDS = 60.0
TOKEN_EXPIRY_SECONDS = 600.0
# A call that is stopped by something past its time removes it at once; this is for what stops no call.
TXN_EXPIRY_SECONDS = 30.0
DROPPED_SECONDS = 5.0
# Clients repeat a call within minutes; an outcome is of no use after that.
OUTCOME_SECONDS = 86_400


class Metastore(msgspec.Struct, frozen=True):
    """Everything behind the edge: the store, the handlers over it, and what is to be done now and then."""

    store: SqlStore
    codecs: Codecs
    processor: MessageProcessor
    events: EventMaker
    users: UserFile
    chores: Sequence[Chore] = ()
    releases: Releases = msgspec.field(default_factory=Releases)
    rights: PolicyKeeper | None = None
    delegation: DelegationTokens | None = None
    iceberg: "Callable[[], RestProcessor] | None" = None


def build_metastore(settings: Settings, counters: Callable[[], Mapping[str, int]] = dict) -> Metastore:
    """Open the database, mend what a crash left, and bind the handlers. `counters` gives the calls by method.

    Raises StoreError where the database cannot be used, SettingsError for roots that would open what they must not,
    BindingError when IDL and handlers disagree.
    """
    files = directories(settings)
    codecs = make_codecs(settings.limits)
    clock = SystemClock()
    store = open_store(database_url(settings), clock, settings.limits, settings.database_connections_max)
    rules = MetastoreSettings(
        warehouse_location=settings.warehouse_location,
        event_seconds_max=settings.metastore.event_seconds_max,
        limit_partition_request=settings.metastore.partitions_per_reply_max or -1,
        refuses_incompatible_column_changes=settings.metastore.refuse_incompatible_column_changes,
        column_change_serdes=settings.column_change_serdes,
        hive_configuration=_hive_configuration(settings),
    )

    def to_tjson(struct: Struct) -> bytes:
        encoded = codecs.tjson.encode(struct)
        assert isinstance(encoded, bytes)
        return encoded

    releases = Releases()
    try:
        events = EventMaker(clock, to_tjson)
        lease_settings = _lease_settings(settings)
        leases = LeaseService(store, lease_settings, releases.announce)
        memory = DecodedMemory(settings.limits)
        catalog = cache(partial(_iceberg_catalog, settings, store, files, clock, rules, events, memory))
        handlers = [Service(clock, counters), *_handlers(store, files, clock, rules, events, to_tjson, settings.limits)]
        handlers.append(People(store, partial(_iceberg_history, catalog, memory), settings.limits))
        handlers += _txn_handlers(store, settings, CommitKeyValue(events))
        handlers.append(Leases(leases, KeyOrder(store, lease_settings.objects_max)))
        tokens = SealedTokens(store, Seal(settings.secrets_key_path))
        users = user_file(settings)
        delegation = _delegation_tokens(settings, store, tokens, clock, users)
        handlers.append(Tokens(store, tokens, frozenset(settings.administrators), delegation, _may_act(settings)))
        handlers.append(ChangeTrails(store.changes_made, frozenset(settings.administrators)))
        bytes_max = settings.limits.cached_reply_bytes_max
        steps, keeper = call_steps(settings, store)
        handlers.append(_explained_rights(settings, store, keeper))
        processor = Processor(handlers, translated, bytes_max, steps, limits=settings.limits, memory=memory)
    except BaseException:
        store.close()
        raise
    repeatable = RepeatableProcessor(processor, store)
    chores = (
        *_chores(store, clock, rules, settings),
        Chore("seal tokens", EXPIRY_SECONDS, tokens.seal_all),
    )
    if delegation is not None:
        chores = (*chores, Chore("expire delegation tokens", TOKEN_EXPIRY_SECONDS, delegation.expire))
    iceberg = partial(_iceberg, settings, catalog, processor, memory, store)
    return Metastore(store, codecs, repeatable, events, users, chores, releases, keeper, delegation, iceberg)


# Of the room iceberg nothing is loaded before it is asked, since most gateways never are.


def _iceberg_catalog(
    settings: Settings,
    store: SqlStore,
    files: Directories,
    clock: Clock,
    rules: MetastoreSettings,
    events: EventMaker,
    memory: DecodedMemory,
) -> "IcebergCatalog":
    from hms_gateway.iceberg.catalog import Catalog
    from hms_gateway.iceberg.commits import Commits
    from hms_gateway.iceberg.files import MetadataFiles

    metadata = MetadataFiles(files, settings.limits, memory)
    commits = Commits(store, metadata, events, clock, _txn_settings(settings).timeout_ms)
    tables = TableService(store, files, clock, rules, events)
    return Catalog(store, tables, Warehouse(rules, files), files, metadata, commits, events, clock)


def _iceberg(
    settings: Settings,
    catalog: "Callable[[], IcebergCatalog]",
    processor: Processor,
    memory: DecodedMemory,
    store: SqlStore,
) -> "RestProcessor":
    from hms_gateway.gateway.auth.issuers import TokenEndpoint
    from hms_gateway.iceberg.processor import RestProcessor
    from hms_gateway.iceberg.routes import RestCatalog

    issuers = {issuer.issuer: TokenEndpoint(issuer) for issuer in settings.token_issuers.values()}
    rest = RestCatalog(catalog(), processor.perform, store, translated, OUTCOME_SECONDS, issuers)
    return RestProcessor(rest, store, memory)


def _iceberg_history(
    catalog: "Callable[[], IcebergCatalog]", memory: DecodedMemory, holder: Holder, table: Table, most: int
) -> IcebergHistory:
    from hms_gateway.iceberg.history import history_of

    with memory.holding(holder):
        return history_of(catalog(), table, most)


def build(settings: Settings) -> Gateway:
    """The gateway one process serves. Raises CertificateError, and as `build_metastore`."""
    metrics = Metrics({*METHODS, *ICEBERG_METHODS})
    certificate = served_certificate(settings, metrics)
    metastore = build_metastore(settings, metrics.calls_by_method)
    if settings.otel.endpoint is not None:
        metastore.store.note_statements()
    chores = list(metastore.chores)
    if certificate is not None:
        chores.append(Chore("look at the certificate", LOOK_EVERY_SECONDS, certificate.look))
    port = settings.thrift_port
    cache = ReplyCache(
        metastore.store,
        settings.limits,
        metastore.store.read,
        keeps_apart=settings.metastore.require_write_id_lists,
        generation=None if metastore.rights is None else metastore.rights.rules.look,
    )
    metrics.watch(partial(_watched, metastore.store, cache))
    database = sqlite_file(database_url(settings))
    health = Health(folders_of(settings), files_of(settings))
    presence = Presence(metastore.store, lambda: cache.version, settings.port)
    metrics.watch(presence.watched)
    leave: list[Callable[[], None]] = []
    if metastore.store.knows_gateways:
        chores.append(Chore("say that this gateway is there", EVERY_SECONDS, presence.note, FIRST_SECONDS))
        leave.append(presence.leave)
    housekeeping = Housekeeping([msgspec.structs.replace(each, do=partial(_unless_away, each.do)) for each in chores])
    integrity = _integrity_watch(database, metrics)
    stops = [] if integrity is None else [integrity.stop]
    gateway = build_gateway(
        settings,
        codecs=metastore.codecs,
        processor=metastore.processor,
        cache=cache,
        ready=partial(check_ready, metastore.store),
        health=health.figures,
        metrics=metrics,
        certificate=certificate,
        releases=metastore.releases,
        newest_event=metastore.store.version,
        database=metastore.store.system,
        users=metastore.users,
        token_password=None if metastore.delegation is None else metastore.delegation.password,
        on_stop=[*stops, housekeeping.stop, *leave, cache.close, metastore.store.close],
        iceberg=metastore.iceberg,
        secondary_listener=None if port is None else lambda edge: _thrift_port(settings, port, metastore.codecs, edge),
    )
    housekeeping.start()
    if integrity is not None:
        integrity.start()
    return gateway


def _watched(store: SqlStore, cache: ReplyCache) -> Watched:
    """What the store and the reply cache count themselves."""
    counters: dict[str, float] = {}
    for kind, count in store.times.counts.items():
        counters |= {f"database_{kind}s": count, f"database_{kind}_seconds": store.times.seconds[kind]}
    counters["commits_unknown"] = store.availability.lost_commits
    gauges: dict[str, float] = {
        "writes_queued": store.writes_waiting,
        "cache_bytes": cache.size_bytes,
        "cache_replies": len(cache),
        "database_up": int(store.availability.is_up),
        "database_connections_in_use": store.connections_in_use,
        "database_connections_max": store.connections_max,
    }
    return Watched(counters, gauges)


def _unless_away(do: Callable[[], object]) -> None:
    """A chore during an outage, of which the store has said that it began."""
    with contextlib.suppress(StoreUnavailable):
        do()


def _integrity_watch(file: Path | None, metrics: Metrics) -> IntegrityWatch | None:
    """For SQLite: other databases check their pages themselves."""
    if file is None:
        return None

    def checked(is_damaged: bool) -> None:
        metrics.database_damaged = int(is_damaged)

    return IntegrityWatch(IntegrityCheck(file), checked)


def _thrift_port(settings: Settings, port: int, codecs: Codecs, edge: EdgeComponents) -> SecondaryListener:
    # Only here, since most gateways have no Thrift port.
    from hms_gateway.composition.thrift_port import ThriftPort

    return ThriftPort(settings, port, codecs, edge)


def _delegation_tokens(
    settings: Settings, store: SqlStore, tokens: SealedTokens, clock: Clock, users: UserFile
) -> DelegationTokens | None:
    if not settings.delegation_tokens:
        return None
    times = TokenTimes(settings.delegation_token_seconds_max, settings.delegation_token_renewal_seconds)
    return DelegationTokens(store, tokens, clock, times, settings.limits, users.entry_of)


def _may_act(settings: Settings) -> Callable[[str, str, str], str | None]:
    """Why a user may not act for another one from an address, None where it may."""
    rules = impersonation_rules(settings)

    def objection(user: str, other: str, address: str) -> str | None:
        rule = rules.get(user)
        # That of a Thrift client has its port behind it.
        return "does not exist" if rule is None else rule.objection(other, host_of(address))

    return objection


def call_steps(settings: Settings, store: SqlStore) -> tuple[Sequence[Step], PolicyKeeper | None]:
    """Steps of a call on the way to its handler, in this order; where rights are enforced the policy's keeper.

    Raises SettingsError for rules that cannot be read.
    """
    administrators = frozenset(settings.administrators)
    has_rights = settings.authorization == "grants"
    keeper: PolicyKeeper | None = None
    if has_rights:
        rights, keeper = _rights(settings, store)
    else:
        rights = Authorizer(NoGrants(), store, administrators, rights=lasting_rights())
    steps: list[Step] = [
        BoundedTexts(settings.limits),
        PresentedLease(is_owned=has_rights),
        *_implicit_locks(settings),
        NotedChanges(),
        RecordedCalls(administrators),
        rights,
    ]
    if settings.metastore.require_write_id_lists:
        # After rights, since the refusal says what the table is.
        steps.append(RequiredLists(store))
    return steps, keeper


def _rights(settings: Settings, store: SqlStore) -> tuple[Authorizer, PolicyKeeper]:
    keeper = policy_keeper(settings, store)
    is_open = settings.authorization_locations == "open"
    locations = None if is_open else partial(LocationCheck, store, normalize_location(settings.warehouse_location))
    return Authorizer(keeper, store, frozenset(settings.administrators), locations), keeper


def _implicit_locks(settings: Settings) -> Sequence[ImplicitLocks]:
    """The step that locks what a change is about; none where changes take no locks."""
    if settings.locks_implicit == "off":
        return ()
    retries = settings.locks_implicit_retries if settings.locks_implicit == "wait" else 0
    pause_seconds = settings.locks_implicit_pause_seconds
    return [ImplicitLocks(_txn_settings(settings).timeout_ms, retries * pause_seconds, pause_seconds)]


def _explained_rights(settings: Settings, store: SqlStore, keeper: PolicyKeeper | None) -> ExplainedRights:
    """Raises SettingsError for groups that cannot be read."""
    groups = build_groups(settings)

    def keeper_of_now() -> PolicyKeeper:
        try:
            return keeper or policy_keeper(settings, store)
        except SettingsError as error:
            raise MetaException(str(error)) from error

    def users_of_now() -> list[str] | None:
        try:
            return list_users(settings.users_path)
        except UserFileError:
            return None

    return ExplainedRights(
        store,
        frozenset(settings.administrators),
        keeper_of_now,
        (lambda user: frozenset()) if groups is None else groups.of,
        users_of_now,
        is_enforced=keeper is not None,
    )


def policy_keeper(settings: Settings, store: SqlStore) -> PolicyKeeper:
    """Knows who may do what by catalog, settings and rules. Raises SettingsError for rules that cannot be read."""
    try:
        rules = RulesFile(settings.authorization_rules_file)
    except RulesError as error:
        raise SettingsError(f"authorization_rules_file: {error}") from error
    return PolicyKeeper(store, frozenset(settings.administrators), rules)


def translated(error: Exception) -> Exception:
    """Errors of storage, file systems, seals and names, as the peer is to see them; others are bugs and stay."""
    if isinstance(error, StoreUnavailable):
        return Unavailable(str(error), error.detail, error.limit)
    if isinstance(error, (StoreFailure, SealingError)):
        return Failed(str(error))
    if isinstance(error, (StoreError, FileSystemError, InvalidCatalogMarker)):
        return MetaException(str(error))
    return error


def _hive_configuration(settings: Settings) -> Mapping[str, str]:
    """Settings that the rules do not know and Hive's clients may ask for, under Hive's names."""
    txn_settings = _txn_settings(settings)
    timeout_ms = txn_settings.timeout_ms
    return {
        "hive.txn.timeout": f"{timeout_ms}ms" if timeout_ms % 1000 else f"{timeout_ms // 1000}s",
        "hive.max.open.txns": str(txn_settings.open_txns_max),
        "hive.txn.max.open.batch": str(txn_settings.batch_max),
        "hive.metastore.server.max.message.size": str(settings.limits.body_bytes_max),
        # Not of Hive: jobs ask for it, and touch files below these only.
        "hive.metastore.file.roots": msgspec.json.encode(settings.roots).decode(),
    }


def _chores(store: SqlStore, clock: Clock, rules: MetastoreSettings, settings: Settings) -> Sequence[Chore]:
    txn_expiry_seconds = min(TXN_EXPIRY_SECONDS, settings.txn_timeout_seconds)
    later = [Chore("delete partitions of dropped tables", DROPPED_SECONDS, store.delete_dropped)]
    return (
        *(later if store.deletes_later else ()),
        Chore("forget outcomes", EXPIRY_SECONDS, lambda: store.forget_outcomes(clock.seconds() - OUTCOME_SECONDS)),
        Chore("expire events", EXPIRY_SECONDS, partial(expire_events, store, clock, rules)),
        Chore(
            "expire changes",
            EXPIRY_SECONDS,
            lambda: store.forget_changes(clock.seconds() - settings.audit_changes_seconds),
        ),
        Chore("expire transactions and locks", txn_expiry_seconds, Expiry(store, _txn_settings(settings)).expire),
        Chore("expire notes of query engines", EXPIRY_SECONDS, partial(expire_notes, store, clock, rules)),
        Chore("expire executions of queries", EXPIRY_SECONDS, partial(expire_executions, store, clock)),
    )


def _handlers(
    store: SqlStore,
    files: Directories,
    clock: Clock,
    rules: MetastoreSettings,
    events: EventMaker,
    to_tjson: Callable[[Struct], bytes],
    limits: Limits,
) -> list[object]:
    parts = (store, files, clock, rules, events)
    tables = TableService(*parts)
    statistics = StatisticsRules(clock, events)
    create_default_database(*parts)
    create_default_roles(store, clock, rules)
    DirectoryMoves(store, files).recover()
    return [
        Configuration(rules, limits),
        Catalogs(*parts),
        Databases(*parts),
        Fields(store),
        Tables(store, tables, statistics, events, limits),
        TableAlterations(*parts),
        Truncations(store, files, clock, events),
        MaterializedViews(store, clock, events, ViewFreshnessService(store)),
        Partitions(store, rules, to_tjson, limits),
        PartitionAdditions(store, files, clock, events, limits, statistics.of_new_partitions),
        PartitionChanges(store, files, clock, events, limits),
        PartitionDrops(store, files, events, limits),
        PartitionExchange(store, files, events),
        Roles(store, clock),
        Privileges(store, clock),
        Constraints(store, events, clock),
        ColumnStatisticsMethods(store, clock, events),
        Functions(store, clock, events),
        Indexes(store, clock, events, tables),
        Notifications(store, clock, events, limits),
        PartitionMarks(store, clock),
        Types(store),
        Properties(store),
        Schemas(store, clock),
        ResourcePlans(store),
        RuntimeRecords(store, clock),
        ScheduledQueries(store, clock),
        FileMetadata(),
    ]


def _txn_handlers(store: SqlStore, settings: Settings, marks: CommitKeyValue) -> list[object]:
    txn_settings = _txn_settings(settings)
    locks = LockService(store, txn_settings)
    transactions = TransactionService(store, locks, txn_settings)
    return [
        Locks(locks, KeyOrder(store, txn_settings.components_max)),
        Transactions(transactions, WriteIdService(store, txn_settings), RebuildService(store, txn_settings), marks),
        Compactions(CompactionService(store)),
    ]


def _txn_settings(settings: Settings) -> TxnSettings:
    return TxnSettings(
        timeout_ms=round(settings.txn_timeout_seconds * 1000),
        components_max=settings.limits.lock_components_max,
        txns_per_call_max=settings.limits.txns_per_call_max,
        administrators=frozenset(settings.administrators),
    )


def _lease_settings(settings: Settings) -> LeaseSettings:
    return LeaseSettings(
        administrators=frozenset(settings.administrators),
        duration_seconds_max=settings.lease_seconds_max,
        wait_seconds_max=settings.lease_wait_seconds_max,
    )
