"""The rooms of the package: what they import (imports.toml), and their sizes."""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tools.size import statements

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "app" / "hms_gateway"
FILES_MAX = 20
# One class for each aggregate, in the order of the IDL: the one place where many files beside each other are right.
MAY_BE_LARGE = {"handlers"}
# Steps before handlers know what they are bound to.
STEPS = {PACKAGE / "handlers" / "steps.py"}
MODULES = sorted(PACKAGE.rglob("*.py"))


class Row(NamedTuple):
    imports: frozenset[str]
    libraries: frozenset[str]


@cache
def table() -> dict[str, Row]:
    """The rooms in the order of the file, each with what it may import."""
    rows = tomllib.loads((Path(__file__).parent / "imports.toml").read_text("utf-8"))
    return {
        room: Row(frozenset(row.get("imports", ())), frozenset(row.get("libraries", ()))) for room, row in rows.items()
    }


def room_of(path: Path) -> str:
    return path.parent.relative_to(PACKAGE).as_posix()


@cache
def imports(path: Path) -> tuple[str, ...]:
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in statements(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                # A module out of a package, or a name out of a module.
                part = f"{node.module}.{alias.name}"
                yield part if _path(part) is not None else node.module


@cache
def _path(module: str) -> Path | None:
    if module.partition(".")[0] != PACKAGE.name:
        return None
    place = PACKAGE.parent.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()), None)


def imported_rooms(path: Path) -> set[str]:
    """Other rooms, without `runtime`, which every room may import."""
    targets = {room_of(target) for name in imports(path) if (target := _path(name)) is not None}
    return targets - {room_of(path), "runtime"}


def imported_libraries(path: Path) -> set[str]:
    tops = {name.partition(".")[0] for name in imports(path)}
    return tops - sys.stdlib_module_names - {PACKAGE.name}


def test_a_module_imports_only_what_its_room_may():
    for path in MODULES:
        if room_of(path) != "." and imported_rooms(path) | imported_libraries(path):
            row = table()[room_of(path)]
            assert "*" in row.imports or imported_rooms(path) <= row.imports, path
            assert imported_libraries(path) <= row.libraries, path


def test_every_row_names_what_its_room_imports_and_no_more():
    used = {room: (set[str](), set[str]()) for room in table()}
    for path in MODULES:
        if room_of(path) in used:
            rooms, libraries = used[room_of(path)]
            rooms |= imported_rooms(path)
            libraries |= imported_libraries(path)
    for room, row in table().items():
        assert "*" in row.imports or row.imports == used[room][0], room
        assert row.libraries == used[room][1], room


def test_a_room_imports_only_rooms_above_it_in_the_table():
    above: set[str] = set()
    for room, row in table().items():
        assert row.imports - {"*"} <= above, room
        above.add(room)


def test_runtime_imports_no_room():
    for path in (PACKAGE / "runtime").glob("*.py"):
        assert imported_rooms(path) == set()


def test_handlers_know_only_the_call_of_rpc():
    for path in {*(PACKAGE / "handlers").glob("*.py"), *(PACKAGE / "catalog").glob("*.py")} - STEPS:
        of_rpc = {name for name in imports(path) if re.fullmatch(r"hms_gateway\.rpc\.\w+", name)}
        assert of_rpc <= {f"hms_gateway.rpc.{name}" for name in ("call", "idl", "structs")}


def test_only_the_command_line_and_testing_import_the_composition():
    users = {room_of(path) for path in MODULES if "composition" in imported_rooms(path)}
    assert users <= {"cli/operations", "testing"}


def test_every_module_lies_in_a_room():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_no_room_has_too_many_files():
    sizes = Counter(room_of(path) for path in MODULES if path.name != "__init__.py")
    assert {room: size for room, size in sizes.items() if size > FILES_MAX and room not in MAY_BE_LARGE} == {}


def test_the_list_of_rooms_has_every_room_below_what_it_imports():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = text.partition("## The rooms\n")[2].partition("\n## ")[0]
    listed = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    places = {room.rstrip("/"): number for number, cell in enumerate(listed) for room in re.findall("`(.+?)`", cell)}

    def place(room: str) -> int | None:
        return places.get(room, places.get(room.rpartition("/")[0]))

    inner = {room for room in table() if any(other.startswith(f"{room}/") for other in table())}
    rows = {room: row for room, row in table().items() if room not in inner}
    assert not [room for room in rows if place(room) is None]
    assert not [
        (room, other) for room, row in rows.items() for other in row.imports - {"*"} if place(other) > place(room)
    ]
