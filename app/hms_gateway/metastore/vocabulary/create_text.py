"""The statement that makes a table or database as it is, for Hive, Spark and this shell.

The maker of a table chose its texts, and others paste the statement: it is one statement, whatever the texts are. Names
are quoted, strings are literals. Types, defaults, providers and the queries of views are written as they are where they
can be nothing else, and quoted otherwise: then the statement fails.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.metastore.vocabulary.table_types import PROVIDER
from hms_gateway.rpc.structs import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table

# What the metastore or an engine writes itself.
_DERIVED: Final = frozenset(
    (
        "transient_lastDdlTime", "EXTERNAL", "comment", "numFiles", "totalSize", "numRows", "rawDataSize",
        "numPartitions", "COLUMN_STATS_ACCURATE", "last_modified_by", "last_modified_time", "numFilesErasureCoded",
        "bucketing_version",
    )
)  # fmt: skip
_DERIVED_PREFIXES: Final = ("spark.sql.", "view.")
_SCHEMA: Final = "spark.sql.sources.schema"
_CHARACTER_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_SPARK_TYPES: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NOT_SERDE_OPTIONS: Final = ("path", "serialization.format")
_PROVIDER_NAME: Final = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
# Literals and quoted names that end at the same place for every reader.
_PLAIN_QUOTED: Final = re.compile(r"""'[^'\\]*'|"[^"\\]*"|`[^`\\]*`""")
# A group is empty where the end is missing, or where raw literals of Spark and literals with escapes end apart.
_QUOTE_OR_COMMENT: Final = re.compile(
    r"""\br'(?:[^'\\]|\\[^'])*('?)|\br"(?:[^"\\]|\\[^"])*("?)"""
    r"""|'(?:[^'\\]|\\.)*('?)|"(?:[^"\\]|\\.)*("?)|`[^`]*(`?)|--[^\n]*|/\*.*?(\*/|\Z)""",
    re.DOTALL | re.IGNORECASE,
)
_WORDS_AND_MARKS: Final = re.compile(r"[\w <>(),:.+*/%|=-]+")
_COMMENTS: Final = ("--", "/*")
_BRACKETS: Final = re.compile(r"[,<>()]")
_PAIRS: Final = ("()", "<>")


class _Array(msgspec.Struct, tag_field="type", tag="array"):
    """Types as Spark writes them; a simple one is a text."""

    elementType: "str | _Array | _Map | _Struct | _UserType"


class _Map(msgspec.Struct, tag_field="type", tag="map"):
    keyType: "str | _Array | _Map | _Struct | _UserType"
    valueType: "str | _Array | _Map | _Struct | _UserType"


class _Field(msgspec.Struct):
    name: str
    type: "str | _Array | _Map | _Struct | _UserType"
    nullable: bool = True
    metadata: dict[str, Any] | None = None

    def said(self, key: str) -> str | None:
        text = (self.metadata or {}).get(key)
        return text if isinstance(text, str) else None


class _Struct(msgspec.Struct, tag_field="type", tag="struct"):
    fields: list[_Field]


class _UserType(msgspec.Struct, tag_field="type", tag="udt"):
    sqlType: "str | _Array | _Map | _Struct | _UserType" = "string"


class _Column(NamedTuple):
    name: str
    type: str
    comment: str | None = None
    remark: str = ""

    def __str__(self) -> str:
        kind = f" {self.type}" if self.type else ""
        comment = "" if self.comment is None else f" COMMENT {literal(self.comment)}"
        return f"{quoted(self.name)}{kind}{self.remark}{comment}"


def create_table_text(table: Table, database_location: str | None) -> str:
    """CREATE TABLE or CREATE VIEW. Tables of Spark's own sources (USING) are written as Spark makes them."""
    if table.viewOriginalText:
        return "\n".join(_view_lines(table))
    provider = (table.parameters or {}).get(PROVIDER)
    if provider is not None and provider != "hive":
        return "\n".join(_spark_lines(table, provider, database_location))
    return "\n".join(_hive_lines(table, database_location))


def create_database_text(database: Database) -> str:
    lines = [f"CREATE DATABASE {quoted(database.name or '')}"]
    if database.description:
        lines.append(f"COMMENT {literal(database.description)}")
    if database.locationUri:
        lines.append(f"LOCATION {literal(database.locationUri)}")
    if database.parameters:
        lines.append(f"WITH DBPROPERTIES (\n{_pairs(database.parameters)})")
    return "\n".join(lines)


def quoted(name: str | None) -> str:
    """A name that may have any characters."""
    return "`" + (name or "").replace("`", "``") + "`"


def literal(text: str | None) -> str:
    """A string that Hive and Spark read as `text`."""
    return "'" + "".join(_escaped(one) for one in text or "") + "'"


