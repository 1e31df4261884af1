"""Reads SHOW and DESCRIBE, and names what locks, leases and grants are on."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.alterations import AlterationReader
from hms_gateway.cli.hiveql.statements import PlaceName, Statement
from hms_gateway.rpc.structs import HiveObjectType


class ShowReader(AlterationReader):
    def _show(self) -> Statement:
        """After SHOW."""
        if self._takes("CREATE"):
            if self._needs_any("TABLE", "VIEW", "DATABASE", "SCHEMA") in ("DATABASE", "SCHEMA"):
                return say.ShowCreateDatabase(self._object_name("the name of a database"))
            return say.ShowCreateTable(self._table_name())
        if self._takes("MATERIALIZED"):
            self._needs("VIEWS")
            return self._show_tables("MATERIALIZED_VIEW")
        word = self._peek()
        if word not in _SHOWN:
            raise self._expected(f"what to show ({', '.join(_SHOWN)}, CREATE TABLE, CREATE DATABASE)", _SHOWN)
        self._at += 1
        return _SHOWN[word](self)

    def _show_databases(self) -> Statement:
        return say.ShowDatabases(self._pattern())

    def _show_tables(self, kind: str | None = None) -> Statement:
        database = self._database_after_in() or self._default_db
        return say.ShowTables(database, self._pattern(), kind)

    def _show_views(self) -> Statement:
        return self._show_tables("VIRTUAL_VIEW")

    def _database_after_in(self) -> str | None:
        return self._object_name("the name of a database") if self._takes_any("IN", "FROM") else None

    def _show_partitions(self) -> Statement:
        table = self._table_name()
        spec = self._optional_spec()
        begin, text = 0, ""
        if self._takes("WHERE"):
            begin, text = self._position(), self._condition_text()
        limit = self._number("a number of rows") if self._takes("LIMIT") else None
        return say.ShowPartitions(table, spec, text, limit, begin)

    def _condition_text(self) -> str:
        """All up to LIMIT: it is read when the partition keys are known."""
        begin = self._position()
        while not self._is_at_end() and self._peek() != "LIMIT":
            self._at += 1
        end = self._tokens[self._at - 1].end
        if end <= begin:
            raise self._expected("a condition on partition keys")
        return self._text[begin:end]

    def _show_columns(self) -> Statement:
        self._needs_any("FROM", "IN")
        table = self._table_name()
        database = self._database_after_in()
        return say.ShowColumns(table if database is None else table._replace(db_name=database), self._pattern())

    def _show_functions(self) -> Statement:
        database = self._database_after_in()
        return say.ShowFunctions(database, self._pattern())

    def _show_properties(self) -> Statement:
        table = self._table_name()
        key = None
        if self._takes("("):
            key = self._string("the name of a property in quotes")
            self._needs(")")
        return say.ShowTableProperties(table, key)

    def _show_transactions(self) -> Statement:
        return say.ShowTransactions()

    def _show_compactions(self) -> Statement:
        return say.ShowCompactions()

    def _show_locks(self) -> Statement:
        if self._takes("EXTENDED") or self._is_at_end():
            return say.ShowLocks(None, self._tokens[-1].upper == "EXTENDED")
        place = self._place_name()
        return say.ShowLocks(place, self._takes("EXTENDED"))

    def _show_leases(self) -> Statement:
        return say.ShowLeases(() if self._is_at_end() else self._places_or_all())

    def _places_or_all(self) -> tuple[PlaceName, ...]:
        """Nothing for `*`."""
        if self._takes("*"):
            return ()
        places = [self._place_name()]
        while self._takes(","):
            places.append(self._place_name())
        return tuple(places)

    def _place_name(self) -> PlaceName:
        """`DATABASE d`, `[TABLE] t`, `t PARTITION (…)`."""
        if self._takes_any("DATABASE", "SCHEMA"):
            return PlaceName(self._object_name("the name of a database"))
        self._takes("TABLE")
        if self._peek(1) == "." and self._peek(2) == "*":
            database = self._object_name("the name of a database")
            self._takes(".", "*")
            return PlaceName(database)
        table = self._table_name()
        return PlaceName(table.db_name, table.table_name, self._optional_spec())

    def _show_grants(self) -> Statement:
        principal = None
        if self._peek() in ("USER", "GROUP", "ROLE") or (self._peek() and self._peek() != "ON"):
            principal = self._principal()
        if not self._takes("ON"):
            return say.ShowGrants(principal, None)
        if self._takes("ALL"):
            return say.ShowGrants(principal, None)
        kind, place = self._granted_place()
        return say.ShowGrants(principal, kind, place)

    def _granted_place(self) -> tuple[HiveObjectType, PlaceName]:
        """After ON."""
        place = self._place_name()
        if place.table_name is None:
            return HiveObjectType.DATABASE, place
        return HiveObjectType.PARTITION if place.spec else HiveObjectType.TABLE, place

    def _show_roles(self) -> Statement:
        return say.ShowRoles()

    def _show_role(self) -> Statement:
        self._needs("GRANT")
        return say.ShowRoles(self._principal())

    def _show_principals(self) -> Statement:
        return say.ShowPrincipals(self._principal_name())

    def _describe(self) -> Statement:
        """After DESCRIBE."""
        if self._takes_any("DATABASE", "SCHEMA"):
            is_extended = self._takes("EXTENDED")
            return say.DescribeDatabase(self._object_name("the name of a database"), is_extended)
        if self._takes("FUNCTION"):
            self._takes("EXTENDED")
            name = self._table_name()
            return say.DescribeFunction(name.db_name, name.table_name)
        is_detailed = bool(self._takes_any("EXTENDED", "FORMATTED"))
        table = self._table_name()
        spec = self._optional_spec()
        column = None if self._is_at_end() else self._object_name("PARTITION or the name of a column")
        return say.Describe(table, spec, column, is_detailed)


_SHOWN: Mapping[str, Callable[[ShowReader], Statement]] = MappingProxyType(
    {
        "DATABASES": ShowReader._show_databases,
        "SCHEMAS": ShowReader._show_databases,
        "TABLES": ShowReader._show_tables,
        "VIEWS": ShowReader._show_views,
        "PARTITIONS": ShowReader._show_partitions,
        "COLUMNS": ShowReader._show_columns,
        "TBLPROPERTIES": ShowReader._show_properties,
        "FUNCTIONS": ShowReader._show_functions,
        "GRANT": ShowReader._show_grants,
        "ROLES": ShowReader._show_roles,
        "ROLE": ShowReader._show_role,
        "PRINCIPALS": ShowReader._show_principals,
        "LOCKS": ShowReader._show_locks,
        "LEASE": ShowReader._show_leases,
        "LEASES": ShowReader._show_leases,
        "TRANSACTIONS": ShowReader._show_transactions,
        "COMPACTIONS": ShowReader._show_compactions,
    }
)
