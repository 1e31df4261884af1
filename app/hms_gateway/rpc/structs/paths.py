"""Places in the arguments of a call, by paths such as `req.parts[].dbName`: read, and written again.

The paths of `schema/methods.txt` and of what is looked for in the IDL are compiled once (`argument_paths`).
"""

from collections.abc import Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

from hms_gateway.rpc.structs.base import Struct

_EACH = "[]"


class Slot:
    """A field of a struct or an element of a list, that may not be there."""

    __slots__ = ("_key", "holder")

    def __init__(self, holder: Any, key: Any) -> None:
        # The struct or list; None where the path ends before.
        self.holder = holder
        self._key = key

    def get(self) -> Any:
        """The value, None for one that is not there."""
        if self.holder is None:
            return None
        return getattr(self.holder, self._key, None) if isinstance(self._key, str) else self.holder[self._key]

    def set(self, value: Any) -> None:
        if isinstance(self._key, str):
            setattr(self.holder, self._key, value)
        else:
            self.holder[self._key] = value


class ArgumentPaths:
    """Paths that are followed together, once for each element of the lists on the way to the last one."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        *lists, _ = paths[-1].split(_EACH)
        self._lists = tuple(_names(part) for part in lists)
        # The beginnings that other paths may share with the last one, up to each of its lists.
        starts = ["", *(_EACH.join(lists[: count + 1]) + _EACH for count in range(len(lists)))]
        self._ways: list[tuple[int, tuple[str, ...]]] = []
        for path in paths:
            depth = max(count for count, start in enumerate(starts) if path.startswith(start))
            self._ways.append((depth, _names(path.removeprefix(starts[depth]))))
        self._getter = None if lists else attrgetter(*paths)
        self._is_one = len(paths) == 1

    def held(self, arguments: Struct | None) -> tuple[Any, ...] | None:
        """The values at paths without lists; None where what should hold one of them is missing."""
        assert self._getter is not None
        try:
            found = self._getter(arguments)
        except AttributeError:
            return None
        return (found,) if self._is_one else found

    def values(self, arguments: Struct | None) -> Iterable[tuple[Any, ...]]:
        """The values that are there, None for others."""
        held = None if self._getter is None else self.held(arguments)
        if held is not None:
            return (held,)
        return (tuple(slot.get() for slot in slots) for slots in self.slots(arguments))

    def slots(self, arguments: Struct | None) -> Iterator[tuple[Slot, ...]]:
        for roots in self._roots((Slot([arguments], 0),)):
            yield tuple([_slot(roots[depth], names) for depth, names in self._ways])

    def _roots(self, roots: tuple[Slot, ...]) -> Iterator[tuple[Slot, ...]]:
        """The arguments and one element of each list, for all elements."""
        depth = len(roots) - 1
        if depth == len(self._lists):
            yield roots
            return
        found = _slot(roots[-1], self._lists[depth]).get()
        if isinstance(found, list):
            for key in range(len(found)):
                yield from self._roots((*roots, Slot(found, key)))


@cache
def argument_paths(paths: tuple[str, ...]) -> ArgumentPaths:
    return ArgumentPaths(paths)


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split(".") if name)


def _slot(root: Slot, names: tuple[str, ...]) -> Slot:
    if not names:
        return root
    holder = root.get()
    for name in names[:-1]:
        holder = None if holder is None else getattr(holder, name, None)
    return Slot(holder, names[-1])
