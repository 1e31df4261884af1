"""Every place of a call's arguments where a caller may put a text, and texts that parsers could stumble over."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.rpc.idl import BaseType, EnumType, Field, ListType, MapType, SetType, StructType, Type
from hms_gateway.rpc.structs import Struct

# Each is repeated until the text is as long as it has to be, between what it may begin and end with.
SHAPES: Final = (
    *("a", "A", "*", "|", ".", "?", "(", ")", "[", "{", "<", '"', "'", "`", "\\", "/", "=", ",", ":", ";", "$", "%"),
    *(" ", "\n", "0", "9", "-", "+", "_", "@", "#", "é", "😀", "%2", "%41", "a*", "a|", ".*", "a.b.", "a=b/", "k=v,"),
    *("a/../", "//", "./", "file:", "array<", "struct<a:", "map<", "int,", "a:int,", "and ", "not ", "a=1 and "),
    *("('1',", "((", "1,", "1:", "9:", "t:9:", "$t:9:", "*/1,", "1-", "L-", "1e", "1.", "\\Q", "a{9", "{1,", "\u2028"),
)
PREFIXES: Final = (
    "",
    "ds = '",
    "struct<",
    "array<",
    "(ds) in (",
    "0 0 0 ",
    "default.t:9:9223372036854775807:",
    "ds=",
    "file:/",
)


class Place(NamedTuple):
    """`path` names it; `filled` gives all arguments with a text there."""

    path: str
    filled: Callable[[str], list[Any]]


def places(arguments: list[Any], fields: tuple[Field, ...]) -> Iterator[Place]:
    for position, field in enumerate(fields):
        for path, replaced in _places(arguments[position], field.type):

            def filled(text: str, position: int = position, replaced: Any = replaced) -> list[Any]:
                return [*arguments[:position], replaced(text), *arguments[position + 1 :]]

            yield Place(field.name + path, filled)


def long_text(shape: str, length: int, prefix: str = "") -> str:
    return (prefix + shape * (length // len(shape) + 1))[:length]


_Replaced = Callable[[str], Any]


def _places(value: Any, type: Type) -> Iterator[tuple[str, _Replaced]]:
    match type:
        case BaseType.STRING:
            yield "", lambda text: text
        case BaseType.BINARY:
            yield "", lambda text: text.encode()
        case StructType() if value is not None:
            yield from _in_struct(value)
        case ListType(element) | SetType(element):
            for one in list(value or ())[:1]:
                for path, replaced in _places(one, element):
                    collection = set if isinstance(type, SetType) else list
                    yield f"[]{path}", lambda text, replaced=replaced, made=collection: made([replaced(text)])
        case MapType(key_type, item_type):
            for key, item in list((value or {}).items())[:1]:
                for path, replaced in _places(key, key_type):
                    yield f"{{key}}{path}", lambda text, replaced=replaced, item=item: {replaced(text): item}
                for path, replaced in _places(item, item_type):
                    yield f"{{}}{path}", lambda text, replaced=replaced, key=key: {key: replaced(text)}
        case EnumType() | BaseType() | StructType():
            return


def _in_struct(value: Struct) -> Iterator[tuple[str, _Replaced]]:
    for field in value.definition.fields:
        for path, replaced in _places(getattr(value, field.name), field.type):

            def put(text: str, name: str = field.name, replaced: _Replaced = replaced) -> Struct:
                return msgspec.structs.replace(value, **{name: replaced(text)})

            yield f".{field.name}{path}", put


class ListPlace(NamedTuple):
    """A list, set or map among arguments; `filled` gives all of them with so many elements there."""

    path: str
    filled: Callable[[int], list[Any]]


def list_places(arguments: list[Any], fields: tuple[Field, ...]) -> Iterator[ListPlace]:
    """Each list with equal elements, and with elements that differ in one of their texts or numbers."""
    for position, field in enumerate(fields):
        for path, made in _list_places(arguments[position], field.type):

            def filled(count: int, position: int = position, made: Any = made) -> list[Any]:
                return [*arguments[:position], made(count), *arguments[position + 1 :]]

            yield ListPlace(field.name + path, filled)


_Made = Callable[[int], Any]


def _list_places(value: Any, type: Type) -> Iterator[tuple[str, _Made]]:
    match type:
        case StructType() if value is not None:
            for field in value.definition.fields:
                for path, made in _list_places(getattr(value, field.name), field.type):

                    def put(count: int, name: str = field.name, made: _Made = made) -> Struct:
                        return msgspec.structs.replace(value, **{name: made(count)})

                    yield f".{field.name}{path}", put
        case ListType(element) | SetType(element) if value:
            one = next(iter(value))
            collection = set if isinstance(type, SetType) else list
            if collection is list:
                yield "[=]", lambda count: [one] * count
            for path, varied in _varied(one, element):
                yield f"[]{path}", lambda count, varied=varied: collection(map(varied, range(count)))
            for path, made in _list_places(one, element):
                yield f"[0]{path}", lambda count, made=made: collection([made(count)])
        case MapType(key_type, _) if value:
            key, item = next(iter(value.items()))
            for path, varied in _varied(key, key_type):
                yield f"{{}}{path}", lambda count, varied=varied: {varied(number): item for number in range(count)}


def _varied(value: Any, type: Type) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """The value with a number in one of its texts, or instead of one of its numbers."""
    if type is BaseType.I64 or type is BaseType.I32:
        yield "", lambda number: number + 1
    elif isinstance(value, Struct):
        for field in value.definition.fields:
            if field.type in (BaseType.I64, BaseType.I32):
                yield (
                    f".{field.name}",
                    lambda number, name=field.name: msgspec.structs.replace(value, **{name: number + 1}),
                )
    for path, replaced in _places(value, type):
        found = _at(value, type, path)
        yield path, lambda number, replaced=replaced, found=found: replaced(f"{found}{number}")


def _at(value: Any, type: Type, path: str) -> str:
    """The text that is replaced there: where it cannot be found easily, a new one does as well."""
    if isinstance(value, str):
        return value
    field_name = path.removeprefix(".")
    found = getattr(value, field_name, None)
    return found if isinstance(found, str) else "x"
