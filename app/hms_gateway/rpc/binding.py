"""Binds every method of the IDL to the handler that answers it, and refuses to start when the two disagree."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hms_gateway.structs import METHODS, Method, Struct


class BindingError(Exception):
    """IDL and handlers disagree; the text lists every disagreement."""


class Bound(msgspec.Struct, frozen=True):
    """A method together with what answers it."""

    method: Method
    handler: Callable[..., Any]
    parameters: tuple[tuple[str, object], ...]

    def values(self, arguments: Struct) -> list[object]:
        """The handler's arguments after the call; one that was not sent has the IDL's default, or is None."""
        return [default if (value := getattr(arguments, name)) is None else value for name, default in self.parameters]


def bind(handlers: Sequence[object], methods: Mapping[str, Method] = METHODS) -> dict[str, Bound]:
    """Find the handler of each method.

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
    return {name: _bound(methods[name], handler) for name, handler in found.items()}


def _public_methods(handlers: Iterable[object]) -> Iterable[tuple[str, Callable[..., Any]]]:
    for handler in handlers:
        for name, method in inspect.getmembers(handler, inspect.ismethod):
            if not name.startswith("_"):
                yield name, method


def _parameter_complaints(method: Method, handler: Callable[..., Any]) -> Iterable[str]:
    wanted = ["call", *(field.name for field in method.definition.arguments)]
    given = _parameter_names(handler)
    if given != wanted:
        yield f"{method.name}: parameters are ({', '.join(given)}), the IDL has ({', '.join(wanted)})"


def _parameter_names(handler: Callable[..., Any]) -> list[str]:
    """Those of a bound method, from its code: 400 times `inspect.signature` is a noticeable part of a start."""
    code = inspect.unwrap(handler.__func__).__code__  # type: ignore[attr-defined]  # it is a method
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return list(code.co_varnames[1:count])


def _bound(method: Method, handler: Callable[..., Any]) -> Bound:
    return Bound(method, handler, tuple((field.name, field.default) for field in method.definition.arguments))
