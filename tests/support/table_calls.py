"""Calls on databases and tables by short names, as a client of Hive 2.3 makes them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from hms_gateway.catalog.directories.warehouse import DirectoryMoves
from hms_gateway.catalog.statistics.column_statistics import StatisticsRules
from hms_gateway.catalog.tables.alter import TableAlterations
from hms_gateway.catalog.tables.databases import Databases
from hms_gateway.catalog.tables.service import TableService
from hms_gateway.catalog.tables.tables import Tables
from hms_gateway.catalog.tables.truncate import Truncations
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Store
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call, Dialect, Uncacheable
from hms_gateway.rpc.structs import (
    AlterTableRequest,
    CreateTableRequest,
    Database,
    EnvironmentContext,
    ExtendedTableInfo,
    GetDatabaseObjectsRequest,
    GetDatabaseRequest,
    GetTablesExtRequest,
    Struct,
    Table,
    TableMeta,
    TruncateTableRequest,
)
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.files.directories import Directories

CALL = Call("nobody", capabilities="INSERT_ONLY_TABLES")
NEWER = Call("nobody", dialect=Dialect.HIVE_4)


class DatabaseCalls:
    def __init__(self, methods: Databases) -> None:
        self.methods = methods

    def create(self, database: Database | None) -> None:
        self.methods.create_database(CALL, database)  # type: ignore[arg-type]

    def get(self, name: str | None) -> Database:
        """With what 2.3 does not know, and without the catalog."""
        found = self.methods.get_database_req(CALL, GetDatabaseRequest(name))
        return msgspec.structs.replace(found, catalogName=None)

    def names(self, pattern: str | None = None) -> list[str]:
        return self.methods.get_databases(CALL, pattern)  # type: ignore[arg-type]

    def objects(self, pattern: str | None = None) -> list[Database]:
        return self.methods.get_databases_req(CALL, GetDatabaseObjectsRequest(None, pattern)).databases or []

    def alter(self, name: str | None, database: Database | None, *, changes_place: bool) -> None:
        self.methods.alter_database(NEWER if changes_place else CALL, name, database)  # type: ignore[arg-type]

    def drop(self, name: str | None, delete_data: bool, cascade: bool) -> None:
        self.methods.drop_database(CALL, name, delete_data, cascade)  # type: ignore[arg-type]


class TableCalls:
    def __init__(
        self, store: Store, files: Directories, clock: Clock, settings: MetastoreSettings, events: EventMaker
    ) -> None:
        self.service = TableService(store, files, clock, settings, events)
        self.methods = Tables(store, self.service, StatisticsRules(clock, events), events, Limits())

    def create(
        self,
        table: Table | None,
        environment: EnvironmentContext | None = None,
        *,
        constraints: Sequence[Struct] = (),
    ) -> None:
        request = CreateTableRequest(table, environment, primaryKeys=list(constraints))  # type: ignore[arg-type]
        self.methods.create_table_req(CALL, request)

    def preview(self, table: Table) -> Table:
        return msgspec.structs.replace(
            self.methods.translate_table_dryrun(CALL, CreateTableRequest(table)), catName=table.catName
        )

    def get(self, name: TableName, *, tells_id: bool = False) -> Any:
        call = msgspec.structs.replace(CALL, dialect=Dialect.HIVE_4) if tells_id else CALL
        return _plain(self.methods.get_table(call, *_names(name)))

    def drop(self, name: TableName, delete_data: bool) -> None:
        self.methods.drop_table(CALL, *_names(name), delete_data)

    def names(self, db_name: str | None, pattern: str | None = None) -> list[str]:
        return self.methods.get_tables(CALL, db_name, pattern)  # type: ignore[arg-type]

    def names_of_type(self, db_name: str, pattern: str, table_type: str | None) -> list[str]:
        return self.methods.get_tables_by_type(CALL, db_name, pattern, table_type)  # type: ignore[arg-type]

    def names_by_filter(self, db_name: str | None, text: str | None, max_tables: int) -> list[str]:
        return self.methods.get_table_names_by_filter(CALL, db_name, text, max_tables)  # type: ignore[arg-type]

    def metas(self, db_pattern: str | None, tbl_pattern: str | None, types: Sequence[str] | None) -> list[TableMeta]:
        return self.methods.get_table_meta(CALL, db_pattern, tbl_pattern, types)  # type: ignore[arg-type]

    def objects(self, db_name: str | None, names: Sequence[str] | None) -> Any:
        return _plain(self.methods.get_table_objects_by_name(CALL, db_name, names))  # type: ignore[arg-type]

    def extended(self, db_name: str, pattern: str, fields: int, limit: int | None) -> list[ExtendedTableInfo]:
        request = GetTablesExtRequest(None, db_name, pattern, fields, limit)
        return self.methods.get_tables_ext(CALL, request)


class AlterationCalls:
    def __init__(
        self, store: Store, files: Directories, clock: Clock, settings: MetastoreSettings, events: EventMaker
    ) -> None:
        self.methods = TableAlterations(store, files, clock, settings, events)
        self._moves = DirectoryMoves(store, files)

    def alter(
        self,
        name: TableName,
        table: Table | None,
        environment: EnvironmentContext | None = None,
        *,
        cascade: bool = False,
    ) -> None:
        if cascade:
            self.methods.alter_table_with_cascade(CALL, *_names(name), table, cascade)  # type: ignore[arg-type]
            return
        self.methods.alter_table_with_environment_context(CALL, *_names(name), table, environment)  # type: ignore[arg-type]

    def alter_as_newer(
        self, name: TableName, table: Table, environment: EnvironmentContext | None = None, **more: Any
    ) -> None:
        request = AlterTableRequest(None, name.db_name, name.tbl_name, table, environment, **more)
        self.methods.alter_table_req(CALL, request)

    def recover_pending_moves(self) -> int:
        return self._moves.recover()


class TruncationCalls:
    def __init__(self, store: Store, files: Directories, clock: Clock, events: EventMaker) -> None:
        self.methods = Truncations(store, files, clock, events)

    def truncate(
        self, name: TableName, part_names: Sequence[str] | None, environment: EnvironmentContext | None = None
    ) -> None:
        request = TruncateTableRequest(name.db_name, name.tbl_name, part_names, environmentContext=environment)  # type: ignore[arg-type]
        self.methods.truncate_table_req(CALL, request)


def _names(name: TableName) -> tuple[Any, Any]:
    return name.db_name, name.tbl_name


def _plain(answer: Any) -> Any:
    return answer.answer if isinstance(answer, Uncacheable) else answer
