"""Reads TJSON replies with the IDL's names and without what differs between two runs: times, folders and ids.

This reader knows nothing of the gateway's own codecs, and is strict: a type tag that is not the IDL's is an error.
"""

import base64
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.idl import BaseType, EnumType, ListType, MapType, SetType, StructDef, StructType, Type
from hms_gateway.rpc.structs import IDL, METHODS
from tests.comparison.ids import Ids, kind_of, named_in_request

REPLY, EXCEPTION = 2, 3
EVENT_MESSAGE = ("NotificationEvent", "message")
TAGS = {
    BaseType.BOOL: "tf",
    BaseType.I8: "i8",
    BaseType.I16: "i16",
    BaseType.I32: "i32",
    BaseType.I64: "i64",
    BaseType.DOUBLE: "dbl",
    BaseType.STRING: "str",
    BaseType.BINARY: "str",
}
# A clock that two processes share may still be read a moment apart.
SECONDS_AROUND = 5
# What a server made when it started is as new as what it makes now; nothing a script sends is from the last hours.
SECONDS_BEFORE = 4 * 3600
# Names that begin with it belong to one program alone; spelled in capitals too, so it is a number.
OWN = re.compile(r"\{own\}", re.IGNORECASE)
NUMBERS = re.compile(r"(?<![\d.])\d{10}(?:\d{3})?(?![\d.])")

Reply = dict[str, Any]


class NotAsDeclared(Exception):
    """The bytes are no TJSON reply as the IDL declares it."""


class Surroundings:
    """What is different for each server: its folders, the time since when it runs, and the ids it gives."""

    def __init__(self, warehouse: Path, elsewhere: Path) -> None:
        self.ids = Ids()
        self.own = "0000000_"
        self._since = time.time() - SECONDS_BEFORE
        self._folders = [
            (f"file:{warehouse}", "{warehouse}"),
            (f"file:{elsewhere}", "{elsewhere}"),
            (str(warehouse), "{warehouse path}"),
            (str(elsewhere), "{elsewhere path}"),
        ]

    def fill_in(self, text: str) -> str:
        """A request with the placeholders replaced by this server's folders and ids, and the names' beginning."""
        for folder, name in self._folders:
            text = text.replace(name, folder)
        return self.ids.fill_in(OWN.sub(self.own, text))

    def text(self, text: str) -> str:
        """A text of a reply with placeholders in place of this server's folders, ids and of the time."""
        for folder, name in self._folders:
            text = text.replace(folder, name)
        text = self.ids.text(text.replace(self.own, "{own}"))
        return NUMBERS.sub(lambda found: str(self.number(int(found[0]))), text)

    def number(self, number: int) -> int | str:
        now = time.time()
        if self._since - SECONDS_AROUND <= number <= now + SECONDS_AROUND:
            return "{now}"
        if (self._since - SECONDS_AROUND) * 1000 <= number <= (now + SECONDS_AROUND) * 1000:
            return "{now in milliseconds}"
        return number


def read_reply(body: bytes, method: str, around: Surroundings, dialect: Dialect = Dialect.HIVE_2_3) -> Reply:
    """The normalised reply: `{"success": value}`, `{}` of a void method, or `{exception: fields}`."""
    message = json.loads(body.decode(), strict=False)
    if message[0] != 1 or message[1] != method:
        raise NotAsDeclared(f"{message[:4]} in answer to {method}")
    if message[2] == EXCEPTION:
        fields = message[4]
        text = around.text(fields.get("1", {}).get("str", ""))
        return {"TApplicationException": {"type": fields["2"]["i32"], "message": text}}
    if message[2] != REPLY:
        raise NotAsDeclared(f"message type {message[2]} in answer to {method}")
    declared = methods_of(dialect)[method]
    result = _Reader(around).struct(declared.result.definition, message[4])
    if len(result) > 1:
        raise NotAsDeclared(f"{method} answers with {', '.join(result)} at once")
    exceptions = {field.name: field.type for field in declared.definition.throws}
    return {_exception_name(exceptions[name]) if name in exceptions else name: value for name, value in result.items()}


