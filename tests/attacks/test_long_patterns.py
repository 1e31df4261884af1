"""H2: a long pattern takes time in proportion to its length, and no longer one than `pattern_bytes_max` is read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import Metastore
from hms_gateway.rpc.structs import GetProjectionsSpec, GetTablesRequest
from tests.attacks.processor_calls import answered, open_metastore

BYTES_MAX = 64 * 1024


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with open_metastore(tmp_path_factory.mktemp("patterns")) as opened:
        yield opened


CALLS: list[tuple[str, Any]] = [
    ("get_tables", lambda pattern: ("default", pattern)),
    ("get_databases", lambda pattern: (pattern,)),
    ("get_table_meta", lambda pattern: ("*", pattern, None)),
    ("get_functions", lambda pattern: ("default", pattern)),
    ("get_table_objects_by_name_req", lambda pattern: (GetTablesRequest("default", tablesPattern=pattern),)),
    (
        "get_table_objects_by_name_req",
        lambda pattern: (GetTablesRequest("default", ["t"], projectionSpec=GetProjectionsSpec(None, pattern)),),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "arguments"), CALLS)
def test_a_pattern_beyond_the_limit_is_refused_with_its_name(metastore: Metastore, method: str, arguments: Any) -> None:
    for pattern in ("a" * (BYTES_MAX + 1), "é" * (BYTES_MAX // 2 + 1), "a" * 5_000_000):
        outcome, text = answered(metastore, method, *arguments(pattern))
        assert outcome == "MetaException"
        assert text is not None
        assert "65536" in text
        assert "(limit pattern_bytes_max)" in text


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["a", "*", "|", ".", "\\.", "?", "a|", "(", "%", "[a]", "é"])
def test_a_pattern_as_long_as_the_limit_is_answered(metastore: Metastore, shape: str) -> None:
    pattern = shape * (BYTES_MAX // len(shape.encode()))
    for method, arguments in CALLS:
        outcome, text = answered(metastore, method, *arguments(pattern))
        assert outcome == "ok", (method, text)


def test_a_list_of_names_may_be_long_and_alternatives_with_wildcards_are_counted(metastore: Metastore) -> None:
    assert answered(metastore, "get_tables", "default", "|".join(f"t{number}" for number in range(9_000))) == (
        "ok",
        None,
    )
    assert answered(metastore, "get_tables", "default", "|".join(f"t{number}*" for number in range(1_000)))[0] == "ok"
    outcome, text = answered(metastore, "get_tables", "default", "|".join(f"t{number}*" for number in range(1_001)))
    assert outcome == "MetaException"
    assert text == ("pattern has 1001 alternatives with wildcards; send at most 1000 (limit pattern_alternatives_max)")


@pytest.mark.slow
def test_the_limit_can_be_set(tmp_path: Path) -> None:
    with open_metastore(tmp_path, pattern_bytes_max=10) as metastore:
        assert answered(metastore, "get_tables", "default", "a" * 10) == ("ok", None)
        assert answered(metastore, "get_tables", "default", "a" * 11) == (
            "MetaException",
            "pattern is longer than 10 bytes; shorten it (limit pattern_bytes_max)",
        )
