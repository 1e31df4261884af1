"""The console's modules as one file, which a browser asks for once and not one after the other.

Each becomes a function that returns what it exports, after those that it imports. The modules keep to a few forms:
`import { a, b as c } from "./x.js";`, `export` before a declaration, or a list of names at the end.
"""

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

MAIN: Final = "main.js"
_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\./([\w./]+)";\n', re.MULTILINE)
_EXPORTED: Final = re.compile(r"^export ((?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)
_EXPORT_LIST: Final = re.compile(r"export ?\{([^}]*)\};?\s*\Z")
_OTHER: Final = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundled(folder: Path) -> str:
    """The module `main.js` of a folder with all modules that it imports. Raises ValueError for an unknown form."""
    texts: dict[str, str] = {}
    wanted = [MAIN]
    while wanted:
        name = wanted.pop()
        if name not in texts:
            texts[name] = (folder / name).read_text(encoding="utf-8")
            wanted += _imported(texts[name])
    # Lists, since the order of a set differs from run to run, and the ETag of the bundle is that of its text.
    order = TopologicalSorter({name: _imported(text) for name, text in texts.items()}).static_order()
    parts = [_scope(name, texts[name]) for name in order]
    exported = ", ".join(outer for _, outer in _exports(texts[MAIN]))
    return "\n".join([*parts, f"export const {{ {exported} }} = {_variable(MAIN)};", ""])


def _imported(text: str) -> list[str]:
    return [name for _, name in _IMPORT.findall(text)]


def _scope(name: str, text: str) -> str:
    body = _EXPORT_LIST.sub("", text)
    body = _EXPORTED.sub(r"\1", body)
    body = _IMPORT.sub(lambda found: f"const {{ {_taken(found[1])} }} = {_variable(found[2])};\n", body)
    if other := _OTHER.search(body):
        raise ValueError(f"{name}: {other[0][:80]}")
    returned = ", ".join(outer if inner == outer else f"{outer}: {inner}" for inner, outer in _exports(text))
    return f"// {name}\nconst {_variable(name)} = (() => {{\n{body.strip()}\nreturn {{ {returned} }};\n}})();\n"


def _exports(text: str) -> list[tuple[str, str]]:
    declared = [(name, name) for _, name in _EXPORTED.findall(text)]
    return [*declared, *(pair for listed in _EXPORT_LIST.findall(text) for pair in _pairs(listed))]


def _pairs(listed: str) -> Iterator[tuple[str, str]]:
    """Names of a list as they are in the module and outside of it."""
    for each in filter(None, (one.strip() for one in listed.split(","))):
        inner, _, outer = each.partition(" as ")
        yield inner, outer or inner


def _taken(listed: str) -> str:
    """The names of an import as a pattern."""
    return ", ".join(outer if inner == outer else f"{inner}: {outer}" for inner, outer in _pairs(listed))


def _variable(name: str) -> str:
    return "_" + re.sub(r"\W", "_", name.removesuffix(".js"))
