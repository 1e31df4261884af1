"""`hms-gateway call --list` and `--explain`: what can be called, and with what."""

from collections import deque
from collections.abc import Iterable, Iterator

from rich.markup import escape
from rich.table import Table

from hms_gateway.cli.calls.examples import example_call
from hms_gateway.cli.terminal.output import fail, out
from hms_gateway.metastore.vocabulary.texts import did_you_mean
from hms_gateway.rpc.idl import EnumType, Field, ListType, MapType, SetType, StructType, Type
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.idl.model import exception_names, signature, type_text
from hms_gateway.rpc.structs import ENUMS, METHODS, STRUCTS, Method


def print_methods() -> None:
    """All methods with their signatures, one line each."""
    for method in METHODS.values():
        out.print(signature(method.definition), soft_wrap=True, highlight=False, markup=False)


def print_explanation(name: str) -> None:
    """Signature, exceptions, and the fields of every struct the method takes."""
    method = find_method(name)
    definition = method.definition
    out.print(f"[bold]{escape(signature(definition))}[/bold]", soft_wrap=True, highlight=False)
    out.print(_known_to(method_facts()[method.name].known_to), style="dim", highlight=False)
    out.print(f"throws {', '.join(exception_names(definition)) or 'nothing declared'}", style="dim")
    out.print("example:", style="dim")
    out.print(f"  {example_call(method)}", soft_wrap=True, highlight=False, markup=False)
    for named in _named_types(field.type for field in definition.arguments):
        _print_enum(named.name) if isinstance(named, EnumType) else _print_struct(named.name)


def _known_to(generations: str) -> str:
    if generations in ("lease", "lock"):
        return "a method of hms-gateway; clients of Hive do not know it"
    return f"known to clients of Hive {generations}"


def find_method(name: str) -> Method:
    """The method of this name; ends the command with what may have been meant when there is none."""
    if name.startswith("-"):
        fail(f"unknown option {name}", "hms-gateway call --help shows all options")
    if name not in METHODS:
        fail(f"unknown method {name}{did_you_mean(name, METHODS)}", "hms-gateway call --list shows all methods")
    return METHODS[name]


def _named_types(types: Iterable[Type]) -> Iterator[StructType | EnumType]:
    """Every struct and enum reachable from `types`, each once, nearest first."""
    seen: set[Type] = set()
    waiting = deque(types)
    while waiting:
        kind = waiting.popleft()
        if kind in seen:
            continue
        seen.add(kind)
        match kind:
            case ListType(element) | SetType(element):
                waiting.append(element)
            case MapType(key, value):
                waiting.extend((key, value))
            case StructType(name):
                yield kind
                waiting.extend(field.type for field in STRUCTS[name].definition.fields)
            case EnumType():
                yield kind


def _print_struct(name: str) -> None:
    table = Table(title=name, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2))
    # A name that is cut off cannot be copied.
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for field in STRUCTS[name].definition.fields:
        table.add_row(field.name, escape(type_text(field.type)), _remark(field))
    out.print()
    out.print(table)


def _remark(field: Field) -> str:
    words = [] if field.requiredness == "default" else [field.requiredness.value]
    if field.default is not None:
        words.append(f"default {field.default}")
    return escape(", ".join(words))


def _print_enum(name: str) -> None:
    members = ", ".join(f"{member.name}={member.value}" for member in ENUMS[name])
    out.print(f"\n[bold]{name}[/bold]\n  {members}", highlight=False)
