"""The import table of docs/architecture.md, checked."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "app"

LEAVES = {
    "addresses",
    "kerberos",
    "method_kinds",
    "limits",
    "clock",
    "connections",
    "settings",
    "logging",
    "remembering",
    "runtime",
    "shares",
    "sealing",
    "file_versions",
    "data_folder",
}
ALLOWED = {
    "idl": set(),
    "structs": {"idl"},
    "wire": {"idl", "structs"},
    "rpc": {"wire", "structs", "idl"},
    "txn": {"structs"},
    "metastore": {"structs", "txn"},
    "files": {"metastore"},
    "storage": {"metastore", "txn", "structs", "idl", "wire"},
    "cache": {"metastore", "structs"},
    "handlers": {"metastore", "txn", "structs", "rpc"},
    "gateway": {"rpc", "wire", "cache"},
    "bridge": {"rpc", "wire", "structs", "idl"},
    "client": {"structs", "idl", "wire"},
}
# The outside libraries that only one package may touch.
ONLY_IN = {
    "sqlalchemy": {"storage"},
    "alembic": {"storage"},
    "psycopg": {"storage"},
    "sqlite3": {"storage"},
    "fsspec": {"files"},
    "uvicorn": {"gateway"},
    "httpx": {"client", "cli"},
    "starlette": {"gateway"},
    "click": {"cli"},
    "rich": {"cli"},
}
COMPOSITION = {"main", "thrift_port", "cli", "__main__", "demo"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            if node.module == "app":
                yield from (f"app.{alias.name}" for alias in node.names)


def package_of(path: Path) -> str:
    relative = path.relative_to(APP)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


MODULES = sorted(path for path in APP.rglob("*.py") if path.name != "__init__.py" or path.parent != APP)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(APP)))
def test_a_module_imports_only_what_its_package_may(path):
    package = package_of(path)
    if package in COMPOSITION:
        return
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "app" and rest:
            target = rest.partition(".")[0]
            assert target == package or target in LEAVES or target in ALLOWED.get(package, set()), name
        elif top in ONLY_IN:
            assert package in ONLY_IN[top], name


def test_handlers_know_only_the_call_of_rpc():
    for path in (APP / "handlers").rglob("*.py"):
        assert {name for name in imports(path) if name.startswith("hms_gateway.rpc")} <= {"hms_gateway.rpc.call"}


def test_nothing_imports_the_composition_root():
    for path in MODULES:
        if package_of(path) not in COMPOSITION:
            assert not {name for name in imports(path) if name.split(".")[:2] == ["app", "main"]}, path
