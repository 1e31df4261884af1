"""Which test proves that a method answers as it should; read out of the tests themselves, without running them.

A recorded answer of the real metastore counts most. Otherwise it is a test function that calls the method: by its name
as the first argument (`peer.ask("get_table", …)`), or as a method of a handler or client (`tables.get_table(…)`).
"""

import ast
import gzip
import json
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

_CORPUS: Final = "tests/comparison/corpus"
_CORPUS_TEST: Final = "tests/comparison/test_corpus.py"
# Where calls are tested, the most telling first.
_PLACES: Final = (
    "tests/comparison/test_both_dialects.py",
    "tests/handlers",
    "tests/catalog",
    "tests/txn",
    "tests/bridge",
    "tests/gateway",
    "tests/cli",
    "tests/iceberg_rest",
    "tests/handlers/rights",
)
# Whoever only tries everything proves nothing about one method.
_INDISCRIMINATE: Final = frozenset({"test_bad_input.py"})


def proofs(root: Path, methods: Collection[str]) -> dict[str, list[str]]:
    """The tests that prove each of `methods`, the most telling first: a file below `root` and what in it."""
    found: dict[str, list[str]] = {name: [] for name in methods}
    for name, script in _recorded(root, methods):
        found[name].append(f"{_CORPUS_TEST}::test_answers_are_as_recorded[{script}]")
    for place in _PLACES:
        for file in _test_files(root / place):
            for name, test in _called(file, methods):
                found[name].append(f"{file.relative_to(root).as_posix()}::{test}")
    return found


def _recorded(root: Path, methods: Collection[str]) -> Iterator[tuple[str, str]]:
    """Method and script, first the script that calls the method most often."""
    counts: dict[str, Counter[str]] = {}
    for file in sorted((root / _CORPUS).glob("*.jsonl*")):
        packed = file.read_bytes()
        text = gzip.decompress(packed) if file.suffix == ".gz" else packed
        for line in text.splitlines():
            counts.setdefault(json.loads(line)["method"], Counter())[file.name.partition(".")[0]] += 1
    for name, scripts in counts.items():
        if name in methods:
            yield from ((name, script) for script, _ in scripts.most_common())


def _test_files(place: Path) -> list[Path]:
    files = [place] if place.is_file() else sorted(place.glob("test_*.py"))
    return [file for file in files if file.exists() and file.name not in _INDISCRIMINATE]


def _called(file: Path, methods: Collection[str]) -> Iterator[tuple[str, str]]:
    """Method and test function, for every call of a method within a test function of the file."""
    helpers: dict[str, set[str]] = {}
    tests: dict[str, tuple[set[str], set[str]]] = {}
    for function in _functions(ast.parse(file.read_text(encoding="utf-8"))):
        called = set(_methods_called(function, methods))
        if function.name.startswith("test_"):
            tests[function.name] = (called, _names_used(function))
        else:
            helpers.setdefault(function.name, set()).update(called)
    for test, (called, _) in tests.items():
        yield from ((name, test) for name in sorted(called))
    for test, (_, used) in tests.items():
        yield from ((name, test) for helper in sorted(used & helpers.keys()) for name in sorted(helpers[helper]))


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Those of the module and those of its classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from (inner for inner in node.body if isinstance(inner, ast.FunctionDef))


def _methods_called(function: ast.FunctionDef, methods: Collection[str]) -> Iterator[str]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            yield node.func.attr
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value in methods:
            yield first.value


def _names_used(function: ast.FunctionDef) -> set[str]:
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
