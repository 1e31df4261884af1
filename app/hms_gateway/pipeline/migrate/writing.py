"""Writes objects into a metastore as another one knows them."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from hms_gateway.metastore.vocabulary.parameters import DO_NOT_UPDATE_STATS
from hms_gateway.pipeline.catalog import (
    CONSTRAINTS,
    PARTITIONS_A_CALL,
    CatalogCaller,
    WriteIds,
    add_partitions,
    columns_of,
    cut,
    drop_partitions,
    is_view,
    statistics_of,
)
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    ColumnStatisticsObj,
    Database,
    DropConstraintRequest,
    EnvironmentContext,
    Function,
    HiveObjectPrivilege,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PrivilegeBag,
    ReplTblWriteIdStateRequest,
    Role,
    RolePrincipalGrant,
    SetPartitionsStatsRequest,
    Struct,
    Table,
)
from hms_gateway.rpc.wire import ApplicationError

RECORDED_HEADER: Final = "x-hms-recorded-at"
# One object is refused, and others may not be. Hive's metastore has internal errors for some of them.
REFUSALS: Final = (
    ApplicationError,
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
# So that a message stays far below what a gateway decodes, whatever the tables are like.
_COLUMNS_A_CALL: Final = 100_000
_GRANTS_A_CALL: Final = 500


@dataclass
class RecordingClient(PatientClient):
    """A patient client whose calls record what another metastore knows; `recorded_at` is for what has no time."""

    recorded_at: int = 0

    @classmethod
    def like(cls, client: PatientClient, recorded_at: int) -> "RecordingClient":
        """Makes one with the connection, keys and lease of a client."""
        made = cls(client.connection, client.patience_seconds, lease_id=client.lease_id, recorded_at=recorded_at)
        return made.begin(client.scope)

    def _headers(self) -> dict[str, str]:
        return super()._headers() | {RECORDED_HEADER: str(self.recorded_at)}


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes to one metastore; `is_gateway` when it takes what is recorded as it is."""

    client: CatalogCaller
    is_gateway: bool

    def create_database(self, database: Database) -> None:
        """One that is there is left as it is."""
        with_them = msgspec.structs.replace(database, privileges=None, catalogName=None)
        with suppress(AlreadyExistsException):
            self.client.call("create_database", with_them)

    def alter_database(self, database: Database) -> None:
        self.client.call("alter_database", database.name, msgspec.structs.replace(database, privileges=None))

    def drop_database(self, name: str) -> None:
        self.client.call("drop_database", name, False, True)

    def create_table(self, table: Table) -> None:
        """One that is there is left as it is."""
        with suppress(AlreadyExistsException):
            self.client.call("create_table", self._quiet(_sent(table)))

    def replace_table(self, table: Table) -> None:
        """Make the table what another one is; with partitions only as far as their keys stay the same."""
        context = EnvironmentContext(properties={DO_NOT_UPDATE_STATS: "true"})
        sent = _sent(table)
        self.client.call("alter_table_with_environment_context", sent.dbName, sent.tableName, sent, context)

    def drop_table(self, database: str, name: str) -> None:
        """Without its data. One that is gone is fine."""
        with suppress(NoSuchObjectException):
            self.client.call("drop_table", database, name, False)

    def add_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        """Adds partitions; existing ones are left as they are."""
        for some in cut(partitions, _partitions_a_call(table)):
            sent = [_sent_partition(one, table) for one in some]
            add_partitions(self.client, table, sent, is_gateway=self.is_gateway)

    def alter_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        context = EnvironmentContext(properties={DO_NOT_UPDATE_STATS: "true"})
        for some in cut(partitions, _partitions_a_call(table)):
            sent = [_sent_partition(one, table) for one in some]
            self.client.call("alter_partitions_with_environment_context", table.dbName, table.tableName, sent, context)

    def drop_partitions(self, table: Table, names: Sequence[str]) -> None:
        """Without their data. Those that are gone are fine."""
        for some in cut(names, PARTITIONS_A_CALL):
            drop_partitions(self.client, table.dbName or "", table.tableName or "", some)

    def put_table_statistics(self, table: Table, found: Sequence[ColumnStatisticsObj]) -> None:
        if found:
            self.client.call("update_table_column_statistics", statistics_of(table, None, found))

    def put_partition_statistics(self, table: Table, found: Mapping[str, Sequence[ColumnStatisticsObj]]) -> None:
        named = [statistics_of(table, name, each) for name, each in found.items() if each]
        for some in cut(named, _partitions_a_call(table)):
            request = SetPartitionsStatsRequest(colStats=list(some), needMerge=False)
            self.client.call("set_aggr_stats_for", request)

    def delete_statistics(self, table: Table, partition: str | None, column: str) -> None:
        """Deletes statistics; missing ones are fine."""
        with suppress(NoSuchObjectException):
            if partition is None:
                self.client.call("delete_table_column_statistics", table.dbName, table.tableName, column)
            else:
                self.client.call("delete_partition_column_statistics", table.dbName, table.tableName, partition, column)

    def put_constraints(self, wanted: Mapping[str, Sequence[Struct]]) -> None:
        """Constraints by the fields of `CONSTRAINTS`."""
        for kind in CONSTRAINTS:
            if listed := wanted.get(kind.field):
                self.client.call(f"add_{kind.noun}", kind.adding(list(listed)))

    def drop_constraint(self, database: str, table: str, name: str) -> None:
        request = DropConstraintRequest(dbname=database, tablename=table, constraintname=name)
        with suppress(NoSuchObjectException):
            self.client.call("drop_constraint", request)

    def create_function(self, function: Function) -> None:
        """One that is there is left as it is."""
        with suppress(AlreadyExistsException):
            self.client.call("create_function", function)

    def drop_function(self, database: str, name: str) -> None:
        with suppress(NoSuchObjectException):
            self.client.call("drop_function", database, name)

    def create_role(self, role: Role) -> None:
        self.client.call("create_role", role)

    def drop_role(self, name: str) -> None:
        self.client.call("drop_role", name)

    def grant_role(self, grant: RolePrincipalGrant) -> None:
        """A call of its own for each time: `grant_role` has no argument for it."""
        client = self.client
        if isinstance(client, RecordingClient):
            then = RecordingClient(client.connection, client.patience_seconds, lease_id=client.lease_id)
            then.recorded_at = grant.grantTime or 0
            with then:
                self._grant_role(then, grant)
        else:
            self._grant_role(client, grant)

    def _grant_role(self, client: CatalogCaller, grant: RolePrincipalGrant) -> None:
        client.call(
            "grant_role",
            grant.roleName,
            grant.principalName,
            grant.principalType,
            grant.grantorName,
            grant.grantorPrincipalType,
            bool(grant.grantOption),
        )

    def revoke_role(self, grant: RolePrincipalGrant) -> None:
        self.client.call("revoke_role", grant.roleName, grant.principalName, grant.principalType)

    def grant(self, grants: Sequence[HiveObjectPrivilege]) -> None:
        for some in cut(grants, _GRANTS_A_CALL):
            self.client.call("grant_privileges", PrivilegeBag(privileges=list(some)))

    def revoke(self, grants: Sequence[HiveObjectPrivilege]) -> None:
        for some in cut(grants, _GRANTS_A_CALL):
            self.client.call("revoke_privileges", PrivilegeBag(privileges=list(some)))

    def put_write_ids(self, database: str, table: str, ids: WriteIds) -> None:
        """A table that has given write ids keeps them."""
        request = ReplTblWriteIdStateRequest(
            validWriteIdlist=ids.text(database, table),
            user="migrate",
            hostName="migrate",
            dbName=database,
            tableName=table,
        )
        self.client.call("repl_tbl_writeid_state", request)

    def _quiet(self, table: Table) -> Table:
        """For a metastore that counts files: what it counts is what the other one has counted."""
        if self.is_gateway or table.partitionKeys or is_view(table):
            return table
        return msgspec.structs.replace(table, parameters={**(table.parameters or {}), DO_NOT_UPDATE_STATS: "true"})


def reason(refused: Exception) -> str:
    """The reason in a line."""
    said = getattr(refused, "message", None) or str(refused) or "no message"
    return f"{type(refused).__name__}: {said}"


def now() -> int:
    return int(time.time())


def _sent(table: Table) -> Table:
    return msgspec.structs.replace(
        table, privileges=None, catName=None, id=None, writeId=None, colStats=None, accessType=None, txnId=None
    )


def _sent_partition(partition: Partition, table: Table) -> Partition:
    """A partition with the table's names, since they have to be the same."""
    return msgspec.structs.replace(
        partition,
        dbName=table.dbName,
        tableName=table.tableName,
        privileges=None,
        catName=None,
        writeId=None,
        colStats=None,
    )


def _partitions_a_call(table: Table) -> int:
    return max(1, min(PARTITIONS_A_CALL, _COLUMNS_A_CALL // (len(columns_of(table)) + 1)))
