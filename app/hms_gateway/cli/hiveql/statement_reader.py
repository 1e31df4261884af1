"""Reads one statement of HiveQL that concerns a metastore."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import hms_gateway.rpc.structs as structs
from hms_gateway.cli.hiveql import defining, granting, locking, session, showing
from hms_gateway.cli.hiveql.definitions import AlterationReader
from hms_gateway.cli.hiveql.lock_commands import parse_command
from hms_gateway.cli.hiveql.queries import check_query
from hms_gateway.cli.hiveql.shell_state import PlaceName, PrincipalName, QualifiedName, Statement
from hms_gateway.metastore.vocabulary.hiveql_tokens import counted_from
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.metastore.vocabulary.table_types import FORMATS, LAZY_SERDE, FileFormat


class ShowReader(AlterationReader):
    def _show(self) -> Statement:
        """After SHOW."""
        if self._takes("CREATE"):
            if self._needs_any("TABLE", "VIEW", "DATABASE", "SCHEMA") in ("DATABASE", "SCHEMA"):
                return showing.show_create_database(self._database_name())
            return showing.show_create_table(self._table_name())
        if self._takes("MATERIALIZED"):
            self._needs("VIEWS")
            return self._show_tables("MATERIALIZED_VIEW")
        word = self._takes_any(*_SHOWN)
        if not word:
            raise self._expected(f"what to show ({', '.join(_SHOWN)}, CREATE TABLE, CREATE DATABASE)", _SHOWN)
        return _SHOWN[word](self)

    def _show_databases(self) -> Statement:
        catalog = self._object_name("the name of a catalog") if self._takes_any("IN", "FROM") else ""
        return showing.show_databases(self._pattern(), catalog)

    def _show_tables(self, kind: str | None = None) -> Statement:
        database = self._database_after_in() or self._default_db
        return showing.show_tables(database, self._pattern(), kind)

    def _database_after_in(self) -> str | None:
        return self._database_name() if self._takes_any("IN", "FROM") else None

    def _show_partitions(self) -> Statement:
        table = self._table_name()
        spec = self._optional_spec()
        begin, text = 0, ""
        if self._takes("WHERE"):
            begin, text = self._position(), self._condition_text()
        return showing.show_partitions(table, spec, text, self._limit(), begin)

    def _limit(self) -> int | None:
        return self._number("a number of rows") if self._takes("LIMIT") else None

    def _show_snapshots(self) -> Statement:
        self._takes_any("FROM", "IN")
        return showing.show_snapshots(self._table_name(), self._limit())

    def _show_refs(self) -> Statement:
        self._takes_any("FROM", "IN")
        return showing.show_refs(self._table_name())

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
        return showing.show_columns(table if database is None else table._replace(db_name=database), self._pattern())

    def _show_functions(self) -> Statement:
        database = self._database_after_in()
        return showing.show_functions(database, self._pattern())

    def _show_properties(self) -> Statement:
        table = self._table_name()
        key = None
        if self._takes("("):
            key = self._string("the name of a property in quotes")
            self._needs(")")
        return showing.show_table_properties(table, key)

    def _show_locks(self) -> Statement:
        if self._takes("EXTENDED") or self._is_at_end():
            return locking.show_locks(None, self._tokens[-1].upper == "EXTENDED")
        place = self._place_name()
        return locking.show_locks(place, self._takes("EXTENDED"))

    def _show_leases(self) -> Statement:
        return locking.show_leases(() if self._is_at_end() else self._places_or_all())

    def _places_or_all(self) -> tuple[PlaceName, ...]:
        """Nothing for `*`."""
        return () if self._takes("*") else tuple(self._listed(self._place_name))

    def _place_name(self) -> PlaceName:
        """`DATABASE d`, `[TABLE] t`, `t PARTITION (…)`."""
        if self._takes_any("DATABASE", "SCHEMA"):
            return PlaceName(self._database_name())
        self._takes("TABLE")
        if self._peek(1) == "." and self._peek(2) == "*":
            database = self._database_name()
            self._takes(".", "*")
            return PlaceName(database)
        table = self._table_name()
        return PlaceName(table.db_name, table.table_name, self._optional_spec())

    def _show_grants(self) -> Statement:
        principal = None
        if self._peek() in ("USER", "GROUP", "ROLE") or (self._peek() and self._peek() != "ON"):
            principal = self._principal()
        if not self._takes("ON"):
            return granting.show_grants(principal, None)
        if self._takes("ALL"):
            return granting.show_grants(principal, None)
        kind, place = self._granted_place()
        return granting.show_grants(principal, kind, place)

    def _granted_place(self) -> tuple[structs.HiveObjectType, PlaceName]:
        """After ON."""
        place = self._place_name()
        if place.table_name is None:
            return structs.HiveObjectType.DATABASE, place
        return structs.HiveObjectType.PARTITION if place.spec else structs.HiveObjectType.TABLE, place

    def _show_role(self) -> Statement:
        self._needs("GRANT")
        return granting.show_roles(self._principal())

    def _describe(self) -> Statement:
        """After DESCRIBE."""
        if self._takes_any("DATABASE", "SCHEMA"):
            is_extended = self._takes("EXTENDED")
            return showing.describe_database(self._database_name(), is_extended)
        if self._takes("FUNCTION"):
            self._takes("EXTENDED")
            name = self._table_name()
            return showing.describe_function(name.db_name, name.table_name)
        is_detailed = bool(self._takes_any("EXTENDED", "FORMATTED"))
        table = self._table_name()
        spec = self._optional_spec()
        column = None if self._is_at_end() else self._object_name("PARTITION or the name of a column")
        return showing.describe(table, spec, column, is_detailed)


_SHOWN: Mapping[str, Callable[[ShowReader], Statement]] = MappingProxyType(
    {
        "DATABASES": ShowReader._show_databases,
        "SCHEMAS": ShowReader._show_databases,
        "CATALOGS": lambda reader: showing.show_catalogs(),
        "TABLES": ShowReader._show_tables,
        "VIEWS": lambda reader: reader._show_tables("VIRTUAL_VIEW"),
        "PARTITIONS": ShowReader._show_partitions,
        "COLUMNS": ShowReader._show_columns,
        "TBLPROPERTIES": ShowReader._show_properties,
        "FUNCTIONS": ShowReader._show_functions,
        "SNAPSHOTS": ShowReader._show_snapshots,
        "REFS": ShowReader._show_refs,
        "GRANT": ShowReader._show_grants,
        "ROLES": lambda reader: granting.show_roles(),
        "ROLE": ShowReader._show_role,
        "PRINCIPALS": lambda reader: granting.show_principals(reader._principal_name()),
        "LOCKS": ShowReader._show_locks,
        "LEASE": ShowReader._show_leases,
        "LEASES": ShowReader._show_leases,
        "TRANSACTIONS": lambda reader: locking.show_transactions(),
        "COMPACTIONS": lambda reader: locking.show_compactions(),
    }
)


PRIVILEGES: Final = (
    "ALL", "SELECT", "INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "DROP", "INDEX", "LOCK", "SHOW_DATABASE",
    "READ", "WRITE",
)  # fmt: skip
_QUERIES: Final = ("SELECT", "WITH", "FROM", "VALUES", "(")
_DATA: Final = (
    "INSERT", "UPDATE", "DELETE", "MERGE", "LOAD", "ANALYZE", "EXPORT", "IMPORT", "CACHE", "REFRESH", "RELOAD",
)  # fmt: skip
_RESOURCES: Final = {
    "JAR": structs.ResourceType.JAR,
    "FILE": structs.ResourceType.FILE,
    "ARCHIVE": structs.ResourceType.ARCHIVE,
}
# The metastore keeps it for tables that are not clustered.
_NO_BUCKETS: Final = -1


def parse_statement(text: str, database: str = "default") -> Statement:
    """The statement that a text is, with or without its semicolon. Raises CommandError."""
    return StatementReader(text, database).statement()


class StatementReader(ShowReader):
    def statement(self) -> Statement:
        if word := self._takes_any(*_READERS):
            found = _READERS[word](self)
            self._needs_end()
            return found
        word = self._peek()
        if word in _QUERIES or word in _DATA:
            return self._for_engines(word)
        raise self._expected(
            f"a statement ({', '.join(word for word in _READERS if word.isalpha())})", [*_READERS, *_QUERIES, *_DATA]
        )

    def _for_engines(self, verb: str) -> Statement:
        if verb in _QUERIES:
            check_query(self._text)
        return session.for_engines("SELECT" if verb == "(" else verb)

    def _set_option(self) -> Statement:
        """After SET: names of settings have points and colons, and values are what follows."""
        name, equals, value = self._rest().partition("=")
        self._at = len(self._tokens)
        return session.set_option(name.strip(), value.strip().strip("'\"") if equals else None)

    # CREATE and DROP

    def _create(self) -> Statement:
        """After CREATE."""
        if self._takes_any("DATABASE", "SCHEMA"):
            return self._create_database()
        or_replace = self._takes("OR", "REPLACE")
        if self._takes("VIEW"):
            return self._create_view(or_replace=or_replace)
        if or_replace:
            raise self._expected("VIEW")
        if self._takes("FUNCTION"):
            return self._create_function()
        if self._takes("ROLE"):
            return granting.create_role(self._principal_name())
        is_external = self._takes("EXTERNAL")
        if self._peek() in ("TEMPORARY", "TRANSACTIONAL", "MANAGED"):
            raise self._expected("TABLE (temporary tables are kept by engines; 'transactional'='true' is a property)")
        if not self._takes("TABLE"):
            raise self._expected("TABLE" if is_external else "DATABASE, TABLE, EXTERNAL TABLE, VIEW, FUNCTION or ROLE")
        return self._create_table(is_external=is_external)

    def _create_database(self) -> Statement:
        if_not_exists = self._if_not_exists()
        database = structs.Database(name=self._database_name(), parameters={})
        while not self._is_at_end():
            what = self._needs_any("COMMENT", "LOCATION", "MANAGEDLOCATION", "WITH")
            if what == "COMMENT":
                database.description = self._string("the comment in quotes")
            elif what == "LOCATION":
                database.locationUri = self._location()
            elif what == "MANAGEDLOCATION":
                database.managedLocationUri = self._location()
            else:
                self._needs("DBPROPERTIES")
                database.parameters = self._properties()
        return defining.create_database(database, if_not_exists)

    def _create_table(self, *, is_external: bool) -> Statement:
        if_not_exists = self._if_not_exists()
        name = self._table_name()
        if self._takes("LIKE"):
            return self._create_like(name, if_not_exists=if_not_exists, is_external=is_external)
        draft = _TableDraft(is_external=is_external)
        if self._peek() == "(" and self._peek(1) not in _QUERIES:
            draft.descriptor.cols = self._columns()
        while not self._is_at_end():
            if self._peek() in ("AS", *_QUERIES):
                self._takes("AS")
                check_query(self._text, self._position())
                self._at = len(self._tokens)
                return session.for_engines("CREATE TABLE … AS SELECT")
            self._table_clause(draft)
        if not draft.descriptor.cols and draft.row_format is None:
            raise self._expected("the columns in brackets, before the other clauses")
        return defining.create_table(draft.table(name), if_not_exists)

    def _create_like(self, name: QualifiedName, *, if_not_exists: bool, is_external: bool) -> Statement:
        like = self._table_name()
        location: str | None = None
        parameters: dict[str, str] = {}
        while not self._is_at_end():
            if self._needs_any("LOCATION", "TBLPROPERTIES") == "LOCATION":
                location = self._location()
            else:
                parameters = self._properties()
        return defining.create_table_like(name, like, if_not_exists, is_external, location, parameters)

    def _table_clause(self, draft: "_TableDraft") -> None:
        what = self._needs_any(*_CLAUSES)
        if what == "COMMENT":
            draft.parameters["comment"] = self._string("the comment in quotes")
        elif what == "PARTITIONED":
            self._needs("BY")
            draft.keys = self._columns()
        elif what == "CLUSTERED":
            self._needs("BY")
            self._buckets(draft.descriptor)
        elif what == "SKEWED":
            self._needs("BY")
            self._skewed(draft.descriptor)
        elif what == "ROW":
            self._needs("FORMAT")
            draft.row_format = self._row_format()
        elif what == "STORED":
            self._needs("AS")
            draft.format = self._format()
        elif what == "LOCATION":
            draft.descriptor.location = self._location()
        else:
            draft.parameters.update(self._properties())

    def _create_view(self, *, or_replace: bool) -> Statement:
        """After VIEW."""
        if_not_exists = self._if_not_exists()
        name = self._table_name()
        columns: list[tuple[str, str | None]] = []
        parameters: dict[str, str] = {}
        if self._peek() == "(":
            columns = self._bracketed(self._view_column)
        while self._needs_any("COMMENT", "TBLPROPERTIES", "AS") != "AS":
            if self._tokens[self._at - 1].upper == "COMMENT":
                parameters["comment"] = self._string("the comment in quotes")
            else:
                parameters.update(self._properties())
        begin = self._position()
        query = self._query_text()
        check_query(self._text, begin)
        return defining.create_view(name, query, begin, columns, parameters, if_not_exists, or_replace)

    def _view_column(self) -> tuple[str, str | None]:
        name = self._object_name("the name of a column")
        return name, self._string("the comment in quotes") if self._takes("COMMENT") else None

    def _create_function(self) -> Statement:
        """After FUNCTION."""
        if_not_exists = self._if_not_exists()
        name = self._table_name()
        self._needs("AS")
        function = structs.Function(
            functionName=name.table_name,
            dbName=name.db_name,
            className=self._string("the class in quotes"),
            functionType=structs.FunctionType.JAVA,
            resourceUris=[],
        )
        if self._takes("USING"):
            function.resourceUris = self._listed(self._resource)
        return defining.create_function(function, if_not_exists)

    def _resource(self) -> structs.ResourceUri:
        kind = self._needs_any(*_RESOURCES)
        return structs.ResourceUri(resourceType=_RESOURCES[kind], uri=self._location())

    def _drop(self) -> Statement:
        """After DROP."""
        if self._takes("FORCE"):
            self._needs_any("LEASE", "LEASES")
            return locking.drop_leases(self._places_or_all())
        what = self._needs_any("DATABASE", "SCHEMA", "TABLE", "VIEW", "FUNCTION", "ROLE")
        if what == "ROLE":
            return granting.drop_role(self._principal_name())
        if_exists = self._if_exists()
        if what in ("DATABASE", "SCHEMA"):
            name = self._database_name()
            return defining.drop_database(name, if_exists, self._takes_any("CASCADE", "RESTRICT") == "CASCADE")
        table = self._table_name()
        if what == "FUNCTION":
            return defining.drop_function(table.db_name, table.table_name, if_exists)
        return defining.drop_table(table, if_exists, what == "VIEW", what == "TABLE" and self._takes("PURGE"))

    def _truncate(self) -> Statement:
        self._takes("TABLE")
        table = self._table_name()
        return defining.truncate(table, self._optional_spec())

    # locks and transactions

    def _lock(self) -> Statement:
        """Read once more as a command that needs locks."""
        self._needs_any("TABLE", "DATABASE", "SCHEMA")
        self._at -= 1
        self._place_name()
        self._needs_any("SHARED", "EXCLUSIVE")
        command = parse_command(self._text, make_name, self._default_db)
        self._at = len(self._tokens)
        return locking.lock_statement(command, " ".join(self._text.split()).rstrip("; "))

    def _unlock(self) -> Statement:
        self._needs_any("TABLE", "DATABASE", "SCHEMA")
        self._at -= 1
        return locking.unlock(self._place_name())

    def _explain(self) -> Statement:
        if not self._takes("LOCKS"):
            self._at = len(self._tokens)
            return session.for_engines("EXPLAIN")
        begin = self._position()
        with counted_from(begin):
            command = parse_command(self._text[begin:], make_name, self._default_db)
        self._at = len(self._tokens)
        return locking.explain_locks(command)

    def _abort(self) -> Statement:
        self._needs("TRANSACTIONS")
        ids = [self._number("the number of a transaction")]
        while not self._is_at_end():
            self._takes(",")
            ids.append(self._number("the number of a transaction"))
        return locking.abort_transactions(ids)

    # grants

    def _granted(self, *, is_revoked: bool) -> Statement:
        is_option = is_revoked and self._takes_any("GRANT", "ADMIN") != ""
        if is_option:
            self._needs("OPTION", "FOR")
        if not self._is_at_end() and self._peek() not in PRIVILEGES:
            return self._granted_roles(is_revoked=is_revoked, is_option=is_option)
        privileges = self._listed(self._privilege)
        self._needs("ON")
        kind, place = self._granted_place()
        principals = self._principals("FROM" if is_revoked else "TO")
        if not is_revoked and self._takes("WITH"):
            self._needs("GRANT", "OPTION")
            is_option = True
        return granting.grant_privileges(privileges, kind, place, principals, is_revoked, is_option)

    def _privilege(self) -> str:
        word = self._needs_any(*PRIVILEGES)
        if word == "ALL":
            self._takes("PRIVILEGES")
        return word

    def _granted_roles(self, *, is_revoked: bool, is_option: bool) -> Statement:
        if not self._takes("ROLE") and not self._is_name():
            raise self._expected(f"a privilege ({', '.join(PRIVILEGES)}) or ROLE")
        roles = self._listed(self._principal_name)
        principals = self._principals("FROM" if is_revoked else "TO")
        if not is_revoked and self._takes("WITH"):
            self._needs("ADMIN", "OPTION")
            is_option = True
        return granting.grant_roles(roles, principals, is_revoked, is_option)

    def _principals(self, word: str) -> list[PrincipalName]:
        self._needs(word)
        return self._listed(self._principal)

    def _repair(self) -> Statement:
        """After MSCK or REPAIR."""
        self._takes("REPAIR")
        self._needs("TABLE")
        table = self._table_name()
        what = self._takes_any("ADD", "DROP", "SYNC")
        if what:
            self._needs("PARTITIONS")
        return session.repair(table, what != "DROP", what in ("DROP", "SYNC"))


class _TableDraft:
    """The clauses of CREATE TABLE that were read; they may come in any order."""

    def __init__(self, *, is_external: bool) -> None:
        self.is_external = is_external
        self.keys: list[structs.FieldSchema] = []
        self.parameters: dict[str, str] = {}
        self.row_format: structs.SerDeInfo | None = None
        self.format: FileFormat = FORMATS["TEXTFILE"]
        self.descriptor = structs.StorageDescriptor(
            cols=[],
            compressed=False,
            numBuckets=_NO_BUCKETS,
            bucketCols=[],
            sortCols=[],
            parameters={},
            skewedInfo=structs.SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={}),
            storedAsSubDirectories=False,
        )

    def table(self, name: QualifiedName) -> structs.Table:
        serde = self.row_format or structs.SerDeInfo(serializationLib=self.format.serde or LAZY_SERDE, parameters={})
        assert serde.parameters is not None
        serde.parameters.setdefault("serialization.format", "1")
        self.descriptor.serdeInfo = serde
        self.descriptor.inputFormat = self.format.input_format
        self.descriptor.outputFormat = self.format.output_format
        external = {"EXTERNAL": "TRUE"} if self.is_external else {}
        return structs.Table(
            tableName=name.table_name,
            dbName=name.db_name,
            sd=self.descriptor,
            partitionKeys=self.keys,
            parameters={**self.parameters, **external},
            tableType="EXTERNAL_TABLE" if self.is_external else "MANAGED_TABLE",
        )


_CLAUSES: Final = (
    "COMMENT", "PARTITIONED", "CLUSTERED", "SKEWED", "ROW", "STORED", "LOCATION", "TBLPROPERTIES",
)  # fmt: skip
_READERS: Final[Mapping[str, Callable[[StatementReader], Statement]]] = MappingProxyType(
    {
        "SHOW": StatementReader._show,
        "DESCRIBE": StatementReader._describe,
        "DESC": StatementReader._describe,
        "USE": lambda reader: session.use(reader._database_name()),
        "SET": StatementReader._set_option,
        "CREATE": StatementReader._create,
        "ALTER": StatementReader._alter,
        "DROP": StatementReader._drop,
        "TRUNCATE": StatementReader._truncate,
        "LOCK": StatementReader._lock,
        "UNLOCK": StatementReader._unlock,
        "EXPLAIN": StatementReader._explain,
        "ABORT": StatementReader._abort,
        "GRANT": lambda reader: reader._granted(is_revoked=False),
        "REVOKE": lambda reader: reader._granted(is_revoked=True),
        "MSCK": StatementReader._repair,
        "REPAIR": StatementReader._repair,
        "HELP": lambda reader: session.help(),
        "?": lambda reader: session.help(),
    }
)
