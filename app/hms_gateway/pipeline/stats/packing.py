"""Figures of many columns as bytes, for tables of a run."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from hms_gateway.pipeline.footers import FooterFigures

_FIELDS: Final = tuple(field.name for field in msgspec.structs.fields(FooterFigures))
_LOW, _HIGH = _FIELDS.index("low"), _FIELDS.index("high")
_INT64_MAX: Final = (1 << 63) - 1
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, list[Any]]).decode


def packed(figures: Mapping[str, FooterFigures]) -> bytes:
    return _encode({name: _row(each) for name, each in figures.items()})


def unpacked(data: bytes) -> dict[str, FooterFigures]:
    found = {}
    for name, row in _decode(data).items():
        row[_LOW], row[_HIGH] = _value(row[_LOW]), _value(row[_HIGH])
        found[name] = FooterFigures(*row)
    return found


def _row(figures: FooterFigures) -> list[Any]:
    row = list(msgspec.structs.astuple(figures))
    row[_LOW], row[_HIGH] = _plain(row[_LOW]), _plain(row[_HIGH])
    return row


def _plain(value: Any) -> Any:
    """What MessagePack does not have becomes a text: decimals, and numbers beyond 64 bits."""
    if isinstance(value, Decimal):
        return f"d{value}"
    return f"i{value}" if isinstance(value, int) and abs(value) > _INT64_MAX else value


def _value(plain: Any) -> Any:
    if not isinstance(plain, str):
        return plain
    return Decimal(plain[1:]) if plain[0] == "d" else int(plain[1:])
