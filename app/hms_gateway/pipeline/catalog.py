"""Objects of a metastore of any version: read in pieces of bounded size, added and dropped; events of its log."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.errors import EventsExpired
from hms_gateway.rpc.structs import (
    STRUCTS,
    AddPartitionsRequest,
    AllTableConstraintsRequest,
    ClientCapabilities,
    ClientCapability,
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    DropPartitionsRequest,
    EnvironmentContext,
    FieldSchema,
    ForeignKeysRequest,
    Function,
    GetPrincipalsInRoleRequest,
    GetTablesRequest,
    GetValidWriteIdsRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    NotificationEvent,
    NotificationEventRequest,
    Partition,
    PartitionsStatsRequest,
    PartitionValuesRequest,
    RequestPartsSpec,
    Role,
    RolePrincipalGrant,
    Struct,
    Table,
    TableStatsRequest,
    TxnState,
)
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, catalog_of, marked, plain_name, prefix_of
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType
from hms_gateway.txn.rules.write_ids import ValidIds, valid_txns_text

Item = TypeVar("Item")

PARTITIONS_A_CALL: Final = 1_000
# Where a table has this, Spark keeps the real location among the serde's parameters: Hive shall make no directory.
SPARK_NO_LOCATION: Final = "-__PLACEHOLDER__"
# The parameter in which job `compact` notes which directory it has left.
REPLACES: Final = "hms.compact.replaces"
# Tables with more partitions are copied in chunks, by other tasks.
SMALL_PARTITIONS_MAX: Final = 1_000
STATISTICS_A_CALL: Final = 500
EVENTS_A_CALL: Final = 1_000
_SHORT_MAX: Final = 2**15 - 1
CATALOG: Final = "hive"
_GRANTED_ON: Final = (
    HiveObjectType.GLOBAL,
    HiveObjectType.DATABASE,
    HiveObjectType.TABLE,
    HiveObjectType.PARTITION,
    HiveObjectType.COLUMN,
)
BUILT_IN_ROLES: Final = frozenset(("admin", "public"))


class CatalogCaller(Protocol):
    """A client of a metastore."""

    def call(self, name: str, /, *arguments: Any, **named: Any) -> Any:
        """The value of a method; raises the declared exception."""


def is_elsewhere(database: str) -> bool:
    """True for the database of another catalog than the client's."""
    return database.startswith("@")


def databases_everywhere(client: CatalogCaller, own: str = "") -> list[str]:
    """The names of all databases of the client's `own` catalog, and `@catalog#database` of others."""
    names: list[str] = list(client.call("get_all_databases"))
    try:
        catalogs = client.call("get_catalogs").names or ()
    except ApplicationError as error:
        if error.type is not ApplicationErrorType.UNKNOWN_METHOD:
            raise
        # Before Hive 3.1.
        return names
    for catalog in catalogs:
        if catalog != (own or DEFAULT_CATALOG):
            names += [marked(catalog, name) for name in client.call("get_databases", marked(catalog, "*"))]
    return names


def named_tables(client: CatalogCaller, database: str, names: Sequence[str]) -> list[Table]:
    """Tables of these names, those that are there. Only the request says to Hive 3 that insert-only ones are known.

    Those of `@catalog#database` have that as their database.
    """
    capabilities = ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES])
    try:
        request = GetTablesRequest(dbName=database, tblNames=list(names), capabilities=capabilities)
        if not is_elsewhere(database):
            return client.call("get_table_objects_by_name_req", request).tables or []
        if prefix_of(database):
            # Hive reads no marker in a struct. That of the default catalog is only sent by a client of another one.
            request.dbName, request.catName = plain_name(database), catalog_of(database)
        tables = client.call("get_table_objects_by_name_req", request).tables or []
        return [msgspec.structs.replace(table, dbName=database) for table in tables]
    except ApplicationError as error:
        if error.type is not ApplicationErrorType.UNKNOWN_METHOD:
            raise
    # Before Hive 2.3.
    found: list[Table] = client.call("get_table_objects_by_name", database, list(names))
    return found


