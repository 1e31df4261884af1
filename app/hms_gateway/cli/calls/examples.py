"""An example of a call of each method, to paste and change."""

import json
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from hms_gateway.rpc.idl import BaseType, EnumType, Field, ListType, MapType, SetType, StructType, Type
from hms_gateway.rpc.structs import ENUMS, STRUCTS, Method

_PARQUET: Final = "org.apache.hadoop.hive.ql.io.parquet"
# The fields that a first try needs; of other structs those that are required, or else the plain ones.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Database": ("name", "description"),
        "Table": ("dbName", "tableName", "sd", "partitionKeys", "tableType"),
        "StorageDescriptor": ("cols", "inputFormat", "outputFormat", "serdeInfo"),
        "SerDeInfo": ("serializationLib",),
        "FieldSchema": ("name", "type"),
        "Partition": ("dbName", "tableName", "values", "sd"),
        "Function": ("dbName", "functionName", "className", "functionType"),
        "LockComponent": ("type", "level", "dbname", "tablename"),
        "LeaseObject": ("db_name", "table_name", "lease_type"),
        "EnvironmentContext": ("properties",),
        "ColumnStatisticsDesc": ("isTblLevel", "dbName", "tableName", "partName"),
        "ColumnStatisticsData": ("longStats",),
        "LongColumnStatsData": ("lowValue", "highValue", "numNulls", "numDVs"),
    }
)
_TEXTS: Final = {
    "inputFormat": f"{_PARQUET}.MapredParquetInputFormat",
    "outputFormat": f"{_PARQUET}.MapredParquetOutputFormat",
    "serializationLib": f"{_PARQUET}.serde.ParquetHiveSerDe",
    "type": "int",
    "colName": "id",
    "colType": "int",
    "tableType": "MANAGED_TABLE",
    "tbl_types": "MANAGED_TABLE",
    "lease_type": "x",
    "description": "what it is for",
    "className": "org.example.Function",
    "pattern": "*",
    "filter": 'ds = "2024-01-01"',
}
# By the beginning or the end of a field's name.
_BY_PART: Final = (
    (("part_name", "partname", "partitionname"), "ds=2024-01-01"),
    (("part_vals", "values", "part_val"), "2024-01-01"),
    (("tbl", "table", "objectname"), "orders"),
    (("db", "database"), "sales"),
    (("user", "owner", "principal", "grantor"), "ann"),
    (("host",), "host.example.org"),
    (("uri", "location"), "file:/warehouse/sales.db"),
)
# Of a struct in a field.
_NAMES: Final = {("FieldSchema", ""): "id", ("FieldSchema", "partitionKeys"): "ds", ("Database", ""): "sales"}
_NESTING_MAX: Final = 4


def example_call(method: Method) -> str:
    """A line for a shell."""
    words = [_word(field, "partition" in method.name) for field in method.definition.arguments]
    return " ".join(["hms-gateway", "call", method.name, *map(shlex.quote, words)])


def _word(field: Field, is_of_partition: bool) -> str:
    value = _value(field.type, field.name, 0)
    if isinstance(value, dict) and (description := value.get("statsDesc")):
        description["isTblLevel"] = not is_of_partition
        if not is_of_partition:
            del description["partName"]
    return value if isinstance(value, str) else json.dumps(value)


def _value(kind: Type, name: str, depth: int) -> Any:
    match kind:
        case StructType(struct):
            own = _NAMES.get((struct, name)) or _NAMES.get((struct, ""))
            return {
                field.name: own if own and field.name == "name" else _value(field.type, field.name, depth + 1)
                for field in _fields(struct, depth)
            }
        case ListType(element) | SetType(element):
            return [_value(element, name, depth + 1)]
        case MapType(key, element):
            return {str(_value(key, "key", depth)): _value(element, "value", depth)}
        case EnumType(enum):
            return next(iter(ENUMS[enum])).name
        case BaseType.STRING:
            return _text(name)
        case BaseType.BINARY:
            return "AA=="
        case BaseType.BOOL:
            return False
        case BaseType.DOUBLE:
            return 1.0
        case _:
            return 10 if "max" in name.lower() else 1


def _fields(struct: str, depth: int) -> list[Field]:
    fields = STRUCTS[struct].definition.fields
    if struct in _FIELDS:
        return [field for field in fields if field.name in _FIELDS[struct]]
    required = [field for field in fields if field.requiredness == "required"]
    if depth >= _NESTING_MAX:
        return [field for field in required if isinstance(field.type, BaseType)]
    return required or [field for field in fields if isinstance(field.type, BaseType)][:3] or list(fields[:1])


def _text(name: str) -> str:
    if name in _TEXTS:
        return _TEXTS[name]
    lowered = name.lower()
    return next((text for parts, text in _BY_PART if any(part in lowered for part in parts)), "orders")
