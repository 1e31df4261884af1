"""Work of `hms-gateway call --list` and `--explain`: methods, their arguments, and an example to paste and change."""

import json
import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from hms_gateway.cli.terminal.output import fail, out
from hms_gateway.metastore.vocabulary.texts import did_you_mean
from hms_gateway.rpc.idl import BaseType, EnumType, Field, ListType, MapType, SetType, StructType, Type
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.idl.model import exception_names, signature, type_text
from hms_gateway.rpc.structs import ENUMS, METHODS, STRUCTS, Method

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


def print_methods() -> None:
    """All methods with their signatures, one line each."""
    for method in METHODS.values():
        print(signature(method.definition))


def print_explanation(name: str) -> None:
    """Signature, exceptions, and the fields of every struct the method takes."""
    method = find_method(name)
    definition = method.definition
    out.print(f"[bold]{escape(signature(definition))}[/bold]", soft_wrap=True, highlight=False)
    out.print(_known_to(method_facts()[method.name].known_to), style="dim", highlight=False)
    out.print(f"throws {', '.join(exception_names(definition)) or 'nothing declared'}", style="dim")
    out.print("example:", style="dim")
    print(f"  {example_call(method)}")
    for named in _named_types(field.type for field in definition.arguments):
        _print_enum(named.name) if isinstance(named, EnumType) else _print_struct(named.name)


def _known_to(generations: str) -> str:
    if not generations[:1].isdecimal():
        return "a method of hms-gateway; clients of Hive do not know it"
    return f"known to clients of Hive {generations}"


def find_method(name: str) -> Method:
    """The method of this name; ends the command with what may have been meant when there is none."""
    if name.startswith("-"):
        fail(f"unknown option {name}", "hms-gateway call --help shows all options")
    if name not in METHODS:
        fail(f"unknown method {name}{did_you_mean(name, METHODS)}", "hms-gateway call --list shows all methods")
    return METHODS[name]


def _named_types(types: Iterable[Type]) -> Iterator[StructType | EnumType]:
    """Every struct and enum reachable from `types`, each once, nearest first."""
    seen: set[Type] = set()
    waiting = deque(types)
    while waiting:
        kind = waiting.popleft()
        if kind in seen:
            continue
        seen.add(kind)
        match kind:
            case ListType(element) | SetType(element):
                waiting.append(element)
            case MapType(key, value):
                waiting.extend((key, value))
            case StructType(name):
                yield kind
                waiting.extend(field.type for field in STRUCTS[name].definition.fields)
            case EnumType():
                yield kind


def _print_struct(name: str) -> None:
    table = Table(title=name, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2))
    # A name that is cut off cannot be copied.
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for field in STRUCTS[name].definition.fields:
        table.add_row(field.name, escape(type_text(field.type)), _remark(field))
    out.print()
    out.print(table)


def _remark(field: Field) -> str:
    words = [] if field.requiredness == "default" else [field.requiredness.value]
    if field.default is not None:
        words.append(f"default {field.default}")
    return escape(", ".join(words))


def _print_enum(name: str) -> None:
    members = ", ".join(f"{member.name}={member.value}" for member in ENUMS[name])
    out.print(f"\n[bold]{name}[/bold]\n  {members}", highlight=False)