class CopiedConstraint(NamedTuple):
    """Constraints of a kind: the noun in names of methods, the field with a constraint's name."""

    noun: str
    name: str

    @property
    def field(self) -> str:
        """The field of an answer."""
        return f"{self._kind[0].lower()}{self._kind[1:]}s"

    @property
    def _kind(self) -> str:
        return self.noun.title().replace("_", "")

    def request(self, database: str, table: str) -> Any:
        """Asks for those of a table."""
        if self.noun == "foreign_key":
            return ForeignKeysRequest(foreign_db_name=database, foreign_tbl_name=table)
        return STRUCTS[f"{self._kind}sRequest"](catName=CATALOG, db_name=database, tbl_name=table)

    def adding(self, columns: list[Any]) -> Any:
        """Adds a list."""
        made: Any = STRUCTS[f"Add{self._kind}Request"]
        return made(columns)


# The last ones refer to keys, which have to be there.
CONSTRAINTS: Final = (
    CopiedConstraint("primary_key", "pk_name"),
    CopiedConstraint("unique_constraint", "uk_name"),
    CopiedConstraint("not_null_constraint", "nn_name"),
    CopiedConstraint("default_constraint", "dc_name"),
    CopiedConstraint("check_constraint", "dc_name"),
    CopiedConstraint("foreign_key", "fk_name"),
)


