"""Structs to the encoded fragments that rows keep, and back (design D5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, TypeVar

import msgspec

from hms_gateway.rpc.idl import BaseType, ListType, MapType, StructType
from hms_gateway.rpc.structs import Database, FieldSchema, Partition, SkewedInfo, StorageDescriptor, Struct, Table
from hms_gateway.rpc.wire.tjson_codec import decode_value, encode_value

S = TypeVar("S", bound=Struct)

_TEXTS: Final = ListType(BaseType.STRING)
_TEXT_MAP: Final = MapType(BaseType.STRING, BaseType.STRING)
_FIELD_SCHEMAS: Final = ListType(StructType("FieldSchema"))
_DESCRIPTOR: Final = StructType("StorageDescriptor")
_PARTITION: Final = StructType("Partition")

EMPTY_MAP: Final = '["str","str",0,{}]'


def encode_map(texts: Mapping[str, str] | None) -> str:
    """A map as TJSON. Entries without value are left out, an absent map is an empty one (semantics §3.3)."""
    if not texts:
        return EMPTY_MAP
    if None in texts.values():
        texts = {key: value for key, value in texts.items() if value is not None}
    return encode_value(_TEXT_MAP, texts).decode()


def decode_map(fragment: str) -> dict[str, str]:
    return {} if fragment == EMPTY_MAP else decode_value(_TEXT_MAP, fragment.encode())


def encode_texts(texts: Sequence[str]) -> str:
    return encode_value(_TEXTS, texts).decode()


def decode_texts(fragment: str) -> list[str]:
    texts: list[str] = decode_value(_TEXTS, fragment.encode())
    return texts


def text_hash(text: str) -> str:
    """A key for a text of any length and with any characters."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def encode_columns(columns: Sequence[FieldSchema] | None) -> str | None:
    """A list of columns as TJSON, None without a list."""
    return None if columns is None else encode_value(_FIELD_SCHEMAS, columns).decode()


def decode_columns(fragment: str | None) -> list[FieldSchema] | None:
    return None if fragment is None else decode_value(_FIELD_SCHEMAS, fragment.encode())


@dataclass(frozen=True)
class DescriptorContent:
    """A storage descriptor without its location.

    columns         field 1 as TJSON, None when unset
    rest            fields 3 and up: members of the struct without the braces
    skew_locations  the list-keyed map that TJSON cannot carry (clients A.5), as JSON pairs; None when empty
    """

    columns: str | None
    rest: str
    skew_locations: str | None

    @cached_property
    def content_hash(self) -> str:
        parts = "\0".join((self.columns or "", self.rest, self.skew_locations or ""))
        return blake2b(parts.encode(), digest_size=16).hexdigest()

    def with_columns(self, columns: str | None) -> "DescriptorContent":
        return DescriptorContent(columns, self.rest, self.skew_locations)


def encode_descriptor(descriptor: StorageDescriptor) -> DescriptorContent:
    """Everything of `descriptor` but the location."""
    rest = encode_value(_DESCRIPTOR, msgspec.structs.replace(descriptor, cols=None, location=None))
    return DescriptorContent(
        columns=encode_columns(descriptor.cols),
        rest=rest[1:-1].decode(),
        skew_locations=_encode_skew_locations(descriptor.skewedInfo),
    )


def decode_descriptor(content: DescriptorContent, location: str | None) -> StorageDescriptor:
    """The whole storage descriptor again."""
    members = [f'"1":{{"lst":{content.columns}}}'] if content.columns is not None else []
    if content.rest:
        members.append(content.rest)
    descriptor: StorageDescriptor = decode_value(_DESCRIPTOR, f"{{{','.join(members)}}}".encode())
    descriptor.location = location
    if content.skew_locations is not None and descriptor.skewedInfo is not None:
        pairs = msgspec.json.decode(content.skew_locations, type=list[tuple[tuple[str, ...], str]])
        descriptor.skewedInfo.skewedColValueLocationMaps = dict(pairs)
    return descriptor


def encode_extra(struct: Struct, extra_fields: Sequence[str]) -> str | None:
    """Those of `extra_fields` that are set, as a struct of the same type; None when none is."""
    found = {name: value for name in extra_fields if (value := getattr(struct, name)) is not None}
    if not found:
        return None
    return encode_value(StructType(type(struct).__name__), type(struct)(**found)).decode()


def decode_extra(struct_class: type[S], fragment: str | None) -> S:
    """A struct with the extra fields set, or nothing."""
    if fragment is None:
        return struct_class()
    extra: S = decode_value(StructType(struct_class.__name__), fragment.encode())
    return extra


def encode_struct(struct: Struct) -> str:
    """A whole struct, as TJSON."""
    return encode_value(StructType(type(struct).__name__), struct).decode()


def decode_struct(struct_class: type[S], fragment: str) -> S:
    """The reverse of `encode_struct`."""
    struct: S = decode_value(StructType(struct_class.__name__), fragment.encode())
    return struct


def encode_partition_extra(partition: Partition) -> str | None:
    """What a partition has beyond the fields with columns of their own: members, each after a comma."""
    fragment = encode_extra(partition, PARTITION_EXTRA)
    return fragment and f",{fragment[1:-1]}"


def decode_partition_extra(fragment: str | None) -> Partition:
    if fragment is None:
        return Partition()
    extra: Partition = decode_value(_PARTITION, f"{{{fragment[1:]}}}".encode())
    return extra


def names_except(struct_class: type[Struct], *names: str) -> tuple[str, ...]:
    """The fields that have no column of their own, for `encode_extra`."""
    return tuple(field.name for field in struct_class.definition.fields if field.name not in names)


# Left out: privileges are grants, `temporary` is the clients' notion (semantics §3.3), `id` is ours to give.
DATABASE_EXTRA: Final = names_except(
    Database, "name", "description", "locationUri", "parameters", "privileges", "ownerName", "ownerType", "createTime"
)
TABLE_EXTRA: Final = names_except(
    Table, "tableName", "dbName", "owner", "createTime", "lastAccessTime", "retention", "sd", "partitionKeys",
    "parameters", "viewOriginalText", "viewExpandedText", "tableType", "privileges", "temporary", "id",
)  # fmt: skip
PARTITION_EXTRA: Final = names_except(
    Partition, "values", "dbName", "tableName", "createTime", "lastAccessTime", "sd", "parameters", "privileges"
)


def _encode_skew_locations(skewed: SkewedInfo | None) -> str | None:
    locations: Any = skewed.skewedColValueLocationMaps if skewed is not None else None
    if not locations:
        return None
    return msgspec.json.encode([[list(values), location] for values, location in sorted(locations.items())]).decode()
