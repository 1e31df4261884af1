"""Reads the parts of which CREATE and ALTER are made: types, columns, properties, formats, partition specifications."""

from collections.abc import Callable
from typing import Final

from hms_gateway.cli.hiveql.statements import KeyValue, PartitionSpec, PrincipalName, QualifiedName
from hms_gateway.metastore.vocabulary.hiveql_tokens import TokenReader
from hms_gateway.metastore.vocabulary.table_types import FORMATS, LAZY_SERDE, FileFormat
from hms_gateway.rpc.structs import FieldSchema, PrincipalType, SerDeInfo, SkewedInfo, StorageDescriptor
from hms_gateway.rpc.structs import Order as SortOrder

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
    """`default_db` is the database of names without one."""

    def __init__(self, text: str, default_db: str) -> None:
        super().__init__(text)
        self._default_db = default_db.lower()

    def _table_name(self) -> QualifiedName:
        first = self._object_name("the name of a table")
        if self._takes("."):
            return QualifiedName(first, self._object_name("the name of a table"))
        return QualifiedName(self._default_db, first)

    def _object_name(self, wanted: str) -> str:
        if not self._is_name():
            raise self._expected(wanted)
        return self._name().lower()

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
        types = [self._type()]
        while self._takes(","):
            types.append(self._type())
        return ",".join(types)

    def _column(self) -> FieldSchema:
        name = self._object_name("the name of a column")
        column = FieldSchema(name=name, type=self._type())
        if self._takes("COMMENT"):
            column.comment = self._string("the comment in quotes")
        return column

    def _columns(self) -> list[FieldSchema]:
        """In brackets."""
        self._needs("(")
        columns = [self._column()]
        while self._takes(","):
            columns.append(self._column())
        if self._peek() in _CONSTRAINTS:
            raise self._expected(", or ) (constraints are added by ALTER TABLE … ADD CONSTRAINT)")
        self._needs_any(",", ")")
        return columns

    def _names(self) -> list[str]:
        """In brackets."""
        self._needs("(")
        names = [self._object_name("the name of a column")]
        while self._takes(","):
            names.append(self._object_name("the name of a column"))
        self._needs_any(",", ")")
        return names

    # properties

    def _properties(self) -> dict[str, str]:
        """`('a'='b', …)`."""
        self._needs("(")
        properties: dict[str, str] = {}
        while True:
            name = self._string("the name of a property in quotes")
            self._needs("=")
            properties[name] = self._string(f"the value of {name} in quotes")
            if self._needs_any(",", ")") == ")":
                return properties

    def _property_names(self) -> list[str]:
        self._needs("(")
        names = [self._string("the name of a property in quotes")]
        while self._needs_any(",", ")") == ",":
            names.append(self._string("the name of a property in quotes"))
        return names

    # formats

    def _format(self) -> FileFormat:
        """After STORED AS or SET FILEFORMAT; the serde is empty where classes are named without one."""
        if self._takes("INPUTFORMAT"):
            input_format = self._string("the class in quotes")
            self._needs("OUTPUTFORMAT")
            output_format = self._string("the class in quotes")
            return FileFormat(input_format, output_format, self._string("") if self._takes("SERDE") else "")
        word = self._peek()
        if word not in FORMATS:
            raise self._expected(f"a format ({', '.join(FORMATS)}) or INPUTFORMAT")
        self._at += 1
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
            descriptor.sortCols = [SortOrder(col=name, order=order) for name, order in self._sorted()]
        self._needs("INTO")
        descriptor.numBuckets = self._number("the number of buckets")
        self._needs("BUCKETS")

    def _sorted(self) -> list[tuple[str, int]]:
        self._needs("(")
        found = []
        while True:
            name = self._object_name("the name of a column")
            found.append((name, 0 if self._takes("DESC") else 1))
            self._takes("ASC")
            if self._needs_any(",", ")") == ")":
                return found

    def _skewed(self, descriptor: StorageDescriptor) -> None:
        """After SKEWED BY."""
        names = self._names()
        self._needs("ON")
        self._needs("(")
        values = [self._skewed_values()]
        while self._takes(","):
            values.append(self._skewed_values())
        self._needs_any(",", ")")
        if self._takes("STORED", "AS", "DIRECTORIES"):
            descriptor.storedAsSubDirectories = True
        descriptor.skewedInfo = SkewedInfo(skewedColNames=names, skewedColValues=values, skewedColValueLocationMaps={})

    def _skewed_values(self) -> list[str]:
        if not self._takes("("):
            return [self._value()]
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._needs_any(",", ")")
        return values

    # partitions

    def _spec(self) -> PartitionSpec:
        """After PARTITION."""
        self._needs("(")
        parts: list[KeyValue] = []
        while True:
            key = self._object_name("a partition key")
            sign = self._takes_any(*_SIGNS)
            begin = self._position()
            parts.append(KeyValue(key, self._value() if sign else None, sign or "=", begin))
            if self._needs_any(",", ")") == ")":
                return tuple(parts)

    def _optional_spec(self) -> PartitionSpec:
        return self._spec() if self._takes("PARTITION") else ()

    def _value(self) -> str:
        """A literal, as the metastore keeps values of partitions."""
        if self._is_string():
            return self._string("a value")
        if self._peek(0) in ("DATE", "TIMESTAMP") and self._at + 1 < len(self._tokens):
            self._at += 1
            return self._string("a value in quotes")
        sign = "-" if self._takes("-") else ""
        token = self._next("a value")
        if not token.is_name:
            self._at -= 1
            raise self._expected("a value")
        text = sign + token.text
        return f"{text}.{self._next('digits').text}" if self._takes(".") else text
