"""Reads the objects of a metastore, of whichever version: what it does not know, it does not have."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.connection import CatalogCaller, named_tables
from hms_gateway.rpc.structs import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AllTableConstraintsRequest,
    CheckConstraintsRequest,
    ColumnStatisticsObj,
    Database,
    DefaultConstraintsRequest,
    ForeignKeysRequest,
    Function,
    GetPrincipalsInRoleRequest,
    GetValidWriteIdsRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    NoSuchObjectException,
    NotNullConstraintsRequest,
    Partition,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    Role,
    RolePrincipalGrant,
    Struct,
    Table,
    TableStatsRequest,
    TxnState,
    UniqueConstraintsRequest,
)
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType
from hms_gateway.txn.rules.write_ids import ValidIds, valid_txns_text

PARTITIONS_A_CALL: Final = 1_000
# Tables with more partitions are copied in chunks, by other tasks.
SMALL_PARTITIONS_MAX: Final = 1_000
STATISTICS_A_CALL: Final = 500
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


@dataclass(frozen=True, slots=True)
class CopiedConstraint:
    """How constraints of a kind are read and added; `field` is that of the answer, `name` that of a constraint."""

    field: str
    method: str
    request: Callable[[str, str], Struct]
    name: str
    adding: str
    adds: Callable[[Sequence[Any]], Struct]


CONSTRAINTS: Final = (
    CopiedConstraint(
        "primaryKeys",
        "get_primary_keys",
        lambda db, table: PrimaryKeysRequest(db_name=db, tbl_name=table),
        "pk_name",
        "add_primary_key",
        lambda listed: AddPrimaryKeyRequest(primaryKeyCols=list(listed)),
    ),
    CopiedConstraint(
        "uniqueConstraints",
        "get_unique_constraints",
        lambda db, table: UniqueConstraintsRequest(CATALOG, db, table),
        "uk_name",
        "add_unique_constraint",
        lambda listed: AddUniqueConstraintRequest(uniqueConstraintCols=list(listed)),
    ),
    CopiedConstraint(
        "notNullConstraints",
        "get_not_null_constraints",
        lambda db, table: NotNullConstraintsRequest(CATALOG, db, table),
        "nn_name",
        "add_not_null_constraint",
        lambda listed: AddNotNullConstraintRequest(notNullConstraintCols=list(listed)),
    ),
    CopiedConstraint(
        "defaultConstraints",
        "get_default_constraints",
        lambda db, table: DefaultConstraintsRequest(CATALOG, db, table),
        "dc_name",
        "add_default_constraint",
        lambda listed: AddDefaultConstraintRequest(defaultConstraintCols=list(listed)),
    ),
    CopiedConstraint(
        "checkConstraints",
        "get_check_constraints",
        lambda db, table: CheckConstraintsRequest(CATALOG, db, table),
        "dc_name",
        "add_check_constraint",
        lambda listed: AddCheckConstraintRequest(checkConstraintCols=list(listed)),
    ),
    # Last: the keys that they refer to have to be there.
    CopiedConstraint(
        "foreignKeys",
        "get_foreign_keys",
        lambda db, table: ForeignKeysRequest(foreign_db_name=db, foreign_tbl_name=table),
        "fk_name",
        "add_foreign_key",
        lambda listed: AddForeignKeyRequest(foreignKeyCols=list(listed)),
    ),
)


@dataclass
class Reader:
    """Reads one metastore; remembers which methods it does not have."""

    client: CatalogCaller
    _missing: set[str] = field(default_factory=set)

    def databases(self) -> list[Database]:
        return [self.client.call("get_database", name) for name in self.client.call("get_all_databases")]

    def database(self, name: str) -> Database | None:
        try:
            found: Database = self.client.call("get_database", name)
        except NoSuchObjectException:
            return None
        return found

    def table_names(self, database: str) -> list[str]:
        names: list[str] = self.client.call("get_all_tables", database)
        return names

    def tables(self, database: str, names: Sequence[str]) -> dict[str, Table]:
        """Those of the names that are there."""
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
        """Those of the names that are there."""
        if not names:
            return {}
        found = self.client.call("get_partitions_by_names", table.dbName, table.tableName, list(names))
        return named_partitions(table, found)

    def table_statistics(self, table: Table) -> list[ColumnStatisticsObj]:
        columns = columns_of(table)
        if not columns or is_view(table):
            return []
        request = TableStatsRequest(dbName=table.dbName, tblName=table.tableName, colNames=columns)
        found: list[ColumnStatisticsObj] = self.client.call("get_table_statistics_req", request).tableStats or []
        return found

    def partition_statistics(self, table: Table, names: Sequence[str]) -> dict[str, list[ColumnStatisticsObj]]:
        columns = columns_of(table)
        found: dict[str, list[ColumnStatisticsObj]] = {}
        if not columns or is_view(table):
            return {}
        for first in range(0, len(names), STATISTICS_A_CALL):
            some = list(names[first : first + STATISTICS_A_CALL])
            request = PartitionsStatsRequest(
                dbName=table.dbName, tblName=table.tableName, colNames=columns, partNames=some
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
            answer = self._known(kind.method, kind.request(database, table))
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
        """Which write ids of an ACID table count; None where it has none.

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
        """What a method answers; None where the metastore does not have it."""
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
    """Those up to the highest that was given, without those that do not count."""

    highest: int
    invalid: tuple[int, ...] = ()

    def text(self, database: str, table: str) -> str:
        """As a ValidWriterWriteIdList has it: all that do not count are aborted ones."""
        return f"{database}.{table}:{self.highest}:{2**63 - 1}::{','.join(map(str, self.invalid))}"


def partitions_of(reader: Reader, table: Table) -> tuple[Mapping[str, Partition] | None, Sequence[Sequence[str]]]:
    """All of a table, or None and their names in chunks where there are many."""
    if not table.partitionKeys:
        return {}, ()
    found = reader.partitions_up_to(table, SMALL_PARTITIONS_MAX)
    if found is not None:
        return named_partitions(table, found), ()
    names = reader.partition_names(table)
    return None, [names[first : first + PARTITIONS_A_CALL] for first in range(0, len(names), PARTITIONS_A_CALL)]


def constraints_by_name(found: Mapping[str, Sequence[Struct]]) -> dict[str, Struct]:
    named = {}
    for kind in CONSTRAINTS:
        for one in found.get(kind.field, ()):
            said = msgspec.to_builtins(one)
            columns = [str(said.get(name)) for name in ("column_name", "fkcolumn_name", "key_seq") if said.get(name)]
            named[f"{kind.field} {said.get(kind.name)} {' '.join(columns)}"] = one
    return named


def named_partitions(table: Table, partitions: Sequence[Partition]) -> dict[str, Partition]:
    keys = [key.name or "" for key in table.partitionKeys or ()]
    return {make_name(keys, partition.values or []): partition for partition in partitions}


def columns_of(table: Table) -> list[str]:
    return [column.name or "" for column in (table.sd.cols if table.sd else None) or ()]


def is_view(table: Table) -> bool:
    return (table.tableType or "").endswith("_VIEW")


def is_acid(parameters: Mapping[str, str] | None) -> bool:
    return (parameters or {}).get("transactional", "").lower() == "true"
