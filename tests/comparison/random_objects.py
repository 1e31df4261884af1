"""Random calls about what tables and databases have: statistics, functions, roles, privileges, constraints, indexes."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    ColumnStatisticsData,
    DropConstraintRequest,
    ForeignKeysRequest,
    Function,
    GetPrincipalsInRoleRequest,
    GetRoleGrantsForPrincipalRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    Index,
    LongColumnStatsData,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    SetPartitionsStatsRequest,
    SQLForeignKey,
    SQLPrimaryKey,
    TableStatsRequest,
)
from tests.comparison.objects import SOME_KEYS, descriptor, table
from tests.comparison.random_catalog import CatalogProgram
from tests.comparison.random_choices import Weighted
from tests.comparison.scripts.functions import function
from tests.comparison.scripts.privileges import COLUMN, DATABASE, GLOBAL, GROUP, ROLE, TABLE, USER
from tests.comparison.scripts.statistics import statistics
from tests.comparison.servers import Step, call

COLUMNS = ("id", "name", "ID", "more", "nosuch")
FUNCTIONS = ("f1", "f2")
ROLES = ("{own}reader", "{own}writer")
PRINCIPALS = (
    ("{own}ann", USER),
    ("{own}ben", USER),
    ("{own}reader", ROLE),
    ("{own}writer", ROLE),
    ("{own}staff", GROUP),
)
PRIVILEGES = ("select", "insert", "select,insert", "all")
GRANT, REVOKE = 1, 2
KEY_NAMES = tuple(f"{{own}}key{number}" for number in range(8))


class ObjectProgram(CatalogProgram):
    """With some calls of the catalog between them, which take tables away and bring others."""

    def _weighted(self) -> Iterator[Weighted]:
        yield from (
            (2, (self._create_table, self._drop_table, self._add_partition, self._append_partition, self._get_table)),
            (1, (self._alter_table, self._drop_partition, self._rename_partition, self._get_partition)),
            (1, (self._drop_database, self._create_database)),
            (4, (self._table_statistics, self._partition_statistics, self._read_statistics, self._aggregate)),
            (2, (self._delete_statistics, self._set_aggregated)),
            (3, (self._create_function, self._read_function, self._alter_function, self._drop_function)),
            (3, (self._change_role, self._grant_role, self._read_roles)),
            (4, (self._grant, self._revoke, self._read_privileges)),
            (2, (self._add_key, self._add_foreign_key, self._read_keys, self._drop_constraint)),
            (1, (self._add_index, self._read_index, self._alter_index, self._drop_index)),
        )

    # Statistics

    def _columns(self) -> list[str]:
        return [self._one(COLUMNS) for _ in range(self._random.randrange(1, 4))]

    def _sent(self, tbl_name: str, db_name: str, part_name: str | None = None) -> object:
        """Statistics of columns, each column once."""
        columns = list({name.lower(): name for name in self._columns()}.values())
        sent = statistics(tbl_name, *columns, part_name=part_name, db_name=db_name)
        for one in sent.statsObj or ():
            nulls, distinct = self._random.randrange(5), self._random.randrange(1, 50)
            low = self._random.randrange(-50, 50)
            one.statsData = ColumnStatisticsData(longStats=LongColumnStatsData(low, low + 100, nulls, distinct))
        return sent

    def _table_statistics(self) -> Step:
        db_name, tbl_name = self._exact()
        return call("update_table_column_statistics", self._sent(tbl_name, db_name))

    def _partition_statistics(self) -> Step:
        db_name, tbl_name = self._exact()
        return call("update_partition_column_statistics", self._sent(tbl_name, db_name, self._name()))

    def _set_aggregated(self) -> Step:
        db_name, tbl_name = self._exact()
        return call("set_aggr_stats_for", SetPartitionsStatsRequest([self._sent(tbl_name, db_name, self._name())]))

    def _read_statistics(self) -> Step:
        names, columns = (self._database(), self._table()), self._columns()
        return self._one(
            (
                call("get_table_column_statistics", *names, columns[0]),
                call("get_partition_column_statistics", *names, self._name(), columns[0]),
                call("get_table_statistics_req", TableStatsRequest(*names, columns)),
                call("get_partitions_statistics_req", PartitionsStatsRequest(*names, columns, [self._name()])),
            )
        )

    def _aggregate(self) -> Step:
        parts = sorted({self._name() for _ in range(self._random.randrange(1, 5))})
        return call(
            "get_aggr_stats_for", PartitionsStatsRequest(self._database(), self._table(), self._columns(), parts)
        )

    def _delete_statistics(self) -> Step:
        names, column = self._exact(), self._one((*COLUMNS, None))
        if self._chance(0.5):
            return call("delete_table_column_statistics", *names, column)
        return call("delete_partition_column_statistics", *names, self._name(), column)

    # Functions

    def _some_function(self) -> Function:
        kind = self._one((USER, ROLE))
        return function(
            self._one(FUNCTIONS), dbName=self._database(), className=self._one(("a.B", "c.D")), ownerType=kind
        )

    def _create_function(self) -> Step:
        return call("create_function", self._some_function())

    def _read_function(self) -> Step:
        if self._chance(0.5):
            return call("get_functions", self._database(), self._one(("*", "f*", "f1|f2", "F1", "")))
        return call("get_function", self._database(), self._spelled(self._one(FUNCTIONS)))

    def _alter_function(self) -> Step:
        db_name, name = self._exact()[0], self._one(FUNCTIONS)
        changed = self._some_function()
        changed.dbName, changed.functionName = db_name, name
        return call("alter_function", db_name, name, changed)

    def _drop_function(self) -> Step:
        return call("drop_function", self._database(), self._spelled(self._one(FUNCTIONS)))

    # Roles

    def _change_role(self) -> Step:
        if self._chance(0.6):
            return call("create_role", Role(self._one(ROLES), 0, "somebody"))
        return call("drop_role", self._one(ROLES))

    def _grant_role(self) -> Step:
        role, (who, kind) = self._one(ROLES), self._one(PRINCIPALS)
        if self._chance(0.5):
            return call("grant_role", role, who, kind, "admin", USER, self._chance(0.5))
        if self._chance(0.5):
            return call("revoke_role", role, who, kind)
        given = GrantRevokeRoleRequest(self._one((GRANT, REVOKE)), role, who, kind, "admin", USER, False)
        return call("grant_revoke_role", given)

    def _read_roles(self) -> Step:
        who, kind = self._one(PRINCIPALS)
        return self._one(
            (
                call("list_roles", who, kind),
                call("get_role_grants_for_principal", GetRoleGrantsForPrincipalRequest(who, kind)),
                call("get_principals_in_role", GetPrincipalsInRoleRequest(self._one(ROLES))),
            )
        )

    # Privileges

    def _thing(self) -> HiveObjectRef:
        db_name, tbl_name = self._exact()
        return self._one(
            (
                HiveObjectRef(GLOBAL),
                HiveObjectRef(DATABASE, db_name),
                HiveObjectRef(TABLE, db_name, tbl_name),
                HiveObjectRef(COLUMN, db_name, tbl_name, None, "id"),
            )
        )

    def _bag(self) -> PrivilegeBag:
        who, kind = self._one(PRINCIPALS)
        info = PrivilegeGrantInfo(self._one(PRIVILEGES), 0, self._one(("admin", "boss")), USER, self._chance(0.5))
        return PrivilegeBag([HiveObjectPrivilege(self._thing(), who, kind, info)])

    def _grant(self) -> Step:
        if self._chance(0.7):
            return call("grant_privileges", self._bag())
        return call("grant_revoke_privileges", GrantRevokePrivilegeRequest(GRANT, self._bag(), False))

    def _revoke(self) -> Step:
        if self._chance(0.7):
            return call("revoke_privileges", self._bag())
        return call("grant_revoke_privileges", GrantRevokePrivilegeRequest(REVOKE, self._bag(), self._chance(0.5)))

    def _read_privileges(self) -> Step:
        who, kind = self._one(PRINCIPALS)
        if self._chance(0.3):
            return call("get_privilege_set", self._thing(), self._one(("{own}ann", "{own}ben")), ["{own}staff"])
        return call("list_privileges", who, kind, self._thing())

    # Constraints

    def _add_key(self) -> Step:
        place = (*self._exact(), self._one(("id", "name", "ds", "nosuch")))
        key = SQLPrimaryKey(*place, 1, self._one(KEY_NAMES), self._chance(0.5), False, True)
        return call("add_primary_key", AddPrimaryKeyRequest([key]))

    def _add_foreign_key(self) -> Step:
        ends = (*self._exact(), "id", *self._exact(), self._one(("id", "name", "nosuch")))
        key = SQLForeignKey(*ends, 1, 0, 0, self._one(KEY_NAMES), self._one(KEY_NAMES), True, False, False)
        return call("add_foreign_key", AddForeignKeyRequest([key]))

    def _read_keys(self) -> Step:
        if self._chance(0.5):
            return call("get_primary_keys", PrimaryKeysRequest(*self._exact()))
        return call("get_foreign_keys", ForeignKeysRequest(*self._exact(), *self._exact()))

    def _drop_constraint(self) -> Step:
        return call("drop_constraint", DropConstraintRequest(*self._exact(), self._one(KEY_NAMES)))

    # Indexes

    def _index(self) -> Index:
        db_name, tbl_name = self._exact()
        parameters = {"a": self._one(("b", "c"))}
        return Index(
            "idx", "a.Handler", db_name, tbl_name, 0, 0, "idx_table", descriptor(), parameters, self._chance(0.5)
        )

    def _add_index(self) -> Step:
        index = self._index()
        return call("add_index", index, table(index.dbName, "idx_table", SOME_KEYS, tableType="INDEX_TABLE"))

    def _read_index(self) -> Step:
        names = (self._database(), self._table())
        return self._one(
            (
                call("get_index_by_name", *names, "idx"),
                call("get_indexes", *names, -1),
                call("get_index_names", *names, -1),
            )
        )

    def _alter_index(self) -> Step:
        index = self._index()
        return call("alter_index", index.dbName, index.origTableName, "idx", index)

    def _drop_index(self) -> Step:
        return call("drop_index_by_name", *self._exact(), "idx", self._chance(0.7))
