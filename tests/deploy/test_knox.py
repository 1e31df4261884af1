"""Knox's rewrite rules take the paths that clients send. They are matched as Knox's `util.urltemplate` does."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "deploy" / "knox" / "rewrite.xml"
SERVICE = RULES.with_name("service.xml")
PATHS = [
    "/gateway/default/hmshttpthrift/api/hms",
    "/gateway/default/hmshttpthrift/api/hms/",
    "/gateway/default/hmshttpthrift/api/hms/v1",
    "/gateway/default/hmshttpthrift/api/hms/v1/call",
]


def parts(path: str) -> list[str]:
    """As Knox cuts a path: empty parts, and so a slash at the end, do not count."""
    return [part for part in path.split("/") if part]


def matches(pattern: list[str], path: list[str]) -> bool:
    """`**` is one part or more, `*` is one part."""
    if not pattern or not path:
        return not pattern and not path
    if pattern[0] == "**":
        return any(matches(pattern[1:], path[taken:]) for taken in range(1, len(path) + 1))
    return pattern[0] in ("*", path[0]) and matches(pattern[1:], path[1:])


def patterns() -> list[str]:
    return [rule.attrib["pattern"] for rule in ElementTree.parse(RULES).iter("rule")]


def path_of(pattern: str) -> str:
    return pattern.partition("?")[0].removeprefix("*://*:*")


@pytest.mark.parametrize("path", PATHS)
def test_a_rule_takes_the_path_and_those_below(path: str) -> None:
    taken = [pattern for pattern in patterns() if matches(parts(path_of(pattern)), parts(path))]
    assert len(taken) == 1


@pytest.mark.parametrize("path", PATHS)
def test_a_route_of_the_service_takes_it(path: str) -> None:
    routes = [route.attrib["path"] for route in ElementTree.parse(SERVICE).iter("route")]
    below_the_topology = "/" + "/".join(parts(path)[2:])
    assert any(matches(parts(route), parts(below_the_topology)) for route in routes)


def test_other_paths_are_not_taken() -> None:
    assert not any(matches(parts(path_of(pattern)), ["gateway", "default", "hive"]) for pattern in patterns())


def test_patterns_name_no_part_of_the_path() -> None:
    """Knox adds what a pattern names to the query of what it sends, beside the client's own."""
    for pattern in patterns():
        assert not re.search(r"\{[^}]*\}", path_of(pattern))
        assert pattern.partition("?")[2] == "{**}"