def _escaped(one: str) -> str:
    return _ESCAPES.get(one) or (one if one >= " " else f"\\u{ord(one):04x}")


def _hive_lines(table: Table, database_location: str | None) -> Iterator[str]:
    descriptor = table.sd or StorageDescriptor()
    is_external = table.tableType == "EXTERNAL_TABLE"
    columns = _columns(table)
    keys = {key.name for key in table.partitionKeys or ()}
    yield f"CREATE {'EXTERNAL ' if is_external else ''}TABLE {_full_name(table)} ("
    yield _listed(str(column) for column in columns if column.name.lower() not in keys) + ")"
    yield from _comment(table)
    if keys:
        yield "PARTITIONED BY (\n" + _listed(str(one) for one in columns if one.name.lower() in keys) + ")"
    orders = [(order.col or "", bool(order.order)) for order in descriptor.sortCols or ()]
    yield from _buckets(descriptor.bucketCols or (), orders, descriptor.numBuckets or 0)
    yield from _skewed(descriptor)
    yield from _storage(descriptor)
    is_elsewhere = descriptor.location and descriptor.location != _default_location(table, database_location)
    if is_external or is_elsewhere:
        yield f"LOCATION {literal(descriptor.location or '')}"
    yield from _properties(table)


def _default_location(table: Table, database_location: str | None) -> str:
    return f"{(database_location or '').rstrip('/')}/{table.tableName}"


def _storage(descriptor: StorageDescriptor) -> Iterator[str]:
    serde = descriptor.serdeInfo or SerDeInfo()
    if serde.serializationLib:
        yield f"ROW FORMAT SERDE {literal(serde.serializationLib)}"
        if serde.parameters:
            yield f"WITH SERDEPROPERTIES (\n{_pairs(serde.parameters)})"
    if descriptor.inputFormat and descriptor.outputFormat:
        yield f"STORED AS INPUTFORMAT {literal(descriptor.inputFormat)}"
        yield f"OUTPUTFORMAT {literal(descriptor.outputFormat)}"


def _spark_lines(table: Table, provider: str, database_location: str | None) -> Iterator[str]:
    parameters = table.parameters or {}
    serde_parameters = ((table.sd and table.sd.serdeInfo) or SerDeInfo()).parameters or {}
    columns = _columns(table)
    yield f"CREATE TABLE {_full_name(table)} (" if columns else f"CREATE TABLE {_full_name(table)}"
    if columns:
        yield _listed(map(str, columns)) + ")"
    yield f"USING {provider if _PROVIDER_NAME.fullmatch(provider) else quoted(provider)}"
    options = {key: value for key, value in serde_parameters.items() if key not in _NOT_SERDE_OPTIONS}
    if options:
        yield f"OPTIONS (\n{_pairs(options)})"
    keys = _numbered(parameters, "PartCols", "partCol")
    if keys:
        yield f"PARTITIONED BY ({', '.join(map(quoted, keys))})"
    orders = [(name, True) for name in _numbered(parameters, "SortCols", "sortCol")]
    number = _number(parameters, "Buckets")
    yield from _buckets(_numbered(parameters, "BucketCols", "bucketCol"), orders, number)
    location = serde_parameters.get("path") or (table.sd and table.sd.location) or ""
    if table.tableType == "EXTERNAL_TABLE" or (location and location != _default_location(table, database_location)):
        yield f"LOCATION {literal(location)}"
    yield from _comment(table)
    yield from _properties(table)


def _view_lines(table: Table) -> Iterator[str]:
    columns = (table.sd and table.sd.cols) or ()
    yield f"CREATE VIEW {_full_name(table)} ("
    yield _listed(str(_Column(each.name or "", "", each.comment)) for each in columns) + ")"
    yield from _comment(table)
    yield from _properties(table)
    query = table.viewOriginalText or ""
    yield f"AS {query if _is_one_statement(query) else literal(query)}"


def _columns(table: Table) -> list[_Column]:
    """Those of Spark's schema, where it keeps one: it has the spelling of names, and types that Hive does not know."""
    found = _spark_columns(table.parameters or {})
    if found is not None:
        return found
    stored: list[FieldSchema] = [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]
    return [_Column(each.name or "", _type(each.type or "string"), each.comment) for each in stored]


def _spark_columns(parameters: Mapping[str, str]) -> list[_Column] | None:
    """In one parameter or, when it is long, in several. None where they hold no schema."""
    text = parameters.get(_SCHEMA) or "".join(_numbered(parameters, "Parts", "part"))
    try:
        return [_spark_column(field) for field in msgspec.json.decode(text, type=_Struct).fields]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _spark_column(field: _Field) -> _Column:
    remark = "" if field.nullable else " NOT NULL"
    default = field.said("CURRENT_DEFAULT")
    if default is not None:
        remark += f" DEFAULT {default if _is_enclosed(default) else literal(default)}"
    return _Column(field.name, _field_type(field), field.said("comment"), remark)


