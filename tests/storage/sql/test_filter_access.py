import pytest

from hms_gateway.metastore.filters.binding import BoundMultiIn, BoundOr, bind
from hms_gateway.metastore.filters.grammar import parse_filter
from hms_gateway.storage.sql.filter_sql import ALTERNATIVES_MAX, leading_alternatives, narrow_keys

KEYS = [(f"k{number}", "string" if number % 2 else "int") for number in range(10)]


def leading(text: str) -> BoundOr | BoundMultiIn | None:
    parsed = parse_filter(text)
    assert parsed is not None
    return leading_alternatives(bind(parsed, KEYS))


@pytest.mark.parametrize(
    "text",
    [
        "k1 = 'a' or k2 = 1",
        "k1 = 'a' or (k2 = 1 and k4 > 1)",
        "k1 like 'a.*' or k2 between 1 and 2 or (k4) in (1, 2)",
        "k1 = 'a' or (k2 > 1 and k2 < 5)",
        "k4 > 1 and (k1 = 'a' or k2 = 1)",
        "k4 != 1 and (k2 > 5 or k4 < 1) and (k1 = 'a' or k2 = 1)",
        "(struct(k1, k2)) in (const struct('a', 1), const struct('b', 2))",
        "(struct(k9, k2)) in (const struct('a', 1), const struct('b', 2))",
        "k1 = 'a' or (struct(k1, k2)) in (const struct('a', 1), const struct('b', 2))",
        " or ".join(f"(k1 = 'a' and k2 = {number})" for number in range(ALTERNATIVES_MAX)),
    ],
)
def test_an_or_of_narrow_alternatives_leads(text: str) -> None:
    assert leading(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "k1 = 'a'",
        "k1 = 'a' and k2 = 1",
        "k1 > 'a' or k2 = 1",
        "k1 != 'a' or k2 = 1",
        "k1 like '.*a' or k2 = 1",
        "k1 not between 'a' and 'b' or k2 = 1",
        "(k1) not in ('a') or k2 = 1",
        "(struct(k1, k2)) not in (const struct('a', 1), const struct('b', 2))",
        "k1 = 'a' or (k2 > 1 and k4 < 5)",
        "k4 = 1 and (k1 = 'a' or k2 = 1)",
        "k4 > 1 and k4 <= 2 and (k1 = 'a' or k2 = 1)",
        "k9 = 'a' or k2 = 1",
        " or ".join(f"(k1 = 'a' and k2 = {number})" for number in range(ALTERNATIVES_MAX + 1)),
    ],
)
def test_others_are_left_to_the_planner(text: str) -> None:
    assert leading(text) is None


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("k1 = 'a'", {1: 1}),
        ("k1 = 'a' and k2 = 1", {1: 2}),
        ("k1 = 'a' and k2 = 1 and (k3) in ('b')", {1: 2, 3: 1}),
        ("k1 = 'a' and k3 = 'b'", {1: 1, 3: 1}),
        ("k1 = 'a' and k2 > 1 and k3 = 'b' and k3 != 'c'", {1: 1, 3: 2}),
        ("k1 = 'a' and k2 between 1 and 3", {1: 1, 2: 1}),
        ("k1 like 'a.*' and k2 = 1", {1: 1, 2: 1}),
        ("k1 > 'a' and k1 < 'c' and k4 >= 5", {1: 2}),
        ("k1 > 'a' and k2 != 5 and (k3) not in ('a')", {}),
        ("k9 = 'a' and k4 = 1", {4: 1}),
        ("k1 = 'a' and (k2 = 1 or k3 = 'b')", {1: 1}),
        ("k1 = 'a' or k3 = 'b'", {}),
    ],
)
def test_keys_that_could_find_what_a_conjunction_selects(text: str, keys: dict[int, int]) -> None:
    parsed = parse_filter(text)
    assert parsed is not None
    found = narrow_keys(bind(parsed, KEYS))
    assert {position: len(conditions) for position, conditions in found.items()} == keys