@dataclass
class CatalogReader:
    """Reads one metastore; remembers which methods it does not have."""

    client: CatalogCaller
    _missing: set[str] = field(default_factory=set)

    def databases(self) -> list[Database]:
        return [self.client.call("get_database", name) for name in self.client.call("get_all_databases")]

    def tables(self, database: str, names: Sequence[str]) -> dict[str, Table]:
        """The existing ones among the names."""
        if not names:
            return {}
        found = named_tables(self.client, database, names)
        return {(table.tableName or "").lower(): table for table in found}

    def partitions_up_to(self, table: Table, count: int) -> list[Partition] | None:
        """All partitions of a table in one call, None when there are more than `count`, or it is refused."""
        try:
            found: list[Partition] = self.client.call(
                "get_partitions", table.dbName, table.tableName, min(count + 1, _SHORT_MAX)
            )
        except MetaException:
            # The source limits how many partitions a call may ask for.
            return None
        return found if len(found) <= count else None

    def partition_names(self, table: Table) -> list[str]:
        if not table.partitionKeys:
            return []
        names: list[str] = self.client.call("get_partition_names", table.dbName, table.tableName, -1)
        return names

    def partitions(self, table: Table, names: Sequence[str]) -> dict[str, Partition]:
        """The existing ones among the names."""
        if not names:
            return {}
        found = self.client.call("get_partitions_by_names", table.dbName, table.tableName, list(names))
        return named_partitions(table, found)

    def table_statistics(self, table: Table) -> list[ColumnStatisticsObj]:
        columns = columns_of(table)
        if not columns or table.tableType == "VIRTUAL_VIEW":
            return []
        request = TableStatsRequest(dbName=table.dbName, tblName=table.tableName, colNames=columns)
        found: list[ColumnStatisticsObj] = self.client.call("get_table_statistics_req", request).tableStats or []
        return found

    def partition_statistics(self, table: Table, names: Sequence[str]) -> dict[str, list[ColumnStatisticsObj]]:
        columns = columns_of(table)
        found: dict[str, list[ColumnStatisticsObj]] = {}
        if not columns or table.tableType == "VIRTUAL_VIEW":
            return {}
        for some in cut(names, STATISTICS_A_CALL):
            request = PartitionsStatsRequest(
                dbName=table.dbName, tblName=table.tableName, colNames=columns, partNames=list(some)
            )
            found.update(self.client.call("get_partitions_statistics_req", request).partStats or {})
        return found

    def constraints(self, database: str, table: str) -> dict[str, list[Struct]]:
        """By the field of `CONSTRAINTS`."""
        together = self._known("get_all_table_constraints", AllTableConstraintsRequest(database, table, CATALOG))
        if together is not None:
            lists = together.allTableConstraints
            return {kind.field: listed for kind in CONSTRAINTS if (listed := getattr(lists, kind.field))}
        found: dict[str, list[Struct]] = {}
        for kind in CONSTRAINTS:
            answer = self._known(f"get_{kind.noun}s", kind.request(database, table))
            listed = [] if answer is None else getattr(answer, kind.field) or []
            if listed:
                found[kind.field] = listed
        return found

    def functions(self) -> list[Function]:
        found: list[Function] = self.client.call("get_all_functions").functions or []
        return found

    def roles(self) -> list[Role]:
        """A metastore shows when a role was made and by whom only to those who have it."""
        grants, found = self.role_grants(), {}
        for member in {(grant.principalName, grant.principalType) for grant in grants}:
            found.update({role.roleName: role for role in self.client.call("list_roles", *member)})
        names = [name for name in self.client.call("get_role_names") if name not in BUILT_IN_ROLES]
        return [found.get(name) or Role(roleName=name) for name in names]

    def role_grants(self) -> list[RolePrincipalGrant]:
        found: list[RolePrincipalGrant] = []
        for role in self.client.call("get_role_names"):
            answer = self._known("get_principals_in_role", GetPrincipalsInRoleRequest(roleName=role))
            found += [] if answer is None else answer.principalGrants or []
        return found

    def grants(self) -> Iterator[HiveObjectPrivilege]:
        """Everything that is granted on anything."""
        for kind in _GRANTED_ON:
            yield from self._known("list_privileges", None, None, HiveObjectRef(objectType=kind)) or ()

    def transactions_seen(self) -> int:
        """The highest transaction id that was given."""
        answer = self._known("get_open_txns")
        return 0 if answer is None else answer.txn_high_water_mark or 0

    def write_ids(self, database: str, table: str) -> "WriteIds | None":
        """The write ids of an ACID table that count; None where it has none.

        Before Hive 3 the ids of transactions were those of writes.
        """
        seen = self._known("get_open_txns_info")
        if seen is None:
            return None
        highest = seen.txn_high_water_mark or 0
        txns = sorted((txn.id, txn.state == TxnState.ABORTED) for txn in seen.open_txns or ())
        open_ids, aborted_ids = (tuple(id for id, ended in txns if ended is wanted) for wanted in (False, True))
        # 3.1 wants to be told which transactions the caller sees.
        seen_text = valid_txns_text(ValidIds(highest, open_ids, aborted_ids))
        request = GetValidWriteIdsRequest(fullTableNames=[f"{database}.{table}"], validTxnList=seen_text)
        answer = self._known("get_valid_write_ids", request)
        if answer is None:
            return WriteIds(highest, tuple(id for id, _ in txns)) if highest else None
        for one in answer.tblValidWriteIds or ():
            if one.writeIdHighWaterMark:
                return WriteIds(one.writeIdHighWaterMark, tuple(sorted(one.invalidWriteIds or ())))
        return None

    def _known(self, name: str, *arguments: Any) -> Any:
        """The answer of a method; None where the metastore does not have it."""
        if name in self._missing:
            return None
        try:
            return self.client.call(name, *arguments)
        except ApplicationError as error:
            if error.type is not ApplicationErrorType.UNKNOWN_METHOD:
                raise
            self._missing.add(name)
            return None


@dataclass(frozen=True, slots=True)
class WriteIds:
    """All write ids up to the highest that was given, without those that do not count."""

    highest: int
    invalid: tuple[int, ...] = ()

    def text(self, database: str, table: str) -> str:
        """Text in the form of a ValidWriterWriteIdList: all that do not count are aborted ones."""
        return f"{database}.{table}:{self.highest}:{2**63 - 1}::{','.join(map(str, self.invalid))}"


