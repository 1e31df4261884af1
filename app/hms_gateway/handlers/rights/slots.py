"""Places in the arguments of a call, by the paths of `schema/rights.txt`: read, and written again."""

from collections.abc import Iterator
from typing import Any

from hms_gateway.structs import Struct


class Slot:
    """A field of a struct or an element of a list, that may not be there."""

    __slots__ = ("_holder", "_key")

    def __init__(self, holder: Any, key: Any) -> None:
        self._holder = holder
        self._key = key

    @property
    def holder(self) -> Any:
        """The struct or list; None where the path ends before."""
        return self._holder

    def get(self) -> Any:
        """The value, None for one that is not there."""
        if self._holder is None:
            return None
        return getattr(self._holder, self._key, None) if isinstance(self._key, str) else self._holder[self._key]

    def set(self, value: Any) -> None:
        if isinstance(self._key, str):
            setattr(self._holder, self._key, value)
        else:
            self._holder[self._key] = value


def slots(arguments: Struct, paths: tuple[str, ...]) -> Iterator[tuple[Slot, ...]]:
    """The places at these paths together, once for each element of the list that they share, if any."""
    prefix, is_list, _ = paths[0].rpartition("[]")
    if not is_list:
        yield tuple(_slot(arguments, path) for path in paths)
        return
    rests = [path.removeprefix(f"{prefix}[]").removeprefix(".") for path in paths]
    for holder, key in _elements(arguments, prefix):
        element = holder[key]
        yield tuple(_slot(element, rest) if rest else Slot(holder, key) for rest in rests)


def joined_slots(arguments: Struct, paths: tuple[str, ...]) -> Iterator[tuple[Slot, ...]]:
    """The places at these paths together, once for each element of the lists on the way to the last one."""
    yield from _joined([(arguments, path) for path in paths])


def _joined(ways: list[tuple[Any, str]]) -> Iterator[tuple[Slot, ...]]:
    """`ways` are paths with what each begins at."""
    root, path = ways[-1]
    before, is_list, _ = path.partition("[]")
    if not is_list:
        yield tuple(_slot(each, rest) for each, rest in ways)
        return
    found = _slot(root, before).get()
    for key in range(len(found) if isinstance(found, list) else 0):
        inner = [
            _stepped(each, rest, found[key], f"{before}[]") if each is root else (each, rest) for each, rest in ways
        ]
        if inner[-1][1]:
            yield from _joined(inner)
        else:
            yield *(_slot(each, rest) for each, rest in inner[:-1]), Slot(found, key)


def _stepped(root: Any, path: str, element: Any, prefix: str) -> tuple[Any, str]:
    if not path.startswith(prefix):
        return root, path
    return element, path.removeprefix(prefix).removeprefix(".")


def _elements(root: Any, prefix: str) -> Iterator[tuple[Any, int]]:
    """Each element of the list at `prefix`, which may itself go through lists."""
    before, is_list, last = prefix.rpartition("[]")
    roots = [holder[key] for holder, key in _elements(root, before)] if is_list else [root]
    for each in roots:
        found = _slot(each, last.removeprefix(".")).get()
        if isinstance(found, list):
            for key in range(len(found)):
                yield found, key


def _slot(root: Any, path: str) -> Slot:
    *way, last = path.split(".")
    for name in way:
        root = None if root is None else getattr(root, name, None)
    return Slot(root, last)