def read_arguments(method: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a request by name, for people and for the table of differences."""
    reader = _Reader(None)
    try:
        return reader.struct(METHODS[method].arguments.definition, request)
    except (NotAsDeclared, KeyError, TypeError, ValueError, AttributeError):
        return {"unreadable": request}


def different_places(one: Any, other: Any, place: str = "reply") -> Iterator[tuple[str, Any, Any]]:
    """Where two values differ: the path, and what each has there; of lists of unlike length what only one has."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from different_places(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from different_places(left, right, f"{place}[{index}]")
    elif isinstance(one, list) and isinstance(other, list):
        yield place, _without(one, other), _without(other, one)
    elif one != other:
        yield place, one, other


def _without(some: list[Any], others: list[Any]) -> list[Any]:
    return [one for one in some if one not in others]


def _exception_name(type: Type) -> str:
    assert isinstance(type, StructType)
    return type.name


class _Reader:
    def __init__(self, around: Surroundings | None) -> None:
        self._around = around

    def struct(self, definition: StructDef, value: Mapping[str, Any]) -> dict[str, Any]:
        by_id = {str(field.id): field for field in definition.fields}
        found = {}
        for number, tagged in value.items():
            field = by_id.get(number)
            if field is None:
                raise NotAsDeclared(f"field {number} is not declared: {tagged}")
            tag = _tag(field.type)
            if list(tagged) != [tag]:
                raise NotAsDeclared(f"field {field.name} should be {tag}: {tagged}")
            kind = None if self._around is None else kind_of(definition.name, field.name)
            if (definition.name, field.name) == EVENT_MESSAGE:
                found[field.name] = self._parsed(tagged[tag])
            elif kind is None:
                found[field.name] = self.value(field.type, tagged[tag])
            else:
                found[field.name] = self.ids(kind, field.type, tagged[tag])
        if "abortedBits" in found and "open_txns" in found:
            found["abortedBits"] = self._aborted(definition, value)
        return found

    def _aborted(self, definition: StructDef, value: Mapping[str, Any]) -> Any:
        """The transactions of the script that the bits mean: which place is whose depends on earlier ones."""
        tagged = {field.name: value[str(field.id)] for field in definition.fields if str(field.id) in value}
        _, _, *numbers = tagged["open_txns"]["lst"]
        text = tagged["abortedBits"]["str"]
        bits = int.from_bytes(base64.b64decode(text + "=" * (-len(text) % 4)), "little")
        aborted = [number for place, number in enumerate(numbers) if bits >> place & 1]
        return self.ids("txn", ListType(BaseType.I64), ["i64", len(aborted), *aborted])

    def ids(self, kind: str, type: Type, value: Any) -> Any:
        """An id, or those of a list that are not from before the script."""
        assert self._around is not None
        if not isinstance(type, ListType | SetType):
            return self._around.ids.named(kind, value)
        numbers = sorted(self.value(type, value))
        return [self._around.ids.named(kind, one) for one in numbers if not self._around.ids.is_older(kind, one)]

    def value(self, type: Type, value: Any) -> Any:
        match type:
            case StructType(name):
                return self.struct(IDL.structs[name], value)
            case ListType(element) | SetType(element):
                tag, count, *elements = value
                if tag != _tag(element) or count != len(elements):
                    raise NotAsDeclared(f"list of {count} {tag}: {str(value)[:200]}")
                if isinstance(element, StructType):
                    elements = [one for one in elements if not self._is_older(IDL.structs[element.name], one)]
                return [self.value(element, one) for one in elements]
            case MapType(key, element):
                key_tag, tag, count, entries = value
                # A map without entries is free to name any types.
                if count != len(entries) or (count and (key_tag, tag) != (_tag(key), _tag(element))):
                    raise NotAsDeclared(f"map of {count} {key_tag} to {tag}: {str(value)[:200]}")
                return {self._text(one): self.value(element, other) for one, other in sorted(entries.items())}
            case BaseType.STRING:
                return self._text(value)
            case BaseType.I32 | BaseType.I64:
                return named_in_request(value) if self._around is None else self._around.number(value)
            case BaseType.BOOL:
                return bool(value)
            case _:
                return value

    def _is_older(self, definition: StructDef, value: Mapping[str, Any]) -> bool:
        """A transaction that an earlier script left aborted, an event of its."""
        if self._around is None or definition.name not in ("TxnInfo", "NotificationEvent"):
            return False
        identity = definition.fields[0]
        number = next(iter(value.get(str(identity.id), {}).values()), None)
        return self._around.ids.is_older(kind_of(definition.name, identity.name), number)

    def _parsed(self, value: Any) -> Any:
        """A message of an event: JSON, in which some texts are JSON themselves."""
        match value:
            case dict():
                return {name: self._parsed(one) for name, one in sorted(value.items())}
            case list():
                return [self._parsed(one) for one in value]
            case bool() | None:
                return value
            case int():
                return value if self._around is None else self._around.number(value)
            case str():
                return self._parsed(json.loads(value)) if value.startswith('{"') else self._text(value)
        return value

    def _text(self, text: str) -> str:
        return text if self._around is None else self._around.text(text)


def _tag(type: Type) -> str:
    match type:
        case StructType():
            return "rec"
        case ListType():
            return "lst"
        case SetType():
            return "set"
        case MapType():
            return "map"
        case EnumType():
            return "i32"
        case _:
            return TAGS[type]
