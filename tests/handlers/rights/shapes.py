"""Arguments of every shape for any method: each value absent, empty, unknown, of another kind, or more than one."""

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from hms_gateway.rpc.idl import BaseType, EnumType, ListType, MapType, SetType, StructType, Type
from hms_gateway.rpc.idl.model import StructKind
from hms_gateway.rpc.structs import ENUMS, Method, Struct
from tests.handlers.bad_values import template
from tests.handlers.test_bad_input import meant

# Names of what the callers have, of what others have, of what nobody has.
NAMES: Final = (
    "default",
    "t",
    "own",
    "other",
    "dana",
    "v",
    "f",
    "empty",
    "new",
    "DEFAULT",
    "default.t",
    "own.other",
    "hive",
    "",
    " ",
)
_UNKNOWN: Final = (0, -1, 99, 2**31 - 1)
_NUMBERS: Final = (0, 1, 2, 3, 4, 5, -1)
# One in so many values is another one, or none.
_CHANGED_ONE_IN: Final = 6


def every_shape(method: Method) -> Iterator[list[Any]]:
    """The call as it is meant, and with one value of another shape, each in turn."""
    yield meant(method)
    yield from _each(method, _shapes)


def every_kind(method: Method) -> Iterator[list[Any]]:
    """The calls among them that name another kind of object, principal or request."""
    return _each(method, _kinds)


def _each(method: Method, shapes: Callable[[Any, Type], Iterator[Any]]) -> Iterator[list[Any]]:
    values = meant(method)
    for position, field in enumerate(method.definition.arguments):
        for shape in shapes(values[position], field.type):
            yield [*values[:position], shape, *values[position + 1 :]]


def _kinds(value: Any, type: Type) -> Iterator[Any]:
    match type:
        case EnumType(name):
            yield from (None, *ENUMS[name], *_UNKNOWN)
        case StructType() if value is not None:
            for field, mine in _fields(value):
                for kind in _kinds(mine, field.type):
                    yield _with(value, field.name, kind)
        case ListType(element) | SetType(element):
            for one in value or ():
                for kind in _kinds(one, element):
                    yield from ([kind], [one, kind])


def random_shape(method: Method, source: random.Random) -> list[Any]:
    """A call of which many values are others."""
    pairs = zip(meant(method), method.definition.arguments, strict=True)
    return [_random(value, field.type, source) for value, field in pairs]


def _shapes(value: Any, type: Type) -> Iterator[Any]:
    match type:
        case EnumType():
            yield from _kinds(value, type)
        case BaseType.STRING:
            yield from (None, *NAMES)
        case BaseType.BOOL:
            yield from (None, not value)
        case BaseType.BINARY | BaseType.DOUBLE:
            yield None
        case BaseType():
            yield from (None, *_NUMBERS)
        case StructType():
            yield None
            if value is not None:
                for field, mine in _fields(value):
                    for shape in _shapes(mine, field.type):
                        yield _with(value, field.name, shape)
        case ListType(element) | SetType(element):
            yield from (None, [])
            for one in value or ():
                yield [one, one]
                for shape in _shapes(one, element):
                    # No encoding has lists with nothing in them.
                    if shape is not None:
                        yield from ([shape], [one, shape], [shape, one])
        case MapType():
            yield from (None, {})


def _random(value: Any, type: Type, source: random.Random) -> Any:
    is_changed = source.randrange(_CHANGED_ONE_IN) == 0
    match type:
        case EnumType(name):
            return source.choice((None, *ENUMS[name], *_UNKNOWN)) if is_changed else value
        case BaseType.STRING:
            return source.choice((None, *NAMES)) if is_changed else value
        case BaseType.BOOL:
            return source.choice((True, False))
        case BaseType.BINARY | BaseType.DOUBLE | MapType():
            return value
        case BaseType():
            return source.choice((None, *_NUMBERS)) if is_changed else value
        case StructType():
            if value is None or source.randrange(20 * _CHANGED_ONE_IN) == 0:
                return None
            if value.definition.kind is StructKind.UNION:
                field = source.choice(value.definition.fields)
                return value.__class__(**{field.name: _random(template(field), field.type, source)})
            changed = {field.name: _random(mine, field.type, source) for field, mine in _fields(value)}
            return msgspec.structs.replace(value, **changed)
        case ListType(element) | SetType(element):
            count = source.choice((0, 1, 1, 1, 2)) if value else 0
            made = (_random(value[0], element, source) for _ in range(count))
            return [one for one in made if one is not None]
    raise AssertionError(type)


def _fields(value: Struct) -> Iterator[tuple[Any, Any]]:
    """The fields of a struct with their values; of a union every branch."""
    is_union = value.definition.kind is StructKind.UNION
    for field in value.definition.fields:
        mine = getattr(value, field.name)
        yield field, template(field) if is_union and mine is None else mine


def _with(value: Struct, name: str, shape: Any) -> Any:
    if value.definition.kind is StructKind.UNION:
        return type(value)(**{name: shape})
    return msgspec.structs.replace(value, **{name: shape})
