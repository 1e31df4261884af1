"""Arguments for any method of the IDL: a call that could be meant, and its variants with one thing made bad."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from hms_gateway.rpc.idl import BaseType, EnumType, Field, ListType, MapType, SetType, StructType, Type
from hms_gateway.rpc.idl.model import Requiredness, StructKind
from hms_gateway.rpc.structs import ENUMS, STRUCTS, Struct, ThriftException

# Stands for half of a surrogate pair, which JSON can carry and no text of ours: put in where the call is encoded.
HALF_PAIR: Final = "half of a surrogate pair"

BAD_TEXTS: Final = (
    None,
    "",
    " ",
    "missing",
    "DEFAULT",
    "größe☃",
    "a\0b",
    "a\x01\x7fb",
    "a/b'\"\\%_*",
    "@x",
    "@spark#d",
    HALF_PAIR,
    "n" * 5_000,
)
_BAD_NUMBERS: Final = {
    BaseType.I8: (None, 0, -1, 127, -128),
    BaseType.I16: (None, 0, -1, 2**15 - 1, -(2**15)),
    BaseType.I32: (None, 0, -1, 2**31 - 1, -(2**31)),
    BaseType.I64: (None, 0, -1, 2**63 - 1, -(2**63)),
    BaseType.DOUBLE: (None, 0.0, -1.0, float("nan"), float("inf"), 1e308),
}
_BAD_BYTES: Final = (None, b"", b"\0", b"\xff\xfe", b"n" * 5_000)

# What fields are called that mean the same thing everywhere; anything else is `x`.
_TEXTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("catName", "cat_name", "catalog", "catalogName"), "hive"),
    **dict.fromkeys(
        (
            *("db", "dbName", "db_name", "dbname", "database", "databaseName", "oldDbName", "db_pattern", "table_db"),
            *("parent_db_name", "foreign_db_name", "pktable_db", "fktable_db", "db_patterns", "source_db", "dest_db"),
        ),
        "default",
    ),
    **dict.fromkeys(
        (
            *("tbl", "tbName", "tblName", "tableName", "tbl_name", "table_name", "tablename", "table", "origTableName"),
            *("parent_tbl_name", "foreign_tbl_name", "pktable_name", "fktable_name", "base_tbl_name", "objectName"),
            *("source_table_name", "dest_table_name", "tbl_patterns"),
        ),
        "t",
    ),
    **dict.fromkeys(("partName", "part_name", "partitionname", "partitionName"), "ds=1"),
    **dict.fromkeys(("colName", "col_name", "column_name", "columnName", "pkcolumn_name", "fkcolumn_name", "col"), "a"),
    **dict.fromkeys(("type", "colType"), "int"),
    **dict.fromkeys(("location", "locationUri", "managedLocationUri", "dataPath", "rootPath"), "file:/warehouse/x"),
    **dict.fromkeys(("filter", "expr", "partitionFilter"), 'ds = "1"'),
    **dict.fromkeys(("funcName", "functionName"), "f"),
    **dict.fromkeys(("roleName", "role_name", "role"), "r"),
    **dict.fromkeys(("index_name", "idx_name", "indexName"), "i"),
    **dict.fromkeys(("validTxnList",), "9:9223372036854775807::"),
    **dict.fromkeys(("resourcePlanName",), "plan"),
    "ns": "default",
    **dict.fromkeys(("poolPath", "pool", "defaultPoolPath"), "default"),
    **dict.fromkeys(("triggerName", "trigger"), "trigger"),
    **dict.fromkeys(("schemaName",), "s"),
    **dict.fromkeys(("serdeName",), "serde"),
    **dict.fromkeys(("scheduleName",), "q"),
    **dict.fromkeys(("clusterNamespace",), "cluster"),
    "entityType": "USER",
    "schedule": "0 0 0 * * ?",
    "name": "x",
    "tableType": "MANAGED_TABLE",
    "catalogName": "hive",
    "type1": "int",
    "grantor": "ann",
    "fullTableName": "default.t",
    "fullTableNames": "default.t",
    "tablesUsed": "default.t",
    "validWriteIdList": "default.t:9:9223372036854775807::",
    "validWriteIdlist": "default.t:9:9223372036854775807::",
}
_ELEMENTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("values", "part_vals", "partVals", "partitionVals", "partitionVal", "partValues"), "1"),
    **dict.fromkeys(("partNames", "part_names", "names", "partitionnames", "partitionNames"), "ds=1"),
    **dict.fromkeys(("colNames", "col_names", "skewedColNames", "bucketCols"), "a"),
}
_OF_STRUCTS: Final[Mapping[tuple[str, str], Any]] = {
    ("FieldSchema", "name"): "a",
    ("GetPartitionsByNamesRequest", "names"): ["ds=1"],
    ("CreationMetadata", "validTxnList"): "9$default.t:9:9223372036854775807::",
    ("Catalog", "name"): "hive",
    ("GetCatalogRequest", "name"): "hive",
    ("ISchema", "name"): "new",
    ("CommitTxnKeyValue", "key"): "_meta.x",
    ("SQLPrimaryKey", "pk_name"): "new_pk",
    ("SQLForeignKey", "fk_name"): "new_fk",
    ("SQLForeignKey", "pk_name"): "k",
    ("SQLUniqueConstraint", "uk_name"): "new_uk",
    ("SQLNotNullConstraint", "nn_name"): "new_nn",
    ("SQLDefaultConstraint", "dc_name"): "new_dc",
    ("SQLCheckConstraint", "dc_name"): "new_cc",
    ("EnvironmentContext", "properties"): {"a": "b"},
    ("GetPrincipalsInRoleRequest", "roleName"): "r",
}
_NUMBERS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("max_parts", "maxParts", "maxEvents", "max_tables", "max_indexes"), 5),
    **dict.fromkeys(("txnid", "txnId", "txn_id", "tableId"), 2),
    "HiveObjectType": 3,
    "QueryState": 1,
    "DataOperationType": 1,
}
# Struct may contain themselves, and nobody looks so deep.
_DEPTH_MAX: Final = 8


def template(field: Field, meant: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """A value that a caller might send for a field; `meant` has values for fields by their names."""
    return _Maker(meant).value(field.type, field.name, 0)


def variants(value: Any, type: Type) -> Iterator[Any]:
    """`value` with one of its texts, numbers, lists, maps or structs replaced by something bad, each in turn."""
    match type:
        case BaseType.STRING:
            yield from BAD_TEXTS
        case BaseType.BINARY:
            yield from _BAD_BYTES
        case BaseType.BOOL:
            yield from (None, True, False)
        case BaseType():
            yield from _BAD_NUMBERS[type]
        case EnumType():
            yield from _BAD_NUMBERS[BaseType.I32]
        case StructType():
            yield None
            if value is not None:
                yield from _struct_variants(value)
        case ListType(element) | SetType(element):
            yield from (None, [])
            for inner in value or ():
                yield from ([one] for one in variants(inner, element) if one is not None)
        case MapType(key_type, item_type):
            yield from (None, {})
            for key, item in (value or {}).items():
                yield from ({one: item} for one in variants(key, key_type) if one is not None)
                yield from ({key: one} for one in variants(item, item_type) if one is not None)


def _struct_variants(value: Struct) -> Iterator[Struct]:
    """Of a union one member at a time, of other structs one field."""
    is_union = value.definition.kind is StructKind.UNION
    for field in value.definition.fields:
        mine = getattr(value, field.name)
        if is_union and mine is None:
            yield type(value)(**{field.name: template(field)})
            continue
        for one in variants(mine, field.type):
            if one != mine or one is None:
                yield msgspec.structs.replace(value, **{field.name: one})


class _Maker:
    def __init__(self, meant: Mapping[str, Any]) -> None:
        self._meant = meant

    def value(self, type: Type, name: str, depth: int) -> Any:
        if name in self._meant:
            return self._meant[name]
        match type:
            case BaseType.STRING:
                return _TEXTS.get(name, "x")
            case BaseType.BINARY:
                return b"x"
            case BaseType.BOOL:
                return False
            case BaseType.DOUBLE:
                return 1.0
            case BaseType():
                return _NUMBERS.get(name, 1)
            case EnumType(enum_name):
                return _NUMBERS.get(enum_name, next(iter(ENUMS[enum_name])))
            case StructType(struct_name):
                return self._struct(struct_name, depth) if depth < _DEPTH_MAX else None
            case ListType(element) | SetType(element):
                inner = self._element(element, name, depth)
                return [] if inner is None else [inner]
            case MapType(key, item):
                inner = self.value(item, name, depth + 1)
                # JSON has no maps by lists.
                is_plain = isinstance(key, BaseType | EnumType) and inner is not None
                return {self.value(key, name, depth + 1): inner} if is_plain else {}
        raise AssertionError(type)

    def _element(self, type: Type, name: str, depth: int) -> Any:
        if type is BaseType.STRING and name in _ELEMENTS:
            return _ELEMENTS[name]
        return self.value(type, name, depth + 1)

    def _struct(self, name: str, depth: int) -> Struct | ThriftException | None:
        struct_class = STRUCTS[name]
        if _is_recursive(name) and depth > 2:
            return None
        values: dict[str, Any] = {}
        for field in struct_class.definition.fields:
            known = _OF_STRUCTS.get((name, field.name))
            value = self.value(field.type, field.name, depth + 1) if known is None else known
            if value is None and field.requiredness is Requiredness.REQUIRED:
                return None
            values[field.name] = value
            if struct_class.definition.kind is StructKind.UNION:
                break
        return struct_class(**values)


@cache
def _is_recursive(name: str) -> bool:
    """Whether a struct may contain one of its kind."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for field in STRUCTS[waiting.pop()].definition.fields:
            for inner in _structs_in(field.type):
                if inner == name:
                    return True
                if inner not in seen:
                    seen.add(inner)
                    waiting.append(inner)
    return False


def _structs_in(type: Type) -> Iterator[str]:
    match type:
        case StructType(name):
            yield name
        case ListType(element) | SetType(element):
            yield from _structs_in(element)
        case MapType(key, item):
            yield from _structs_in(key)
            yield from _structs_in(item)
