"""Reads ALTER, and its parts and those of CREATE: types, columns, properties, formats, partition specifications."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from hms_gateway.cli.hiveql import altering, defining, session
from hms_gateway.cli.hiveql.shell_state import KeyValue, PartitionSpec, PrincipalName, QualifiedName, Statement
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError, TokenReader
from hms_gateway.metastore.vocabulary.table_types import FORMATS, LAZY_SERDE, FileFormat
from hms_gateway.rpc.structs import FieldSchema, PrincipalType, SerDeInfo, SkewedInfo, StorageDescriptor
from hms_gateway.rpc.structs import Order as SortOrder
from hms_gateway.rpc.structs.catalogs import beside, marked

_Item = TypeVar("_Item")
_PRIMITIVES: Final = frozenset(
    (
        "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "STRING", "BINARY", "TIMESTAMP", "DATE",
        "VOID", "INTERVAL_YEAR_MONTH", "INTERVAL_DAY_TIME", "VARIANT", "TIMESTAMP_NTZ", "TIMESTAMPTZ",
    )
)  # fmt: skip
_SAME: Final = {"INTEGER": "int", "NUMERIC": "decimal", "DEC": "decimal"}
_TYPES: Final = (*_PRIMITIVES, *_SAME, "DECIMAL", "VARCHAR", "CHAR", "ARRAY", "MAP", "STRUCT", "UNIONTYPE")
_DEFAULT_PRECISION: Final = 10
_CONSTRAINTS: Final = ("PRIMARY", "FOREIGN", "UNIQUE", "CONSTRAINT", "CHECK", "NOT", "DEFAULT", "REFERENCES")
_SIGNS: Final = ("=", "<", ">", "<=", ">=", "<>", "!=")
_PRINCIPALS: Final = {"USER": PrincipalType.USER, "GROUP": PrincipalType.GROUP, "ROLE": PrincipalType.ROLE}
# What ROW FORMAT DELIMITED says, and the property of the serde that keeps it.
_DELIMITERS: Final = (
    (("FIELDS", "TERMINATED", "BY"), "field.delim"),
    (("ESCAPED", "BY"), "escape.delim"),
    (("COLLECTION", "ITEMS", "TERMINATED", "BY"), "collection.delim"),
    (("MAP", "KEYS", "TERMINATED", "BY"), "mapkey.delim"),
    (("LINES", "TERMINATED", "BY"), "line.delim"),
    (("NULL", "DEFINED", "AS"), "serialization.null.format"),
)


class DefinitionReader(TokenReader):
    """`default_db` is the database of names without one.

    For completion: `offered` are words that could come where the text ends, `wanted` is what has to, and `tables` are
    those that were named.
    """

    def __init__(self, text: str, default_db: str) -> None:
        super().__init__(text)
        self._default_db = default_db.lower()
        self.offered: dict[str, None] = {}
        self.wanted = ""
        self.tables: list[QualifiedName] = []

    def _takes(self, *words: str) -> bool:
        rest = [token.upper for token in self._tokens[self._at : self._at + len(words)]]
        if len(rest) < len(words) and rest == list(words[: len(rest)]):
            self.offered[words[len(rest)]] = None
        return super()._takes(*words)

    def _takes_any(self, *words: str) -> str:
        if self._is_at_end():
            self.offered.update(dict.fromkeys(words))
        return super()._takes_any(*words)

    def _expected(self, wanted: str, words: Iterable[str] = ()) -> CommandError:
        if self._is_at_end():
            self.wanted = wanted
        return super()._expected(wanted, words)

    def _table_name(self) -> QualifiedName:
        first = self._object_name("the name of a table")
        found = self._qualified(self._default_db, first, "the name of a table")
        self.tables.append(found)
        return found

    def _qualified(self, db_name: str, first: str, wanted: str) -> QualifiedName:
        """A name whose first part is read: `table` in the database, `database.table` or `catalog.database.table`."""
        if not self._takes("."):
            return QualifiedName(db_name, first)
        second = self._object_name(wanted)
        if not self._takes("."):
            return QualifiedName(beside(self._default_db, first), second)
        return QualifiedName(marked(first, second), self._object_name(wanted))

    def _database_name(self) -> str:
        """`database` or `catalog.database`."""
        first = self._object_name("the name of a database")
        if self._peek() == "." and self._peek(1) != "*":
            self._takes(".")
            return marked(first, self._object_name("the name of a database"))
        return beside(self._default_db, first)

    def _object_name(self, wanted: str) -> str:
        if not self._is_name():
            raise self._expected(wanted)
        return self._name().lower()

    def _listed(self, read: Callable[[], _Item]) -> list[_Item]:
        """One or more, with commas between them."""
        found = [read()]
        while self._takes(","):
            found.append(read())
        return found

    def _bracketed(self, read: Callable[[], _Item]) -> list[_Item]:
        """The same in brackets."""
        self._needs("(")
        found = self._listed(read)
        self._needs_any(",", ")")
        return found

    def _if_exists(self) -> bool:
        if not self._takes("IF"):
            return False
        self._needs("EXISTS")
        return True

    def _if_not_exists(self) -> bool:
        if not self._takes("IF"):
            return False
        self._needs("NOT", "EXISTS")
        return True

    def _principal(self) -> PrincipalName:
        kind = self._takes_any(*_PRINCIPALS)
        return PrincipalName(_PRINCIPALS[kind or "USER"], self._principal_name())

    def _principal_name(self) -> str:
        if self._is_string():
            return self._string("a name")
        if not self._is_name():
            raise self._expected("USER, GROUP or ROLE and a name" if self._is_at_end() else "a name")
        return self._name()

    def _pattern(self) -> str:
        """Read the pattern after LIKE, or without it; `*` when there is none, and for the `%` of SQL, as of Hive 4."""
        return self._written_pattern().replace("%", "*")

    def _written_pattern(self) -> str:
        if self._takes("LIKE"):
            return self._string("a pattern in quotes, such as 'a*|b*'") if not self._is_name() else self._name()
        if self._is_string():
            return self._string("a pattern")
        return self._name() if self._is_name() else "*"

    # types and columns

    def _type(self) -> str:
        """A type as the metastore keeps it: in lower case, without blanks."""
        word = self._peek()
        if word in _PRIMITIVES or word == "INTEGER":
            return self._primitive()
        if word in ("DECIMAL", *_SAME):
            return self._decimal()
        if self._takes_any("VARCHAR", "CHAR"):
            self._needs("(")
            length = self._number("the number of characters")
            self._needs(")")
            return f"{word.lower()}({length})"
        if self._takes("ARRAY"):
            return f"array<{self._inside(self._type)}>"
        if self._takes("MAP"):
            return f"map<{self._inside(self._map_types)}>"
        if self._takes("STRUCT"):
            return f"struct<{self._inside(self._struct_fields)}>"
        if self._takes("UNIONTYPE"):
            return f"uniontype<{self._inside(self._union_types)}>"
        raise self._expected("a type", _TYPES)

    def _primitive(self) -> str:
        word = self._next("a type").upper
        if word == "DOUBLE":
            self._takes("PRECISION")
        if word == "TIMESTAMP" and self._takes("WITH"):
            self._needs("LOCAL", "TIME", "ZONE")
            return "timestamp with local time zone"
        return _SAME.get(word, word.lower())

    def _decimal(self) -> str:
        self._at += 1
        if not self._takes("("):
            return f"decimal({_DEFAULT_PRECISION},0)"
        precision, scale = self._number("the number of digits"), 0
        if self._takes(","):
            scale = self._number("the number of digits after the point")
        self._needs(")")
        return f"decimal({precision},{scale})"

    def _inside(self, read: Callable[[], str]) -> str:
        self._needs("<")
        text = read()
        self._needs(">")
        return text

    def _map_types(self) -> str:
        key = self._type()
        self._needs(",")
        return f"{key},{self._type()}"

    def _struct_fields(self) -> str:
        fields = []
        while True:
            name = self._object_name("the name of a field")
            self._needs(":")
            fields.append(f"{name}:{self._type()}")
            if self._takes("COMMENT"):
                self._string("the comment in quotes")
            if not self._takes(","):
                return ",".join(fields)

    def _union_types(self) -> str:
        return ",".join(self._listed(self._type))

    def _column(self) -> FieldSchema:
        name = self._column_name()
        column = FieldSchema(name=name, type=self._type())
        if self._takes("COMMENT"):
            column.comment = self._string("the comment in quotes")
        return column

    def _columns(self) -> list[FieldSchema]:
        """In brackets."""
        self._needs("(")
        columns = self._listed(self._column)
        if self._peek() in _CONSTRAINTS:
            raise self._expected(", or ) (constraints are added by ALTER TABLE … ADD CONSTRAINT)")
        self._needs_any(",", ")")
        return columns

    def _names(self) -> list[str]:
        """In brackets."""
        return self._bracketed(self._column_name)

    def _column_name(self) -> str:
        return self._object_name("the name of a column")

    # properties

    def _properties(self) -> dict[str, str]:
        """`('a'='b', …)`."""
        return dict(self._bracketed(self._property))

    def _property(self) -> tuple[str, str]:
        name = self._property_name()
        self._needs("=")
        return name, self._string(f"the value of {name} in quotes")

    def _property_name(self) -> str:
        return self._string("the name of a property in quotes")

    def _location(self) -> str:
        return self._string("the location in quotes")

    # formats

    def _format(self) -> FileFormat:
        """After STORED AS or SET FILEFORMAT; the serde is empty where classes are named without one."""
        if self._takes("INPUTFORMAT"):
            input_format = self._string("the class in quotes")
            self._needs("OUTPUTFORMAT")
            output_format = self._string("the class in quotes")
            return FileFormat(input_format, output_format, self._string("") if self._takes("SERDE") else "")
        word = self._takes_any(*FORMATS)
        if not word:
            raise self._expected(f"a format ({', '.join(FORMATS)}) or INPUTFORMAT")
        return FORMATS[word]

    def _row_format(self) -> SerDeInfo:
        """After ROW FORMAT."""
        if self._needs_any("SERDE", "DELIMITED") == "SERDE":
            library = self._string("the class in quotes")
            parameters = self._properties() if self._takes("WITH", "SERDEPROPERTIES") else {}
            return SerDeInfo(serializationLib=library, parameters=parameters)
        parameters = {}
        while (name := self._delimiter()) is not None:
            parameters[name] = self._string("a character in quotes")
        if "field.delim" in parameters:
            parameters["serialization.format"] = parameters["field.delim"]
        return SerDeInfo(serializationLib=LAZY_SERDE, parameters=parameters)

    def _delimiter(self) -> str | None:
        return next((name for words, name in _DELIMITERS if self._takes(*words)), None)

    def _buckets(self, descriptor: StorageDescriptor) -> None:
        """After CLUSTERED BY."""
        descriptor.bucketCols = self._names()
        if self._takes("SORTED", "BY"):
            descriptor.sortCols = self._bracketed(self._sorted)
        self._needs("INTO")
        descriptor.numBuckets = self._number("the number of buckets")
        self._needs("BUCKETS")

    def _sorted(self) -> SortOrder:
        found = SortOrder(col=self._column_name(), order=0 if self._takes("DESC") else 1)
        self._takes("ASC")
        return found

    def _skewed(self, descriptor: StorageDescriptor) -> None:
        """After SKEWED BY."""
        names = self._names()
        self._needs("ON")
        values = self._bracketed(self._skewed_values)
        if self._takes("STORED", "AS", "DIRECTORIES"):
            descriptor.storedAsSubDirectories = True
        descriptor.skewedInfo = SkewedInfo(skewedColNames=names, skewedColValues=values, skewedColValueLocationMaps={})

    def _skewed_values(self) -> list[str]:
        return self._bracketed(self._literal) if self._peek() == "(" else [self._literal()]

    # partitions

    def _spec(self) -> PartitionSpec:
        """After PARTITION."""
        return tuple(self._bracketed(self._key_value))

    def _key_value(self) -> KeyValue:
        key = self._object_name("a partition key")
        sign = self._takes_any(*_SIGNS)
        begin = self._position()
        return KeyValue(key, self._literal() if sign else None, sign or "=", begin)

    def _optional_spec(self) -> PartitionSpec:
        return self._spec() if self._takes("PARTITION") else ()


class AlterationReader(DefinitionReader):
    def _alter(self) -> Statement:
        what = self._needs_any("TABLE", "VIEW", "DATABASE", "SCHEMA")
        if what == "TABLE":
            return self._alter_table()
        return self._alter_view() if what == "VIEW" else self._alter_database()

    def _alter_database(self) -> Statement:
        name = self._database_name()
        self._needs("SET")
        what = self._needs_any("DBPROPERTIES", "LOCATION", "MANAGEDLOCATION", "OWNER")
        if what == "DBPROPERTIES":
            return altering.alter_database(name, parameters=self._properties())
        if what == "OWNER":
            return altering.alter_database(name, owner=self._principal())
        location = self._location()
        if what == "LOCATION":
            return altering.alter_database(name, location=location)
        return altering.alter_database(name, managed_location=location)

    def _alter_view(self) -> Statement:
        name = self._table_name()
        if self._takes("AS"):
            begin = self._position()
            return defining.alter_view_query(name, self._query_text(), begin)
        if self._takes("RENAME"):
            self._needs("TO")
            return altering.alter_table(name, altering.rename(self._table_name()), is_view=True)
        if self._takes("UNSET"):
            return altering.alter_table(name, self._unset(), is_view=True)
        if not self._takes("SET"):
            raise self._expected("AS, RENAME TO, SET TBLPROPERTIES or UNSET TBLPROPERTIES")
        self._needs("TBLPROPERTIES")
        return altering.alter_table(name, altering.set_properties(self._properties()), is_view=True)

    def _query_text(self) -> str:
        """The rest of the statement, which begins a query."""
        if self._peek() not in ("SELECT", "WITH", "FROM", "VALUES", "("):
            raise self._expected("a query")
        text = self._rest()
        self._at = len(self._tokens)
        return text

    def _alter_table(self) -> Statement:
        table = self._table_name()
        if self._takes("PARTITION", "COLUMN"):
            self._needs("(")
            column = FieldSchema(name=self._object_name("a partition key"), type=self._type())
            self._needs(")")
            return altering.alter_table(table, altering.change_partition_column(column))
        specs = (self._spec(),) if self._takes("PARTITION") else ()
        readers: dict[str, Callable[[QualifiedName, tuple[PartitionSpec, ...]], Statement]] = {
            "ADD": self._add,
            "DROP": self._drop_part,
            "COMPACT": self._compact,
            "EXCHANGE": self._exchange,
            "TOUCH": self._touch,
        }
        if word := self._takes_any(*readers):
            return readers[word](table, specs)
        word = self._peek()
        if word in ("CONCATENATE", "ARCHIVE", "UNARCHIVE", "RECOVER"):
            self._at = len(self._tokens)
            return session.for_engines(f"ALTER TABLE … {word}")
        if specs and self._takes("RENAME", "TO"):
            self._needs("PARTITION")
            return altering.rename_partition(table, specs[0], self._spec())
        return altering.alter_table(table, self._change(table), specs)

    def _change(self, table: QualifiedName) -> altering.Change:
        if self._takes("RENAME", "TO"):
            # A new name without a database stays in the one where the table is.
            first = self._object_name("the new name")
            return altering.rename(self._qualified(table.db_name, first, "the new name"))
        if self._takes("REPLACE", "COLUMNS"):
            return self._cascading(altering.replace_columns(self._columns()))
        if self._takes("CHANGE"):
            return self._change_column()
        if self._takes("UNSET"):
            return self._unset()
        if self._takes("CLUSTERED", "BY"):
            descriptor = StorageDescriptor(sortCols=[])
            self._buckets(descriptor)
            return altering.set_buckets(
                descriptor.bucketCols or (), descriptor.sortCols or (), descriptor.numBuckets or 0
            )
        if self._takes("NOT", "CLUSTERED"):
            return altering.set_buckets((), (), -1)
        if self._takes("SET"):
            return self._set()
        raise self._expected(
            "RENAME TO, ADD, DROP, REPLACE COLUMNS, CHANGE, SET, UNSET, PARTITION, CLUSTERED BY, COMPACT, EXCHANGE "
            "or TOUCH"
        )

    def _cascading(self, change: altering.Change) -> altering.Change:
        return change._replace(is_cascading=self._takes_any("CASCADE", "RESTRICT") == "CASCADE")

    def _change_column(self) -> altering.Change:
        self._takes("COLUMN")
        name = self._column_name()
        column = self._column()
        after = "" if self._takes("FIRST") else None
        if self._takes("AFTER"):
            after = self._object_name("the name of a column")
        return self._cascading(altering.change_column(name, column, after))

    def _unset(self) -> altering.Change:
        """After UNSET."""
        what = self._needs_any("TBLPROPERTIES", "SERDEPROPERTIES")
        if_exists = self._if_exists()
        names = self._bracketed(self._property_name)
        if what == "TBLPROPERTIES":
            return altering.unset_properties(names, if_exists)
        return altering.unset_serde_properties(names)

    def _set(self) -> altering.Change:
        """After SET."""
        what = self._needs_any("TBLPROPERTIES", "SERDEPROPERTIES", "SERDE", "FILEFORMAT", "LOCATION", "OWNER")
        if what == "TBLPROPERTIES":
            return altering.set_properties(self._properties())
        if what == "SERDEPROPERTIES":
            return altering.set_serde(None, self._properties())
        if what == "SERDE":
            library = self._string("the class in quotes")
            return altering.set_serde(library, self._properties() if self._takes("WITH", "SERDEPROPERTIES") else {})
        if what == "FILEFORMAT":
            return altering.set_format(self._format())
        return altering.set_location(self._location()) if what == "LOCATION" else altering.set_owner(self._principal())

    def _touch(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        found = list(specs)
        while self._takes("PARTITION"):
            found.append(self._spec())
            self._takes(",")
        return altering.alter_table(table, altering.touch(), tuple(found))

    def _add(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        """After ADD."""
        if self._takes("COLUMNS"):
            return altering.alter_table(table, self._cascading(altering.add_columns(self._columns())), specs)
        name = self._object_name("the name of the constraint") if self._takes("CONSTRAINT") else None
        if self._takes_any("PRIMARY", "FOREIGN"):
            return self._add_key(table, name)
        if name is not None:
            raise self._expected("PRIMARY KEY or FOREIGN KEY")
        if_not_exists = self._if_not_exists()
        if self._peek() != "PARTITION":
            raise self._expected("COLUMNS, PARTITION or CONSTRAINT")
        partitions = []
        while self._takes("PARTITION"):
            spec = self._spec()
            partitions.append(altering.AddedPartition(spec, self._location() if self._takes("LOCATION") else None))
            self._takes(",")
        return altering.add_partitions(table, partitions, if_not_exists)

    def _add_key(self, table: QualifiedName, name: str | None) -> Statement:
        """After PRIMARY or FOREIGN."""
        is_foreign = self._tokens[self._at - 1].upper == "FOREIGN"
        self._needs("KEY")
        columns = self._names()
        if not is_foreign:
            self._constraint_state()
            return altering.add_key(table, name, columns)
        self._needs("REFERENCES")
        references = self._table_name()
        referenced = self._names()
        self._constraint_state()
        return altering.add_key(table, name, columns, references, referenced)

    def _constraint_state(self) -> None:
        """A metastore enforces no constraint."""
        self._takes("DISABLE")
        self._takes("NOVALIDATE")
        self._takes_any("RELY", "NORELY")

    def _drop_part(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        """After DROP."""
        if self._takes("CONSTRAINT"):
            return altering.drop_constraint(table, self._object_name("the name of the constraint"))
        if_exists = self._if_exists()
        if self._peek() != "PARTITION":
            raise self._expected("PARTITION or CONSTRAINT")
        found = []
        while self._takes("PARTITION"):
            found.append(self._spec())
            self._takes(",")
        return altering.drop_partitions(table, found, if_exists, self._takes("PURGE"))

    def _compact(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        """After COMPACT."""
        kind = self._string("'major' or 'minor'").upper()
        if kind not in ("MAJOR", "MINOR"):
            self._at -= 1
            raise self._expected("'major' or 'minor'")
        return altering.compact(table, specs[0] if specs else (), kind)

    def _exchange(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        """After EXCHANGE."""
        self._needs("PARTITION")
        spec = self._spec()
        self._needs("WITH", "TABLE")
        return altering.exchange_partition(table, spec, self._table_name())
