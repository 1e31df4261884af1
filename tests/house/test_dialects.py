"""Only `storage.dialects` distinguishes kinds of databases by their names."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS

PACKAGE = Path(__file__).parents[2] / "app" / "hms_gateway"
# Migrations stay as they were written when the schema was at their revision.
EXCEPTED = (PACKAGE / "storage" / "dialects", PACKAGE / "storage" / "migrations")
MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if not any(path.is_relative_to(excepted) for excepted in EXCEPTED)
)
KIND = re.compile("(sqlite|postgres|postgresql|mysql|mariadb)(\\+\\w+)?(:|://.*)?")
NAMES = {"get_backend_name", "get_driver_name", "dialect_name"}
# Most modules have none of these, and need no closer look.
WORDS = re.compile("sqlite|postgres|mysql|mariadb|dialect|get_(backend|driver)_name")


def distinctions(source: str) -> Iterator[str]:
    """Where a kind's name is compared, looked for, or asked of SQLAlchemy."""
    for node in ast.walk(ast.parse(source if WORDS.search(source) else "")):
        match node:
            case ast.Compare(left, _, others):
                parts = [left, *others]
            case ast.Call(ast.Attribute(attr="startswith" | "endswith" | "get"), arguments):
                parts = arguments
            case ast.Dict(keys):
                parts = [key for key in keys if key is not None]
            case ast.Subscript(_, part) | ast.MatchValue(part):
                parts = [part]
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in NAMES:
                yield f"line {node.lineno}: {name}"
                continue
            case ast.Attribute(ast.Attribute(attr="dialect"), "name"):
                yield f"line {node.lineno}: dialect.name"
                continue
            case _:
                continue
        for part in parts:
            for found in ast.walk(part):
                if isinstance(found, ast.Constant) and KIND.fullmatch(str(found.value)):
                    yield f"line {found.lineno}: {found.value}"


def test_no_other_room_distinguishes_kinds_of_databases():
    found = {path: list(distinctions(path.read_text("utf-8"))) for path in MODULES}
    assert {path: places for path, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "source",
    [
        "name == 'sqlite'",
        "'mysql+pymysql' != url.scheme",
        "name in ('mysql', 'mariadb')",
        "url.startswith('sqlite:///')",
        "connection.dialect.name",
        "url.get_backend_name()",
        "{'postgresql': 1}[name]",
        "{'postgresql': 1}.get('postgresql')",
        "match name:\n    case 'mariadb':\n        pass",
    ],
)
def test_what_counts_as_distinguishing(source):
    assert list(distinctions(source))


@pytest.mark.slow
def test_only_the_module_of_the_database_in_use_is_loaded(tmp_path):
    program = f"""
import sys
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store
open_store("sqlite:///{tmp_path}/catalog.sqlite", SystemClock(), Limits()).close()
others = ("postgres", "postgres_pipeline", "mysql", "mysql_engines")
print([name for name in others if f"hms_gateway.storage.dialects.{{name}}" in sys.modules])
print([name for name in ("psycopg", "pymysql") if name in sys.modules])
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert run.stdout.splitlines() == ["[]", "[]"]
