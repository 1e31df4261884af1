"""What a call says in the environment context among its arguments, wherever its method has that."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from hms_gateway.structs import IDL, Method, Struct

_CONTEXT: Final = "EnvironmentContext"


def in_environment(method: Method, arguments: Struct, name: str) -> str | None:
    """The property `name`, None where the call has none."""
    for path in _paths(method):
        context: Any = arguments
        for step in path:
            context = None if context is None else getattr(context, step)
        found: str | None = None if context is None else (context.properties or {}).get(name)
        if found is not None:
            return found
    return None


@cache
def _paths(method: Method) -> tuple[tuple[str, ...], ...]:
    """Where the arguments of a method have an environment context: among them, or in a request."""
    return tuple(_contexts_in(method.definition.arguments, depth=2))


def _contexts_in(fields: Iterable[Any], depth: int) -> Iterator[tuple[str, ...]]:
    for field in fields:
        struct = IDL.structs.get(getattr(field.type, "name", ""))
        if struct is None:
            continue
        if struct.name == _CONTEXT:
            yield (field.name,)
        elif depth > 1:
            yield from ((field.name, *path) for path in _contexts_in(struct.fields, depth - 1))
