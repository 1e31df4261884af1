import pytest

from hms_gateway.metastore.filters.grammar import FilterError, Operator
from hms_gateway.metastore.filters.table_filter import (
    TableComparison,
    TableField,
    TableFilter,
    TableLike,
    parse_table_filter,
)

OWNER = "hive_filter_field_owner__"
LAST_ACCESS = "hive_filter_field_last_access__"
PARAMETER = "hive_filter_field_params__"
TABLES = {
    "orders": ("ann", 10, {"presto_view": "true", "Note": "rob was here"}),
    "views": ("bob", 20, {"presto_view": "false"}),
    "nobody": (None, 0, {}),
}


def selected(text: str) -> list[str]:
    table_filter = parse_table_filter(text)
    assert table_filter is not None
    return [name for name, table in TABLES.items() if table_filter.matches(*table)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f'{OWNER} = "ann"', ["orders"]),
        (f'{OWNER} != "ann"', ["views"]),
        (f'{OWNER} > "ann"', ["views"]),
        (f'{OWNER} like ".*n.*"', ["orders"]),
        (f'{OWNER} between "a" and "b"', ["orders"]),
        (f'({OWNER}) in ("ann", "bob")', ["orders", "views"]),
        (f'({OWNER}) not in ("ann", "eve")', ["views"]),
        (f"{LAST_ACCESS} > 10", ["views"]),
        (f"10 >= {LAST_ACCESS}", ["orders", "nobody"]),
        (f"{LAST_ACCESS} not between 5 and 15", ["views", "nobody"]),
        (f'{LAST_ACCESS} = "10"', []),
        (f'{PARAMETER}presto_view = "true"', ["orders"]),
        (f'{PARAMETER}presto_view <> "true"', ["views"]),
        (f'{PARAMETER}presto_view like ".*"', ["orders", "views"]),
        (f'{PARAMETER}Note like ".*rob.*"', ["orders"]),
        (f'{PARAMETER}note like ".*rob.*"', []),
        (f'{PARAMETER}presto_view = "false" or {OWNER} = "ann"', ["orders", "views"]),
        (f'{PARAMETER}presto_view = "true" and {OWNER} = "bob"', []),
    ],
)
def test_table_filters_select_tables(text: str, names: list[str]) -> None:
    assert selected(text) == names


def test_no_filter_text_is_every_table() -> None:
    assert parse_table_filter("") is None


def test_conditions_name_field_parameter_and_operand() -> None:
    assert parse_table_filter(f"{LAST_ACCESS} < 5") == TableFilter(
        TableComparison(TableField.LAST_ACCESS, None, Operator.LESS, 5)
    )
    assert parse_table_filter(f"`{PARAMETER}a.b` = 5") == TableFilter(
        TableComparison(TableField.PARAMETER, "a.b", Operator.EQUAL, "5")
    )
    like = parse_table_filter(f"{OWNER} like 'a'")
    assert like is not None
    assert isinstance(like.root, TableLike)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("owner = 'ann'", "Invalid key name in filter.  Use constants from org.apache.hadoop.hive.metastore.api"),
        (
            f"{OWNER.upper()} = 'a'",
            "Invalid key name in filter.  Use constants from org.apache.hadoop.hive.metastore.api",
        ),
        (f"{LAST_ACCESS} like '1'", "Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS"),
        (
            f"{PARAMETER}a > 'b'",
            "Only [=, <>, !=, LIKE] are supported operators for HIVE_FILTER_FIELD_PARAMS",
        ),
        (
            f"{PARAMETER}a between 'b' and 'c'",
            "Only [=, <>, !=, LIKE] are supported operators for HIVE_FILTER_FIELD_PARAMS",
        ),
    ],
)
def test_conditions_that_do_not_fit_are_refused(text: str, message: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse_table_filter(text)
    assert str(refused.value) == message


def test_an_unparsable_filter_has_the_known_text() -> None:
    with pytest.raises(FilterError, match=r"^Error parsing partition filter"):
        parse_table_filter("owner")