def partitions_of(
    reader: CatalogReader, table: Table
) -> tuple[Mapping[str, Partition] | None, Sequence[Sequence[str]]]:
    """All of a table, or None and their names in chunks where there are many."""
    if not table.partitionKeys:
        return {}, ()
    found = reader.partitions_up_to(table, SMALL_PARTITIONS_MAX)
    if found is not None:
        return named_partitions(table, found), ()
    return None, list(cut(reader.partition_names(table), PARTITIONS_A_CALL))


def partitions_or_table(
    client: CatalogCaller, table: Table, names: Sequence[str]
) -> Iterator[tuple[str, Partition | Table]]:
    """Partitions by their names, or the table itself by an empty one if it has no keys."""
    if table.partitionKeys:
        yield from CatalogReader(client).partitions(table, names).items()
    else:
        yield "", table


def constraints_by_name(found: Mapping[str, Sequence[Struct]]) -> dict[str, Struct]:
    named = {}
    for kind in CONSTRAINTS:
        for one in found.get(kind.field, ()):
            said = msgspec.to_builtins(one)
            columns = [str(said.get(name)) for name in ("column_name", "fkcolumn_name", "key_seq") if said.get(name)]
            named[f"{kind.field} {said.get(kind.name)} {' '.join(columns)}"] = one
    return named


def changed_fields(before: Any, after: Any) -> Iterator[tuple[str, str | None, str | None]]:
    """Fields of two objects as values of JSON that differ, in order: path, text before and after, None if unset.

    Paths are as `sd.serdeInfo.name`, `parameters.numRows`, `sd.cols[price].type`.
    """
    old, new = dict[str, str](), dict[str, str]()
    _flatten("", before, old)
    _flatten("", after, new)
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) != new.get(path):
            yield path, old.get(path), new.get(path)


def _flatten(path: str, value: Any, found: dict[str, str]) -> None:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            _flatten(f"{path}.{name}" if path else name, each, found)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        names = [str(each.get("name", at)) for at, each in enumerate(value)]
        distinct = names if len(set(names)) == len(names) else [str(at) for at in range(len(names))]
        found.update({f"{path}[]": ", ".join(distinct)} if distinct == names and "name" in value[0] else {})
        for name, each in zip(distinct, value, strict=True):
            _flatten(f"{path}[{name}]", each, found)
    elif path:
        found[path] = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def named_partitions(table: Table, partitions: Sequence[Partition]) -> dict[str, Partition]:
    keys = [key.name or "" for key in table.partitionKeys or ()]
    return {make_name(keys, partition.values or []): partition for partition in partitions}


def columns_of(table: Table) -> list[str]:
    return [column.name or "" for column in (table.sd.cols if table.sd else None) or ()]


def is_view(table: Table) -> bool:
    return (table.tableType or "").endswith("_VIEW")


def is_acid(parameters: Mapping[str, str] | None) -> bool:
    return (parameters or {}).get("transactional", "").lower() == "true"


Wants = Callable[..., bool]


