"""The address of the repository in packages: every link of README leads somewhere, and a wrong address is told."""

import re
import tomllib
from pathlib import Path

import pytest

from tools.addresses import problem, urls, with_addresses

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://git.example.org/team/hms-gateway"
TAG = "v1.2.3"


def test_each_link_of_readme_leads_to_a_file_of_the_tag() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    before, after = (re.findall(r"\]\((.*?)\)", each) for each in (text, with_addresses(text, REPOSITORY, TAG)))
    places = {"blob": f"{REPOSITORY}/blob/{TAG}/", "raw": f"{REPOSITORY}/raw/{TAG}/"}
    relative = [link for link in before if "://" not in link]
    assert len(relative) > 20
    for old, new in zip(before, after, strict=True):
        if old in relative:
            kind = "raw" if old.endswith((".png", ".svg")) else "blob"
            path, _, _ = new.removeprefix(places[kind]).partition("#")
            assert (new, (ROOT / path).exists()) == (places[kind] + old, True)
        else:
            assert new == old


def test_other_links_and_programs_stay() -> None:
    text = '[a](#install) [b](https://x.example/y) [c](mailto:x@y.example) `[1,"f",{}]` [d]: docs/README.md'
    assert with_addresses(text, REPOSITORY, TAG) == text


def test_the_table_of_addresses_goes_into_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8") + "\n" + urls(REPOSITORY, TAG))["project"]
    assert project["urls"]["Homepage"] == REPOSITORY
    for name in ("Documentation", "Changelog"):
        assert (ROOT / project["urls"][name].removeprefix(f"{REPOSITORY}/blob/{TAG}/")).is_file()


@pytest.mark.parametrize(
    "repository", ["", "git@git.example.org:team/x", "http://git.example.org/x", 'https://x/"', "https://"]
)
def test_a_wrong_address_is_told_by_the_name_of_its_setting(repository: str) -> None:
    assert "REPOSITORY" in str(problem(repository))


def test_a_login_in_an_address_is_told_without_it() -> None:
    told = problem("https://me:secret@git.example.org/x")
    assert told is not None
    assert "secret" not in told
    assert problem(REPOSITORY) is None
