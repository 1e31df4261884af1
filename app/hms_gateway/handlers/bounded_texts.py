"""Bounds on what a caller writes in a small language: patterns, filters, expressions, schedules.

They are checked before the handler is called, by the fields' names, so that no method can be without them.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from hms_gateway.runtime.limits import Limits
from hms_gateway.structs import IDL, MetaException, Method, Struct

_PATTERN: Final = "pattern_bytes_max"
_FILTER: Final = "filter_bytes_max"
LIMIT_OF_FIELD: Final = {
    **dict.fromkeys(
        (
            *("pattern", "db_patterns", "tbl_patterns", "tablesPattern", "tableNamePattern"),
            *("includeParamKeyPattern", "excludeParamKeyPattern"),
        ),
        _PATTERN,
    ),
    **dict.fromkeys(("filter", "filters", "expr", "condition"), _FILTER),
}
# A struct may contain itself; no such text lies deeper.
_DEPTH_MAX: Final = 5


class BoundedTexts:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def check(self, method: Method, arguments: Struct) -> None:
        """Raises MetaException that names the field and the limit."""
        for path in _paths(method):
            name = path[-1]
            for text in _found(arguments, path):
                self._check_length(name, text)
                if LIMIT_OF_FIELD[name] == _PATTERN:
                    self._check_alternatives(name, text)

    def _check_length(self, name: str, text: str | bytes) -> None:
        limit = LIMIT_OF_FIELD[name]
        bytes_max: int = getattr(self._limits, limit)
        if _size(text) > bytes_max:
            raise MetaException(f"{name} is longer than {bytes_max} bytes; shorten it (limit {limit})")

    def _check_alternatives(self, name: str, text: str) -> None:
        """A list of names is looked up; every alternative with a wildcard is a condition of its own."""
        with_wildcard = sum("*" in alternative or "." in alternative for alternative in text.split("|"))
        if with_wildcard > self._limits.pattern_alternatives_max:
            raise MetaException(
                f"{name} has {with_wildcard} alternatives with wildcards; send at most"
                f" {self._limits.pattern_alternatives_max} (limit pattern_alternatives_max)"
            )


def _size(text: str | bytes) -> int:
    return len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode())


def _found(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if value is None:
        return
    if isinstance(value, list):
        for one in value:
            yield from _found(one, path)
    elif path:
        yield from _found(getattr(value, path[0]), path[1:])
    else:
        yield value


@cache
def _paths(method: Method) -> tuple[tuple[str, ...], ...]:
    """Where the arguments of a method have such a text."""
    return tuple(_texts_in(method.definition.arguments, _DEPTH_MAX))


def _texts_in(fields: Iterable[Any], depth: int) -> Iterator[tuple[str, ...]]:
    for field in fields:
        type = field.type
        while hasattr(type, "element"):
            type = type.element
        struct = IDL.structs.get(getattr(type, "name", ""))
        if struct is not None and depth:
            yield from ((field.name, *path) for path in _texts_in(struct.fields, depth - 1))
        elif struct is None and field.name in LIMIT_OF_FIELD:
            yield (field.name,)
