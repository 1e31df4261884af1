"""The parts of the console that nobody writes by hand: npm packages, and the shapes of its calls."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from hms_gateway.gateway.console.static_files import FOLDER, SOURCES
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.idl import ListType, MapType, SetType, StructType
from hms_gateway.rpc.idl.model import Field, Type
from hms_gateway.rpc.structs import IDL
from hms_gateway.rpc.wire.tjson_scan import tag_of

PACKAGES = Path(__file__).resolve().parent / "console"
# Copy: where it is in the packages, and what is added.
COPIES = {
    SOURCES / "vendor" / "preact_htm.js": ("htm/preact/standalone.module.js", b""),
    # A classic script, which becomes a module, since only modules can be loaded later under the page's policy.
    FOLDER / "vendor" / "uplot.js": ("uplot/dist/uPlot.iife.min.js", b"\nexport default uPlot;\n"),
    FOLDER / "vendor" / "uplot.css": ("uplot/dist/uPlot.min.css", b""),
    FOLDER / "vendor" / "LICENSE-htm": ("htm/LICENSE", b""),
    FOLDER / "vendor" / "LICENSE-preact": ("preact/LICENSE", b""),
    FOLDER / "vendor" / "LICENSE-uplot": ("uplot/LICENSE", b""),
}


def shapes_path() -> Path:
    """Where the shapes are in the source tree."""
    return SOURCES / "shapes.js"


def copied() -> Iterator[tuple[Path, bytes]]:
    """Each copy and what it has to hold. Raises OSError where `npm ci` was not run in tools/console."""
    for path, (place, added) in COPIES.items():
        yield path, (PACKAGES / "node_modules" / place).read_bytes() + added


def called_methods() -> list[str]:
    """The methods that the console calls, as tools/console/methods.txt lists them."""
    return (PACKAGES / "methods.txt").read_text(encoding="utf-8").split()


def shapes_text() -> str:
    """A module with the arguments and answers of the called methods and the structs they are made of."""
    structs: dict[str, list[list[object]]] = {}
    methods = {name: _method(name, structs) for name in called_methods()}
    lines = ["// Written by `python -m tools console` from the IDL and tools/console/methods.txt.", ""]
    lines += [f"export const methods = {_members(methods)};", "", f"export const structs = {_members(structs)};", ""]
    return "\n".join(lines)


def _method(name: str, structs: dict[str, list[list[object]]]) -> dict[str, object]:
    definition = methods_of(Dialect.HIVE_4)[name].definition
    answer = None if definition.returns is None else _type(definition.returns, structs)
    throws = [[each.id, _type(each.type, structs)] for each in definition.throws]
    return {"arguments": _fields(definition.arguments, structs), "answer": answer, "throws": throws}


def _fields(fields: tuple[Field, ...], structs: dict[str, list[list[object]]]) -> list[list[object]]:
    return [[field.id, field.name, _type(field.type, structs)] for field in fields]


def _type(kind: Type, structs: dict[str, list[list[object]]]) -> object:
    """A tag, the name of a struct as {"rec": name}, or a list of a container and what is in it."""
    match kind:
        case StructType(name):
            if name not in structs:
                structs[name] = []
                structs[name] += _fields(IDL.structs[name].fields, structs)
            return {"rec": name}
        case ListType(element):
            return ["lst", _type(element, structs)]
        case SetType(element):
            return ["set", _type(element, structs)]
        case MapType(key, value):
            return ["map", _type(key, structs), _type(value, structs)]
        case _:
            return tag_of(kind)


def _members(members: Mapping[str, object]) -> str:
    lines = (f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in sorted(members.items()))
    return "{\n" + "\n".join(lines) + "\n}"
