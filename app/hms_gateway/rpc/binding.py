"""Binds every method of the IDL to the handler that answers it, and refuses to start when the two disagree."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Protocol

import msgspec

from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.idl import Field, StructType, Type
from hms_gateway.rpc.idl.method_facts import MethodFacts, method_facts
from hms_gateway.rpc.structs import IDL, METHODS, STRUCTS, Method, Struct
from hms_gateway.rpc.structs.base import build_method


class BindingError(Exception):
    """IDL and handlers disagree; the text lists every disagreement."""


class Step(Protocol):
    """A part of the way of a call to its handler."""

    def concerns(self, method: Method, facts: MethodFacts) -> bool:
        """True if calls of the method go this way."""

    def answer(self, bound: "Bound", call: Call, arguments: Struct, go_on: Callable[[], Any]) -> Any:
        """Result of `go_on`, as far as the caller may have it, or an exception in its place."""


class Bound(msgspec.Struct, frozen=True):
    """A method together with what answers it."""

    method: Method
    facts: MethodFacts
    handler: Callable[..., Any]
    parameters: tuple[tuple[str, object], ...]
    steps: tuple["Step", ...] = ()

    def answer(self, call: Call, arguments: Struct) -> Any:
        """The handler's answer, by way of all steps."""
        go_on = partial(self._handled, call, arguments)
        for step in reversed(self.steps):
            go_on = partial(step.answer, self, call, arguments, go_on)
        return go_on()

    def _handled(self, call: Call, arguments: Struct) -> Any:
        """An argument that was not sent has the IDL's default, or is None."""
        values: list[object] = []
        for name, default in self.parameters:
            value = getattr(arguments, name)
            values.append(default if value is None else value)
        return self.handler(call, *values)


def bind(
    handlers: Sequence[object], methods: Mapping[str, Method] = METHODS, steps: Sequence[Step] = ()
) -> dict[str, Bound]:
    """Find the handler of each method, and the steps before it.

    A handler is a public method of one of `handlers` with the IDL's name, whose parameters are `call` and the IDL's
    argument names. Raises BindingError naming every method that has none, has two or differs in its parameters, and
    every public handler method the IDL does not know.
    """
    found: dict[str, Callable[..., Any]] = {}
    complaints: list[str] = []
    for name, handler in _public_methods(handlers):
        if name not in methods:
            complaints.append(f"{name}: not a method of the IDL")
        elif name in found:
            complaints.append(f"{name}: two handlers")
        else:
            found[name] = handler
            complaints.extend(_parameter_complaints(methods[name], handler))
    complaints.extend(f"{name}: no handler" for name in methods if name not in found)
    if complaints:
        raise BindingError("IDL and handlers disagree:\n  " + "\n  ".join(complaints))
    return {name: _bound(methods[name], handler, steps) for name, handler in found.items()}


def _public_methods(handlers: Iterable[object]) -> Iterable[tuple[str, Callable[..., Any]]]:
    for handler in handlers:
        for name in dir(type(handler)):
            if not name.startswith("_") and inspect.ismethod(method := getattr(handler, name)):
                yield name, method


def _parameter_complaints(method: Method, handler: Callable[..., Any]) -> Iterable[str]:
    wanted = ["call", *(field.name for field in method.definition.arguments)]
    # Signatures of all handlers would take longer than the rest of putting a metastore together.
    given = inspect.getargs(inspect.unwrap(handler).__code__).args[1:]
    if given != wanted:
        yield f"{method.name}: parameters are ({', '.join(given)}), the IDL has ({', '.join(wanted)})"


def _bound(method: Method, handler: Callable[..., Any], steps: Sequence[Step]) -> Bound:
    facts = method_facts()[method.name]
    parameters = tuple((field.name, field.default) for field in method.definition.arguments)
    return Bound(method, facts, handler, parameters, tuple(step for step in steps if step.concerns(method, facts)))


# The same field id is another exception from Hive 3.1 on, or none.
_THROWS_4: dict[str, tuple[Field, ...]] = {
    "get_table_objects_by_name": (),
    "get_partition_names": (
        Field(1, "o1", StructType("NoSuchObjectException")),
        Field(2, "o2", StructType("MetaException")),
    ),
}


@cache
def methods_of(dialect: Dialect) -> Mapping[str, Method]:
    """Every method by name, as callers of `dialect` know it."""
    if dialect is Dialect.HIVE_2_3:
        return METHODS
    return {name: _newer(method) for name, method in METHODS.items()}


def _newer(method: Method) -> Method:
    definition = method.definition
    changed = msgspec.structs.replace(
        definition,
        returns=None if definition.returns is None else _newer_type(definition.returns),
        arguments=tuple(msgspec.structs.replace(field, type=_newer_type(field.type)) for field in definition.arguments),
        throws=_THROWS_4.get(method.name, definition.throws),
    )
    return method if changed == definition else build_method(changed, method.service, STRUCTS)


def _newer_type(kind: Type) -> Type:
    """`X_v4` where the schema declares it beside `X`."""
    newer = StructType(f"{kind.name}_v4") if isinstance(kind, StructType) else kind
    return newer if isinstance(newer, StructType) and newer.name in IDL.structs else kind
