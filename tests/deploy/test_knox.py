"""The files of deploy/knox: their rules take the paths that clients send."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from tests.deploy.knox import RULES, SERVICE, Dispatch, matches, parts, path_of, rewritten, routes
from tests.support.server import API_PATH

PATHS = [API_PATH, f"{API_PATH}/", f"{API_PATH}/v1", f"{API_PATH}/v1/call"]
URLS = {"HMSHTTP": "https://gateway.example.org:30443/metastore"}


def patterns() -> list[str]:
    return [rule.attrib["pattern"] for rule in ElementTree.parse(RULES).iter("rule")]


@pytest.mark.parametrize("path", PATHS)
def test_a_rule_takes_the_path_and_those_below(path: str) -> None:
    taken = [pattern for pattern in patterns() if matches(parts(path_of(pattern)), parts(path))]
    assert len(taken) == 1
    assert rewritten(RULES.read_text(), path, "doAs=bob&doAs=bob", URLS) == f"{URLS['HMSHTTP']}?doAs=bob"


@pytest.mark.parametrize("path", PATHS)
def test_a_route_of_the_service_takes_it(path: str) -> None:
    below_the_topology = "/" + "/".join(parts(path)[2:])
    assert any(matches(parts(route), parts(below_the_topology)) for route in routes(SERVICE.read_text()))


def test_other_paths_are_not_taken() -> None:
    assert rewritten(RULES.read_text(), "/gateway/default/hive", "", URLS) is None


def test_patterns_name_no_part_of_the_path() -> None:
    """Knox adds what a pattern names to the query of what it sends, beside the client's own."""
    for pattern in patterns():
        assert not re.search(r"\{[^}]*\}", path_of(pattern))
        assert pattern.partition("?")[2] == "{**}"


def test_knox_waits_longer_than_a_long_list_takes_and_names_user_and_groups() -> None:
    dispatch = Dispatch(SERVICE.read_text())
    assert (dispatch.seconds("connectionTimeout"), dispatch.seconds("socketTimeout")) == (10, 660)
    groups = tuple(f"group-{number:03}" for number in range(150))
    (header, user), *of_groups = dispatch.names_of("ann", groups)
    assert (header, user, len(of_groups)) == ("X-Knox-Actor-ID", "ann", 2)
    assert ",".join(names for _, names in of_groups) == ",".join(groups)
