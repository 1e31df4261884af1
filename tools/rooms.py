"""Draws the rooms of the package and their imports, as a Mermaid picture in docs/README.md."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

from tools.marked import with_lines

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGE = _ROOT / "app" / "hms_gateway"
_BEGINNING = "<!-- rooms: python -m tools rooms -->"
# Every room imports it, so arrows to it would hide the others.
_EVERYWHERE = "runtime"
_NAMES_PER_LINE = 4

Imports = Mapping[str, frozenset[str]]


def map_path() -> Path:
    """Where the document with the picture lies in the source tree."""
    return _ROOT / "docs" / "README.md"


def with_picture(document: str, package: Path = _PACKAGE) -> str:
    """The document with the picture between its markers written anew. Raises ValueError when a marker is missing."""
    return with_lines(document, _BEGINNING, _picture(package))


def imports_between_rooms(package: Path) -> Imports:
    """What the top folders of a package import of each other."""
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    return {
        room: frozenset(name for path in (package / room).rglob("*.py") for name in _imported(path, package.name))
        & rooms - {room}
        for room in sorted(rooms)
    }


def without_detours(imports: Imports) -> Imports:
    """The imports that no way through other rooms implies. Raises CycleError for rooms that import each other."""
    reached: dict[str, frozenset[str]] = {}
    for room in TopologicalSorter(imports).static_order():
        reached[room] = imports[room].union(*(reached[below] for below in imports[room]))
    return {room: below.difference(*(reached[other] for other in below)) for room, below in imports.items()}


def _imported(path: Path, package: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=0):
                modules = [module, *(f"{module}.{alias.name}" for alias in names)]
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case _:
                continue
        yield from (parts[1] for name in modules if (parts := name.split("."))[0] == package and len(parts) > 1)


def _picture(package: Path) -> Iterator[str]:
    yield "```mermaid"
    yield "flowchart TD"
    imports = imports_between_rooms(package)
    drawn = without_detours({room: below - {_EVERYWHERE} for room, below in imports.items() if room != _EVERYWHERE})
    for room in drawn:
        inner = sorted(path.parent.name for path in (package / room).glob("*/__init__.py"))
        lines = [", ".join(inner[at : at + _NAMES_PER_LINE]) for at in range(0, len(inner), _NAMES_PER_LINE)]
        yield f'    {room}["{"<br/>".join([f"<b>{room}</b>", *lines])}"]'
    yield from (f"    {room} --> {below}" for room, rooms in drawn.items() for below in sorted(rooms))
    yield "```"
