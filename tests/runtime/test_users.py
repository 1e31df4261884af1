"""What steers a call without being an argument is set and obeyed by the modules listed here, and by no others."""

import ast
from pathlib import Path

import pytest

import hms_gateway.runtime as runtime

ROOM = Path(runtime.__file__).parent
APP = ROOM.parent

# The modules of a package that import each of them. Gateway and storage jobs only name the types.
USERS = {
    "call_keys": {
        "rpc.repeatable",
        "rpc.processor",
        "storage.writing.thread_writer",
        "storage.writing.store",
        "storage.writing.transaction",
        "storage.txn.batch",
        "storage.registry.outcomes",
        "iceberg.catalog",
        "iceberg.commits",
        "iceberg.processor",
        "iceberg.routes",
        "gateway.http.iceberg_door",
        "metastore.changes.implicit_locks",
        "metastore.ports.store",
        "catalog.directories.warehouse",
        "catalog.partitions.additions",
        "txn.services.leases",
        "handlers.rights.authorizer",
    },
    "presented": {
        "storage.files.directories",
        "catalog.access.grants",
        "catalog.access.roles",
        "catalog.partitions.additions",
        "catalog.functions",
        "catalog.statistics.column_statistics",
        "catalog.tables.alter",
        "catalog.tables.databases",
        "catalog.tables.service",
        "handlers.steps",
        "handlers.rights.checks",
        "iceberg.catalog",
        "iceberg.commits",
        "metastore.ports.store",
        "storage.txn.batch_statements",
        "storage.catalog.events",
        "storage.writing.thread_writer",
        "storage.writing.transaction",
        "metastore.changes.fencing",
        "metastore.changes.implicit_locks",
    },
}


def modules(word: str) -> dict[str, ast.Module]:
    """Every module outside the room that has the word, by its name in the package."""
    texts = {path: path.read_text("utf-8") for path in APP.rglob("*.py") if path.parent != ROOM}
    return {
        ".".join(path.relative_to(APP).with_suffix("").parts): ast.parse(text)
        for path, text in texts.items()
        if word in text
    }


def imported(tree: ast.Module) -> set[str]:
    """The modules of the room that a module imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == runtime.__name__:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.removeprefix(f"{runtime.__name__}."))
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix(f"{runtime.__name__}.") for alias in node.names}
    return found & set(USERS)


@pytest.mark.slow
def test_each_is_imported_by_the_modules_listed() -> None:
    by_module = {name: imported(tree) for name, tree in modules(runtime.__name__).items()}
    for steering, users in USERS.items():
        assert {name for name, found in by_module.items() if steering in found} == users, steering


def test_only_this_room_defines_context_variables() -> None:
    def names(tree: ast.Module) -> set[str]:
        return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}

    assert [name for name, tree in modules("ContextVar").items() if "ContextVar" in names(tree)] == []


def test_steering_modules_are_listed() -> None:
    defining = {path.stem for path in ROOM.glob("*.py") if "ContextVar" in path.read_text("utf-8")}
    assert defining <= set(USERS)
