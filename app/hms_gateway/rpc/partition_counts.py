"""How many partitions a call is about: those that it returns, or names, as `schema/methods.txt` says for its method."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from hms_gateway.idl.method_facts import method_facts
from hms_gateway.structs import Struct

_EACH = "[]"

_Path = tuple[str, ...]


def partitions_of(method: str, arguments: Struct | None, result: Struct | None) -> int:
    """The number for one call. `result` is what is sent, which may be a list that was not read yet."""
    count = 0
    for path in _paths().get(method, ()):
        for value in _values(result if path[0].startswith("success") else arguments, path):
            count += 0 if value is None else len(value)
    return count


def _values(value: Any, path: Sequence[str]) -> Iterator[Any]:
    """What is at the path: one value, or one for each element of a list on the way."""
    if value is None or not path:
        yield value
        return
    name, *further = path
    inner = getattr(value, name.removesuffix(_EACH))
    if not name.endswith(_EACH):
        yield from _values(inner, further)
    elif isinstance(inner, list):
        for each in inner:
            yield from _values(each, further)


@cache
def _paths() -> Mapping[str, tuple[_Path, ...]]:
    facts = method_facts().items()
    return {name: tuple(tuple(path.split(".")) for path in one.partitions_in) for name, one in facts}
