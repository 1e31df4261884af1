"""Measures the package: lines, files, knobs, names, docstrings, import cycles of each room, and the traced walks."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Rate, Settings
from tools.marked import with_lines
from tools.settings_doc import TABLES
from tools.walks import walks

_ROOT: Final = Path(__file__).resolve().parent.parent
_PACKAGE: Final = _ROOT / "app" / "hms_gateway"
_BEGINNING: Final = "<!-- size: python -m tools size --write -->"
_HEAD: Final = """\
# Figures of the package: a change may lower them. `python -m tools size --write` writes them anew.
# code: lines that are not blank, comment or docstring, `imports` of them are imports. shared: public class names that
# several modules define. clauses: docstrings that begin with a relative word. cyclic: modules in import cycles.
"""
# All rooms but these are the core.
_BESIDE: Final = frozenset({"pipeline", "bridge", "cli", "testing"})
_CLAUSE: Final = re.compile(r"\s*(?:What|Whether|Who|How|Where|Which|Why|As|Those|Of|With)\b")
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Figures = dict[str, int]
Sizes = dict[str, dict[str, Figures]]


class Module(NamedTuple):
    """Figures of one file."""

    room: str
    code: int
    imports: int
    clauses: int
    classes: frozenset[str]
    imported: frozenset[str]


def sizes_path() -> Path:
    """File of the figures that the test holds."""
    return _ROOT / "tests" / "house" / "sizes.toml"


def document_path() -> Path:
    """Document that quotes the figures."""
    return _ROOT / "docs" / "architecture.md"


def measured(package: Path = _PACKAGE) -> Sizes:
    """Figures of the rooms, of the whole, and of the knobs; without the walks."""
    files = {_name(path, package): path for path in sorted(package.rglob("*.py"))}
    modules = {name: _module(path, package, files.keys()) for name, path in files.items()}
    by_name = Counter(chain.from_iterable(module.classes for module in modules.values()))
    shared = frozenset(name for name, count in by_name.items() if count > 1)
    cyclic = in_cycles({name: module.imported for name, module in modules.items()})
    rooms = sorted({module.room for module in modules.values()})
    chosen = {**{room: {room} for room in rooms}, "core": {*rooms} - _BESIDE, "all": {*rooms}}
    figures = {}
    for row, its in chosen.items():
        inside = {name: module for name, module in modules.items() if module.room in its}
        figures[row] = {
            "code": sum(module.code for module in inside.values()),
            "files": len(inside),
            "imports": sum(module.imports for module in inside.values()),
            "shared": len(shared & {*chain.from_iterable(module.classes for module in inside.values())}),
            "clauses": sum(module.clauses for module in inside.values()),
            "cyclic": len(cyclic & inside.keys()),
        }
    structs: list[type[msgspec.Struct]] = [*TABLES.values(), Rate]
    keys = sum(len(struct.__struct_fields__) for struct in structs)
    knobs = {"settings": len(Settings.__annotations__), "keys": keys, "limits": len(Limits.__annotations__)}
    return {"rooms": figures, "knobs": {"package": knobs}}


def traced() -> Sizes:
    """Figures of the walks."""
    return {
        "walks": {name: {"functions": len(walk), "files": len({file for file, _ in walk})} for name, walk in walks()}
    }


def kept() -> Sizes:
    """Figures of the file."""
    return tomllib.loads(sizes_path().read_text(encoding="utf-8"))


def sizes_text(sizes: Sizes) -> str:
    lines = [_HEAD.rstrip()]
    for table, rows in sizes.items():
        lines += ["", f"[{table}]"]
        for row, figures in rows.items():
            lines.append(f"{row} = {{ {', '.join(f'{name} = {figure}' for name, figure in figures.items())} }}")
    return "\n".join([*lines, ""])


def risen(before: Sizes, now: Sizes) -> Iterator[str]:
    """Every figure that is above the one before, or new."""
    for table, rows in now.items():
        for row, figures in rows.items():
            held = before.get(table, {}).get(row, {})
            for name, figure in figures.items():
                if figure > held.get(name, 0):
                    yield f"{table} {row} {name}: {held.get(name, 0)} -> {figure}"


def with_sizes(document: str, sizes: Sizes) -> str:
    """The document with the quoted figures written anew."""
    totals = {**sizes, "rooms": {row: sizes["rooms"][row] for row in ("core", "all")}}
    return with_lines(document, _BEGINNING, ["", tables(totals)])


def tables(sizes: Sizes) -> str:
    """The figures as tables of Markdown, with the share of imports beside their lines."""
    lines = []
    for table, rows in sizes.items():
        names = list(next(iter(rows.values())))
        lines += [f"| {' | '.join([table, *names])} |", "|---|" + "---:|" * len(names)]
        for row, figures in rows.items():
            cells = [f"{figure:,}" for figure in figures.values()]
            if "imports" in figures:
                cells[names.index("imports")] += f" ({figures['imports'] / figures['code']:.0%})"
            lines.append(f"| {' | '.join([f'`{row}`', *cells])} |")
        lines.append("")
    return "\n".join(lines)


def in_cycles(imported: Mapping[str, frozenset[str]]) -> set[str]:
    """The modules that import themselves by way of others."""
    found = set()
    for name in imported:
        reached, new = set[str](), imported[name]
        while new:
            reached |= new
            new = frozenset(chain.from_iterable(imported[other] for other in new)) - reached
        if name in reached:
            found.add(name)
    return found


def code_lines(text: str, nodes: Iterable[ast.AST]) -> int:
    """The number of lines that are not blank, comment or docstring."""
    outside = {line for docstring in _docstrings(nodes) for line in _span(docstring)}
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if line.strip() and line.lstrip()[0] != "#" and number not in outside)


def clauses(nodes: Iterable[ast.AST]) -> list[str]:
    """The docstrings that begin with a relative word."""
    return [docstring.value.value for docstring in _docstrings(nodes) if _CLAUSE.match(docstring.value.value)]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A module and its statements, without the expressions, which are most of it."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from statements(child)


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[Any]:
    return (node.body[0] for node in nodes if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None)


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _name(path: Path, package: Path) -> str:
    return ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")


def _module(path: Path, package: Path, names: Iterable[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(statements(tree))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
    first, *rest = path.relative_to(package).parts
    return Module(
        room=first if rest else "package",
        code=code_lines(text, nodes),
        imports=sum(len(_span(node)) for node in imports),
        clauses=len(clauses(nodes)),
        classes=frozenset(classes),
        imported=frozenset(name for node in imports for name in _imported(node) if name in names)
        - {_name(path, package)},
    )


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Modules out of a package as well as names out of a module; also of imports in functions and for types only."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
