"""Schemas, partition specs and sort orders as JSON values: checks, ids, and the types of Hive (Iceberg table spec)."""

import re
from collections.abc import Callable, Container, Hashable, Iterator
from typing import Any, Final

import msgspec

from hms_gateway.iceberg.errors import invalid
from hms_gateway.iceberg.json_values import Json, checked, integers, needed, objects, optional, small

# Ids of partition fields begin above this one.
PARTITION_ID_BEFORE_FIRST: Final = 999
TYPE_DEPTH_MAX: Final = 100
NAME_CHARACTERS_MAX: Final = 1_000
"""Bound on the name of a partition field, which has the name of no other column."""

_HIVE: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "string",
    "timestamp": "timestamp",
    "timestamptz": "timestamp with local time zone",
    "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp with local time zone",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "unknown": "void",
    "variant": "binary",
}
_OF_V3: Final = frozenset({"timestamp_ns", "timestamptz_ns", "unknown", "variant"})
_decimal = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)", re.ASCII).fullmatch
_fixed = re.compile(r"fixed\[\s*(\d{1,9})\s*\]", re.ASCII).fullmatch
_geo = re.compile(r"(?:geometry|geography)(?:\(.*\))?").fullmatch
_transform = re.compile(r"identity|void|year|month|day|hour|(?:bucket|truncate)\[[1-9]\d{0,8}\]", re.ASCII).fullmatch
_NO_FIELD: Final = -1
# Of columns that identify a row.
_INEXACT: Final = frozenset({"float", "double"})


def check_schema(schema: Json, format_version: int) -> dict[int, Any]:
    """The types of all fields by their ids. Raises IcebergError for what is no schema of the format version."""
    if schema.get("type", "struct") != "struct":
        raise invalid("schema: a schema is a struct")
    found: dict[int, Any] = {}
    whole = {**schema, "type": "struct"}
    for field_id, kind in _walk(whole, 0):
        if field_id in found:
            raise invalid(f"schema: two fields have the id {field_id}")
        found[field_id] = kind
        if isinstance(kind, str):
            _check_primitive(kind, format_version)
    ids_by_name(whole)
    identifying = set(_identifying(schema)) if schema.get("identifier-field-ids") else ()
    for each in integers(schema, "identifier-field-ids") if identifying != () else ():
        if each not in identifying:
            text = f"identifier-field-ids names {each}, which is no required field of an exact type"
            raise invalid(f"schema: {text}")
    return found


def _identifying(struct: Json) -> Iterator[int]:
    """Ids of the fields that may identify a row: required ones, within required structs only."""
    for field in struct["fields"]:
        kind = field["type"]
        if field["required"] and isinstance(kind, str) and kind not in _INEXACT:
            yield field["id"]
        elif field["required"] and isinstance(kind, dict) and kind["type"] == "struct":
            yield from _identifying(kind)


def highest_id(schema: Json) -> int:
    return max((field_id for field_id, _ in _walk(schema, 0)), default=0)


def field_names(schema: Json) -> dict[int, str]:
    """Full names by the ids of fields, as `address.city` or `phones.element`, but for long ones (NAME_CHARACTERS_MAX).

    A few bytes for each of many fields with a long name around them would be as many long texts.
    """
    return {field_id: name for field_id, name, _ in _named(schema, "", "")}


def ids_by_name(schema: Json) -> dict[str, int]:
    """Ids of fields by their full names, and by short ones that are no full names (IndexByName of Iceberg's library).

    A short name has no `element` and no `value` for structs in lists and maps: `homes.city` is `homes.element.city`.
    That of several fields has the id of none, since Java takes the first of them and PyIceberg the last.
    Raises IcebergError for a full name of several fields, which both refuse.
    """
    full, short = dict[str, int](), dict[str, int]()
    for field_id, name, shorter in _named(schema, "", ""):
        if name in full:
            raise invalid(f"schema: two fields have the name {name}")
        full[name] = field_id
        short[shorter] = _NO_FIELD if shorter in short else field_id
    return short | full


def _named(kind: Json, before: str, short: str) -> Iterator[tuple[int, str, str]]:
    """Id, full name and short name of each field in a nested type, behind those of the type."""
    for name, field_id, inner in _fields(kind):
        if len(short) + len(name) > NAME_CHARACTERS_MAX:
            continue
        yield field_id, f"{before}{name}", f"{short}{name}"
        if isinstance(inner, dict):
            is_left_out = kind["type"] != "struct" and name != "key" and inner.get("type") == "struct"
            yield from _named(inner, f"{before}{name}.", short if is_left_out else f"{short}{name}.")


def _walk(kind: Json, depth: int) -> Iterator[tuple[int, Any]]:
    """Id and type of each field inside of a nested type."""
    if depth > TYPE_DEPTH_MAX:
        raise invalid(f"schema: types are nested more than {TYPE_DEPTH_MAX} deep")
    inside = _fields(kind)
    yield from ((field_id, inner) for _, field_id, inner in inside)
    for _, _, inner in inside:
        if isinstance(inner, dict):
            yield from _walk(inner, depth + 1)
        else:
            checked("schema: type", inner, str)


