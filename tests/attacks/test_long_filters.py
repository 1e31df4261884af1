"""H2 and a low one: filters have bounds that their errors name; brackets and quotes cost no more than their length."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore
from hms_gateway.rpc.structs import DropPartitionsExpr, DropPartitionsRequest, PartitionsByExprRequest, RequestPartsSpec
from tests.attacks.processor_calls import answered, open_metastore

BYTES_MAX = 1024 * 1024


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with open_metastore(tmp_path_factory.mktemp("filters")) as opened:
        yield opened


@pytest.mark.parametrize("method", ["get_partitions_by_filter", "get_part_specs_by_filter"])
def test_a_filter_beyond_the_limit_is_refused_with_its_name(metastore: Metastore, method: str) -> None:
    filter = 'ds = "' + "a" * BYTES_MAX + '"'
    assert answered(metastore, method, "default", "t", filter, -1) == (
        "MetaException",
        "filter is longer than 1048576 bytes; shorten it (limit filter_bytes_max)",
    )


def test_the_same_holds_for_expressions(metastore: Metastore) -> None:
    expression = b"\0" * (BYTES_MAX + 1)
    many = RequestPartsSpec(exprs=[DropPartitionsExpr(b"x"), DropPartitionsExpr(expression)])
    for method, request in (
        ("get_partitions_by_expr", PartitionsByExprRequest("default", "t", expression)),
        ("drop_partitions_req", DropPartitionsRequest("default", "t", many)),
    ):
        assert answered(metastore, method, request) == (
            "MetaException",
            "expr is longer than 1048576 bytes; shorten it (limit filter_bytes_max)",
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filter", "named"),
    [
        ("(" * BYTES_MAX, "filter_brackets_max = 10000"),
        ("(ds) in (" + ",".join(["'1'"] * 30_000) + ")", "filter_literals_max = 20000"),
        ("(struct(" + ",".join(["ds"] * 30_000), "filter_literals_max = 20000"),
        ("ds = '" + "a" * (BYTES_MAX - 6), "a quote without its end"),
        ("ds = '" + "\\'" * (BYTES_MAX // 2 - 3), "a quote without its end"),
        ("'\"" * (BYTES_MAX // 2), "expected a comparison"),
        ("1." * (BYTES_MAX // 2), "expected a comparison"),
    ],
)
def test_a_senseless_filter_as_long_as_the_limit_is_a_declared_error(
    metastore: Metastore, filter: str, named: str
) -> None:
    outcome, text = answered(metastore, "get_partitions_by_filter", "default", "t", filter, -1)
    assert outcome == "MetaException"
    assert text is not None
    assert named in text


@pytest.mark.slow
def test_a_table_filter_has_few_conditions(metastore: Metastore) -> None:
    """Each is evaluated for every table."""
    condition = "hive_filter_field_params__x = '1'"
    for count, outcome in ((1_000, "ok"), (1_001, "MetaException")):
        filter = " or ".join([condition] * count)
        assert answered(metastore, "get_table_names_by_filter", "default", filter, -1)[0] == outcome
    many = "(hive_filter_field_owner__) in (" + ",".join(["'1'"] * 1_001) + ")"
    assert answered(metastore, "get_table_names_by_filter", "default", many, -1) == (
        "MetaException",
        "Error parsing table filter : more conditions than table_filter_conditions_max = 1000",
    )


def test_expressions_of_partitions_to_drop_are_counted(metastore: Metastore) -> None:
    """Each looks for partitions of its own."""
    many = RequestPartsSpec(exprs=[DropPartitionsExpr(b"ds = 'missing'")] * 1_001)
    request = DropPartitionsRequest("default", "t", many, ifExists=True)
    assert answered(metastore, "drop_partitions_req", request) == (
        "MetaException",
        "More expressions in one request than filters_per_request_max = 1000",
    )


@pytest.mark.slow
def test_the_limits_can_be_set(tmp_path: Path) -> None:
    with open_metastore(tmp_path, filter_literals_max=2, filter_brackets_max=3, filter_depth_max=1) as metastore:
        for filter, named in (
            ("(ds) in ('1', '2', '3')", "filter_literals_max = 2"),
            ("(((ds = '1')))", "filter_brackets_max = 3"),
            ("ds = '1' or (ds = '2' and ds != '3')", "filter_literals_max = 2"),
        ):
            outcome, text = answered(metastore, "get_partitions_by_filter", "default", "t", filter, -1)
            assert outcome == "MetaException"
            assert named in (text or "")


@pytest.mark.slow
def test_a_long_list_of_days_is_answered(metastore: Metastore) -> None:
    days = ",".join(f"'2024-{number:06}-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'" for number in range(20_000))
    assert answered(metastore, "get_partitions_by_filter", "default", "t", f"(ds) in ({days})", -1) == ("ok", None)
    chain = " or ".join(f"ds = '{number}'" for number in range(20_000))
    assert answered(metastore, "get_partitions_by_filter", "default", "t", chain, -1) == ("ok", None)
    nested = "(" * 9_000 + "ds = '0'" + "".join(f" or ds = '{number}')" for number in range(9_000))
    assert answered(metastore, "get_partitions_by_filter", "default", "t", nested, -1) == ("ok", None)
