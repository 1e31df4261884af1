"""What programs may import is one module, small, typed and loaded when it is used."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hms_gateway
from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
FACE = Path(hms_gateway.__file__)
# Documents for users. Those for developers name modules.
DOCUMENTS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]


def typed_names() -> dict[str, str]:
    """What type checkers see, by the module where it is."""
    tree = ast.parse(FACE.read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {
        alias.name: node.module
        for node in imports
        if node.module.startswith("hms_gateway.") and alias_is_named(node)
        for alias in node.names
    }


def alias_is_named(node: ast.ImportFrom) -> bool:
    return node.names[0].name != "*"


def test_type_checkers_see_what_programs_get():
    names = typed_names()
    assert sorted(names) == hms_gateway.__all__ == dir(hms_gateway)
    for name, module in names.items():
        assert getattr(hms_gateway, name) is getattr(sys.modules[module], name)
    assert (FACE.parent / "py.typed").exists()


def test_classes_of_the_idl_are_there_by_their_names():
    assert hms_gateway.Table(tableName="t").tableName == "t"
    assert issubclass(hms_gateway.NoSuchObjectException, Exception)


@pytest.mark.parametrize("name", ["Tabel", "_PUBLIC_", "cli_"])
def test_other_names_are_missing(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(hms_gateway, name)


def test_importing_the_package_loads_nothing_else():
    program = "import sys, hms_gateway; print(sorted(m for m in sys.modules if m.startswith('hms_gateway.')))"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_no_document_for_users_teaches_a_deep_import():
    deep = {
        path.name
        for path in DOCUMENTS
        if re.search(
            r"^\s*(?:from|import) hms_gateway\.(?!(?:pipeline|testing) import )", path.read_text("utf-8"), re.M
        )
    }
    assert deep == set()