def table_names(
    client: CatalogCaller, wants: Wants = lambda *names: True, databases: Sequence[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Database and name of the tables that are wanted: `wants(database)` and `wants(database, table)`."""
    for database in client.call("get_all_databases") if databases is None else databases:
        if wants(database):
            for table in client.call("get_all_tables", database):
                if wants(database, table):
                    yield database, table


def partition_values(client: CatalogCaller, table: Table, text: str) -> list[list[str]]:
    """Values of the partitions that satisfy a filter (docs/filters.md), which a gateway escapes as in names.

    Raises MetaException when the text is not a filter of the table, NoSuchObjectException when the table is gone.
    """
    request = PartitionValuesRequest(
        dbName=table.dbName,
        tblName=table.tableName,
        partitionKeys=table.partitionKeys,
        applyDistinct=False,
        filter=text,
    )
    return [row.row for row in client.call("get_partition_values", request).partitionValues]


def columns_once(partitions: Sequence[Partition]) -> tuple[list[Partition], list[FieldSchema] | None]:
    """The partitions without the columns of the first one where theirs are the same, and these columns.

    A partition without columns would get them: then all stay as they are, and there are no common ones.
    """
    given = [partition.sd.cols if partition.sd else None for partition in partitions]
    if len(given) < 2 or not all(given):
        return list(partitions), None
    common = given[0]
    return [
        _without_columns(partition) if columns == common else partition
        for partition, columns in zip(partitions, given, strict=True)
    ], common


def _without_columns(partition: Partition) -> Partition:
    assert partition.sd is not None
    return msgspec.structs.replace(partition, sd=msgspec.structs.replace(partition.sd, cols=None))


def add_partitions(
    client: CatalogCaller,
    table: Table,
    partitions: Sequence[Partition],
    context: EnvironmentContext | None = None,
    *,
    is_gateway: bool = True,
) -> None:
    """Add them to a table; existing ones are left as they are. A gateway is sent columns that they share once."""
    parts, columns = columns_once(partitions) if is_gateway else (list(partitions), None)
    request = AddPartitionsRequest(
        dbName=table.dbName,
        tblName=table.tableName,
        parts=parts,
        ifNotExists=True,
        needResult=False,
        environmentContext=context,
        partitionColSchema=columns,
    )
    client.call("add_partitions_req", request)


def drop_partitions(client: CatalogCaller, database: str, table: str, names: Sequence[str]) -> None:
    """Drop them without their data; missing ones are fine."""
    request = DropPartitionsRequest(
        dbName=database,
        tblName=table,
        parts=RequestPartsSpec(names=list(names)),
        deleteData=False,
        ifExists=True,
        needResult=False,
    )
    client.call("drop_partitions_req", request)


def statistics_of(table: Table, partition: str | None, found: Sequence[ColumnStatisticsObj]) -> ColumnStatistics:
    """Statistics of columns, described as those of a table or of one of its partitions."""
    description = ColumnStatisticsDesc(
        isTblLevel=partition is None, dbName=table.dbName, tableName=table.tableName, partName=partition
    )
    return ColumnStatistics(statsDesc=description, statsObj=list(found))


def location_of(described: Table | Partition) -> str:
    """Empty where there is none."""
    return (described.sd.location if described.sd else None) or ""


def cut(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    remaining = iter(items)
    while some := tuple(islice(remaining, size)):
        yield some


def latest(client: CatalogCaller) -> int:
    """The id of the newest event."""
    number: int = client.call("get_current_notificationEventId").eventId
    return number


def earliest(client: CatalogCaller) -> int:
    """The id before that of the oldest event that is kept."""
    found: Any = client.call("get_next_notification", NotificationEventRequest(lastEvent=0, maxEvents=1)).events
    return found[0].eventId - 1 if found else latest(client)


def events(client: CatalogCaller, after: int, last: int) -> Iterator[NotificationEvent]:
    """The events behind `after` up to `last`, each of them. Raises EventsExpired."""
    while after < last:
        request = NotificationEventRequest(lastEvent=after, maxEvents=min(EVENTS_A_CALL, last - after))
        found = client.call("get_next_notification", request).events
        for event in found:
            if event.eventId != after + 1:
                raise EventsExpired(_expired(after + 1, event.eventId - 1))
            after = event.eventId
            yield event
        if not found:
            raise EventsExpired(_expired(after + 1, last))


def _expired(first: int, last: int) -> str:
    return (
        f"events {first} to {last} are no longer in the metastore's notification log; begin a new query with a new"
        " checkpoint and startingEvent=earliest, and read the objects themselves once"
    )