def _field_type(field: _Field) -> str:
    characters = field.said(_CHARACTER_TYPE)
    return _spark_type(field.type) if characters is None else _type(characters)


def _spark_type(kind: str | _Array | _Map | _Struct | _UserType) -> str:
    match kind:
        case str():
            return _type(_SPARK_TYPES.get(kind, kind))
        case _Array():
            return f"array<{_spark_type(kind.elementType)}>"
        case _Map():
            return f"map<{_spark_type(kind.keyType)},{_spark_type(kind.valueType)}>"
        case _Struct():
            return f"struct<{','.join(map(_spark_field, kind.fields))}>"
        case _UserType():
            return _spark_type(kind.sqlType)


def _spark_field(field: _Field) -> str:
    comment = field.said("comment")
    remark = "" if comment is None else f" COMMENT {literal(comment)}"
    return f"{quoted(field.name)}:{_field_type(field)}{'' if field.nullable else ' NOT NULL'}{remark}"


def _type(text: str) -> str:
    return text if _is_enclosed(text) else quoted(text)


def _is_enclosed(text: str) -> bool:
    """True if a type or an expression ends nothing and begins nothing around it."""
    rest = _PLAIN_QUOTED.sub("x", text)
    if not _WORDS_AND_MARKS.fullmatch(rest) or any(comment in rest for comment in _COMMENTS):
        return False
    opened: list[str] = []
    for mark in _BRACKETS.findall(rest):
        if mark in "(<":
            opened.append(mark)
        elif not opened or (mark != "," and opened.pop() + mark not in _PAIRS):
            return False
    return not opened


def _is_one_statement(query: str) -> bool:
    """True if each quote and comment ends, and each semicolon is within quotes that no reader doubts."""
    if ";" not in query:
        return all("" not in found.groups() and "/*" not in found[0][1:] for found in _QUOTE_OR_COMMENT.finditer(query))
    rest = _PLAIN_QUOTED.sub("", query)
    return not any(mark in rest for mark in (";", "'", '"', "`", "\\", *_COMMENTS))


def _number(parameters: Mapping[str, str], what: str) -> int:
    """0 for what is none."""
    try:
        return int(parameters.get(f"{_SCHEMA}.num{what}", "0"))
    except ValueError:
        return 0


def _numbered(parameters: Mapping[str, str], count: str, name: str) -> list[str]:
    """The values, as many as there are said to be; none where some are missing."""
    number = _number(parameters, count)
    if number > len(parameters):
        return []
    found = [parameters.get(f"{_SCHEMA}.{name}.{index}") for index in range(number)]
    return [one for one in found if one is not None] if None not in found else []


def _buckets(columns: Sequence[str], orders: Sequence[tuple[str, bool]], number: int) -> Iterator[str]:
    if not columns or number <= 0:
        return
    yield f"CLUSTERED BY ({', '.join(map(quoted, columns))})"
    if orders:
        sorted_by = (f"{quoted(name)}{'' if ascending else ' DESC'}" for name, ascending in orders)
        yield f"SORTED BY ({', '.join(sorted_by)})"
    yield f"INTO {number} BUCKETS"


def _skewed(descriptor: StorageDescriptor) -> Iterator[str]:
    skewed = descriptor.skewedInfo
    if skewed is None or not skewed.skewedColNames:
        return
    values = ", ".join(f"({', '.join(map(literal, each))})" for each in skewed.skewedColValues or ())
    yield f"SKEWED BY ({', '.join(map(quoted, skewed.skewedColNames))}) ON ({values})"
    if descriptor.storedAsSubDirectories:
        yield "STORED AS DIRECTORIES"


def _comment(table: Table) -> Iterator[str]:
    comment = (table.parameters or {}).get("comment")
    if comment is not None:
        yield f"COMMENT {literal(comment)}"


def _properties(table: Table) -> Iterator[str]:
    own = {
        name: value
        for name, value in sorted((table.parameters or {}).items())
        if name not in _DERIVED and not name.startswith(_DERIVED_PREFIXES)
    }
    if own:
        yield f"TBLPROPERTIES (\n{_pairs(own)})"


def _full_name(table: Table) -> str:
    return f"{quoted(table.dbName or '')}.{quoted(table.tableName or '')}"


def _listed(items: Iterable[str]) -> str:
    return ",\n".join(f"  {item}" for item in items)


def _pairs(values: Mapping[str, str]) -> str:
    return _listed(f"{literal(name)} = {literal(value)}" for name, value in sorted(values.items()))
