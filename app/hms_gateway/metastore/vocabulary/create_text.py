"""The statement that makes a table or database as it is, for Hive, Spark and this shell."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hms_gateway.structs import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table

# What the metastore or an engine writes itself.
_DERIVED: Final = frozenset(
    (
        "transient_lastDdlTime", "EXTERNAL", "comment", "numFiles", "totalSize", "numRows", "rawDataSize",
        "numPartitions", "COLUMN_STATS_ACCURATE", "last_modified_by", "last_modified_time", "numFilesErasureCoded",
        "bucketing_version",
    )
)  # fmt: skip
_DERIVED_PREFIXES: Final = ("spark.sql.", "view.")
_PROVIDER: Final = "spark.sql.sources.provider"
_SCHEMA: Final = "spark.sql.sources.schema"
_CHARACTER_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_SPARK_TYPES: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NOT_SERDE_OPTIONS: Final = ("path", "serialization.format")


class _Column(NamedTuple):
    name: str
    type: str
    comment: str | None = None
    remark: str = ""

    def __str__(self) -> str:
        comment = "" if self.comment is None else f" COMMENT {literal(self.comment)}"
        return f"{quoted(self.name)} {self.type}{self.remark}{comment}"


def create_table_text(table: Table, database_location: str | None) -> str:
    """CREATE TABLE or CREATE VIEW. Tables of Spark's own sources (USING) are written as Spark makes them."""
    if table.viewOriginalText:
        return "\n".join(_view_lines(table))
    provider = (table.parameters or {}).get(_PROVIDER)
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


def quoted(name: str) -> str:
    """A name that may have any characters."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string that Hive and Spark read as `text`."""
    return "'" + "".join(_escaped(one) for one in text) + "'"


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
    yield f"USING {provider}"
    options = {key: value for key, value in serde_parameters.items() if key not in _NOT_SERDE_OPTIONS}
    if options:
        yield f"OPTIONS (\n{_pairs(options)})"
    keys = _numbered(parameters, "PartCols", "partCol")
    if keys:
        yield f"PARTITIONED BY ({', '.join(map(quoted, keys))})"
    orders = [(name, True) for name in _numbered(parameters, "SortCols", "sortCol")]
    number = int(parameters.get(f"{_SCHEMA}.numBuckets", "0"))
    yield from _buckets(_numbered(parameters, "BucketCols", "bucketCol"), orders, number)
    location = serde_parameters.get("path") or (table.sd and table.sd.location) or ""
    if table.tableType == "EXTERNAL_TABLE" or (location and location != _default_location(table, database_location)):
        yield f"LOCATION {literal(location)}"
    yield from _comment(table)
    yield from _properties(table)


def _view_lines(table: Table) -> Iterator[str]:
    columns = (table.sd and table.sd.cols) or ()
    yield f"CREATE VIEW {_full_name(table)} ("
    yield _listed(str(_Column(each.name or "", "", each.comment)).replace("  ", " ").rstrip() for each in columns) + ")"
    yield from _comment(table)
    yield from _properties(table)
    yield f"AS {table.viewOriginalText}"


def _columns(table: Table) -> list[_Column]:
    """Those of Spark's schema, where it keeps one: it has the spelling of names, and types that Hive does not know."""
    text = _spark_schema(table.parameters or {})
    if text is not None:
        return [_spark_column(field) for field in json.loads(text)["fields"]]
    found: list[FieldSchema] = [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]
    return [_Column(each.name or "", each.type or "string", each.comment) for each in found]


def _spark_schema(parameters: Mapping[str, str]) -> str | None:
    """In one parameter or, when it is long, in several."""
    if _SCHEMA in parameters:
        return parameters[_SCHEMA]
    parts = int(parameters.get(f"{_SCHEMA}.numParts", "0"))
    return "".join(parameters[f"{_SCHEMA}.part.{number}"] for number in range(parts)) if parts else None


def _spark_column(field: Mapping[str, Any]) -> _Column:
    metadata = field.get("metadata") or {}
    remark = "" if field.get("nullable", True) else " NOT NULL"
    if "CURRENT_DEFAULT" in metadata:
        remark += f" DEFAULT {metadata['CURRENT_DEFAULT']}"
    kind = metadata.get(_CHARACTER_TYPE) or _spark_type(field["type"])
    return _Column(field["name"], kind, metadata.get("comment"), remark)


def _spark_type(kind: Any) -> str:
    if isinstance(kind, str):
        return _SPARK_TYPES.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{_spark_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_spark_type(kind['keyType'])},{_spark_type(kind['valueType'])}>"
    if kind["type"] == "struct":
        return f"struct<{','.join(map(_spark_field, kind['fields']))}>"
    return _spark_type(kind.get("sqlType", "string"))


def _spark_field(field: Mapping[str, Any]) -> str:
    metadata = field.get("metadata") or {}
    comment = f" COMMENT {literal(metadata['comment'])}" if "comment" in metadata else ""
    not_null = "" if field.get("nullable", True) else " NOT NULL"
    kind = metadata.get(_CHARACTER_TYPE) or _spark_type(field["type"])
    return f"{quoted(field['name'])}:{kind}{not_null}{comment}"


def _numbered(parameters: Mapping[str, str], count: str, name: str) -> list[str]:
    number = int(parameters.get(f"{_SCHEMA}.num{count}", "0"))
    return [parameters[f"{_SCHEMA}.{name}.{index}"] for index in range(number)]


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
