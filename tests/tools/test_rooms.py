"""The picture of the rooms in docs/README.md is that of the code."""

from graphlib import CycleError
from pathlib import Path

import pytest

from tools.rooms import imports_between_rooms, map_path, with_picture, without_detours


@pytest.mark.slow
def test_the_picture_is_up_to_date() -> None:
    document = map_path().read_text(encoding="utf-8")
    assert document == with_picture(document), "run: python -m tools rooms"


def test_a_document_without_its_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="missing"):
        with_picture("# Map\n")


def test_imports_are_those_between_top_folders(tmp_path: Path) -> None:
    package = tmp_path / "house"
    files = {
        "cellar/__init__.py": "",
        "kitchen/__init__.py": "from house import cellar\nfrom house.kitchen import oven\nimport json\n",
        "attic/__init__.py": "",
        "attic/boxes/__init__.py": "def f():\n    import house.kitchen.oven\n",
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    assert imports_between_rooms(package) == {
        "attic": {"kitchen"},
        "cellar": frozenset(),
        "kitchen": {"cellar"},
    }


def test_an_import_that_follows_from_others_is_not_drawn() -> None:
    imports = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset()}
    assert without_detours(imports) == {"a": {"b"}, "b": {"c"}, "c": frozenset()}


def test_rooms_that_import_each_other_are_refused() -> None:
    with pytest.raises(CycleError):
        without_detours({"a": frozenset("b"), "b": frozenset("a")})