def _fields(kind: Json) -> list[tuple[str, int, Any]]:
    """Name, id and type of the fields of a nested type, without those inside of them. Raises IcebergError."""
    match kind.get("type"):
        case "struct":
            names = set()
            found = []
            needed(kind, "fields", list)
            for field in objects(kind, "fields"):
                name = needed(field, "name", str)
                if name in names:
                    raise invalid(f"schema: two fields have the name {name}")
                names.add(name)
                needed(field, "required", bool)
                optional(field, "doc", str)
                found.append((name, small(field, "id"), field.get("type")))
            return found
        case "list":
            needed(kind, "element-required", bool)
            return [("element", small(kind, "element-id"), kind.get("element"))]
        case "map":
            needed(kind, "value-required", bool)
            return [(each, small(kind, f"{each}-id"), kind.get(each)) for each in ("key", "value")]
        case other:
            raise invalid(f"schema: {other!r} is no nested type; struct, list and map are")


def _check_primitive(kind: str, format_version: int) -> None:
    decimal = _decimal(kind)
    if decimal is not None and not int(decimal[2]) <= int(decimal[1]) <= 38:
        raise invalid(f"schema: {kind} has more than 38 digits, or a scale above its precision")
    is_geo = _geo(kind) is not None
    if decimal is None and not is_geo and kind not in _HIVE and _fixed(kind) is None:
        raise invalid(f"schema: {kind} is no type of Iceberg")
    if format_version < 3 and (is_geo or kind in _OF_V3):
        raise invalid(f"schema: {kind} is not supported until v3, and the table has v{format_version}")


def hive_type(kind: Any) -> str:
    """The type of a column in the metastore, as Iceberg's HiveSchemaUtil has it."""
    if isinstance(kind, str):
        if _decimal(kind) is not None:
            return kind.replace(" ", "")
        return _HIVE.get(kind, "binary")
    match kind["type"]:
        case "struct":
            inside = (f"{each['name']}:{hive_type(each['type'])}" for each in kind["fields"])
            return f"struct<{','.join(inside)}>"
        case "list":
            return f"array<{hive_type(kind['element'])}>"
        case _:
            return f"map<{hive_type(kind['key'])},{hive_type(kind['value'])}>"


class FreshIds:
    """Ids from 1 on for the fields of a new table, those of a struct before those inside of them."""

    def __init__(self) -> None:
        self.last = 0
        self._new: dict[int, int] = {}

    def schema(self, schema: Json) -> Json:
        fresh: Json = self._nested(schema)
        identifiers = schema.get("identifier-field-ids")
        if identifiers:
            fresh["identifier-field-ids"] = [self.of(each) for each in identifiers]
        return fresh

    def of(self, old: int) -> int:
        """The new id of a field. Raises IcebergError for one that the schema does not have."""
        found = self._new.get(old)
        if found is None:
            raise invalid(f"no field of the schema has the id {old}")
        return found

    def _next(self, old: int) -> int:
        self.last += 1
        self._new[old] = self.last
        return self.last

    def _nested(self, kind: Any) -> Any:
        if isinstance(kind, str):
            return kind
        if kind["type"] == "struct":
            fields = [{**field, "id": self._next(field["id"])} for field in kind["fields"]]
            return {**kind, "fields": [{**field, "type": self._nested(field["type"])} for field in fields]}
        if kind["type"] == "list":
            new = {**kind, "element-id": self._next(kind["element-id"])}
            return {**new, "element": self._nested(kind["element"])}
        new = {**kind, "key-id": self._next(kind["key-id"]), "value-id": self._next(kind["value-id"])}
        return {**new, "key": self._nested(kind["key"]), "value": self._nested(kind["value"])}


def schema_key(schema: Json) -> Hashable:
    """The same for schemas that differ in their number only."""
    identifying = set(schema.get("identifier-field-ids") or ())
    return msgspec.json.encode([without_nulls(schema.get("fields")), identifying], order="sorted")


def without_nulls(value: Any) -> Any:
    """The value without fields that are null, which Java's readers refuse where they may be absent."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def source_ids(field: Json) -> list[int]:
    """The columns that a field of a spec or an order is made of; several from format version 3 on."""
    return integers(field, "source-ids") if field.get("source-ids") else [needed(field, "source-id", int)]


def check_transformed(fields: list[Json], what: str, columns: Container[int]) -> None:
    """Raises IcebergError for a transform that Iceberg does not have, or a column that the schema does not have."""
    for field in fields:
        transform = needed(field, "transform", str)
        if _transform(transform) is None:
            raise invalid(f"{what}: {transform} is no transform")
        for source in source_ids(field):
            # What is left of a dropped column.
            if transform != "void" and source not in columns:
                raise invalid(f"{what}: no column of the current schema has the id {source}")


def with_sources(field: Json, new_id: Callable[[int], int]) -> Json:
    """The field with other ids of its columns."""
    ids = [new_id(each) for each in source_ids(field)]
    return {**field, "source-ids": ids} if "source-ids" in field else {**field, "source-id": ids[0]}


def spec_key(fields: list[Json]) -> Hashable:
    """The same for specs that make the same partitions; ids of their fields do not matter."""
    return tuple((*source_ids(field), field.get("transform"), field.get("name")) for field in fields)
