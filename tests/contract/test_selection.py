"""Selecting partitions: SQL agrees with the reference evaluators over random tables."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_gateway.metastore.filters.binding import bind
from hms_gateway.metastore.filters.grammar import FilterError, parse_filter
from hms_gateway.metastore.ports.store import Selection, StoredTable, StoreError, UnstorableText
from hms_gateway.metastore.vocabulary.partition_names import canonical_value, make_name
from hms_gateway.metastore.vocabulary.typed_values import ValueClass, value_class
from hms_gateway.rpc.structs import FieldSchema
from hms_gateway.storage.writing.store import SqlStore
from tests.contract.objects import bound, create, names, table
from tests.support.filter_evaluation import evaluate
from tests.support.sample import sample

KEYS = [("s", "string"), ("n", "int"), ("d", "date"), ("m", "decimal(10,2)"), ("b", "boolean"), ("o", "binary")]
VALUES = {
    "s": ["", "a", "b", "a.b", "axb", "a%b", "a_b", "A", "ä", "[a]", "*", "10", "9", "2024-01-02", "a'b", "😀"],
    "n": ["1", "01", "10", "9", "-3", "0", "x", "", "__HIVE_DEFAULT_PARTITION__", "9223372036854775807", "1.0"],
    "d": ["2024-01-02", "2024-1-2", "2023-12-31", "nonsense", "", "2024-01-02 00:00:00"],
    "m": ["1.5", "1.50", "-0.1", "100", "x", "1e3"],
    "b": ["true", "FALSE", "maybe"],
    "o": ["a", "b"],
}
ROWS = list(
    {
        make_name([name for name, _ in KEYS], row): row
        for seed in range(60)
        for row in [
            [VALUES[name][(seed * (3 + 4 * index) + index) % len(VALUES[name])] for index, (name, _) in enumerate(KEYS)]
        ]
    }.values()
)

ONE_STORE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture
def filled(store: SqlStore) -> StoredTable:
    return create(store, table(partitionKeys=[FieldSchema(*key) for key in KEYS]), ROWS)


def literals(key: str) -> st.SearchStrategy[str]:
    quoted = st.sampled_from(VALUES[key]).filter(lambda text: "'" not in text).map(lambda text: f"'{text}'")
    if key == "n":
        return quoted | st.integers(-5, 12).map(str)
    return quoted


@st.composite
def leaves(draw: st.DrawFn) -> str:
    key = draw(st.sampled_from("snndmb"))
    kind = draw(st.sampled_from(["compare", "mirror", "between", "in", "multi", "like"]))
    negation = draw(st.sampled_from(["", "not "]))
    if kind == "compare":
        return f"{key} {draw(st.sampled_from(['=', '!=', '<>', '<', '<=', '>', '>=']))} {draw(literals(key))}"
    if kind == "mirror":
        return f"{draw(literals(key))} {draw(st.sampled_from(['=', '<', '>=']))} {key}"
    if kind == "between":
        return f"{key} {negation}between {draw(literals(key))} and {draw(literals(key))}"
    if kind == "in":
        return f"({key}) {negation}in ({', '.join(draw(st.lists(literals(key), min_size=1, max_size=4)))})"
    if kind == "multi":
        rows = draw(st.lists(st.tuples(literals("s"), literals("n")), min_size=1, max_size=3))
        return f"(struct(s, n)) {negation}in ({', '.join(f'const struct({one}, {two})' for one, two in rows)})"
    return f"s like '{draw(st.sampled_from(['a.*', '.*b', 'a.b', '.*', '', 'a%b', '[a].*', 'x']))}'"


FILTERS = st.recursive(
    leaves(),
    lambda inner: st.builds(
        lambda operator, parts: "(" + f" {operator} ".join(parts) + ")",
        st.sampled_from(["and", "or"]),
        st.lists(inner, min_size=2, max_size=3),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=sample(20, of=150), suppress_health_check=ONE_STORE)
@given(st.lists(FILTERS, min_size=1, max_size=3))
def test_filters_select_what_the_reference_selects(store: SqlStore, filled: StoredTable, texts: list[str]) -> None:
    for text in texts:
        try:
            parsed = parse_filter(text)
            assert parsed is not None
            filter = bind(parsed, KEYS)
        except FilterError:
            continue
        expected = sorted(make_name([name for name, _ in KEYS], row) for row in ROWS if evaluate(filter, KEYS, row))
        assert names(store, filled, Selection(filter=filter)) == expected, text
        assert store.read(lambda snapshot, f=filter: snapshot.count_partitions(filled, Selection(filter=f))) == len(
            expected
        )


PARTIAL_VALUES = st.lists(st.none() | st.integers(0, 15), max_size=len(KEYS))


@pytest.mark.slow
@settings(max_examples=sample(15, of=100), suppress_health_check=ONE_STORE)
@given(PARTIAL_VALUES)
def test_partial_values_compare_as_text(store: SqlStore, filled: StoredTable, wanted: list[int | None]) -> None:
    values = [
        None if number is None else VALUES[name][number % len(VALUES[name])]
        for number, (name, _) in zip(wanted, KEYS, strict=False)
    ]

    def matches(row: list[str]) -> bool:
        pairs = zip(values, row, strict=False)
        return all(value is None or canonical_value(value) == canonical_value(found) for value, found in pairs)

    expected = sorted(make_name([name for name, _ in KEYS], row) for row in ROWS if matches(row))
    assert names(store, filled, Selection(partial_values=values)) == expected


def test_conditions_hold_together_and_the_limit_last(store: SqlStore) -> None:
    of = create(store, values=[[letter, str(number)] for letter, number in itertools.product("abc", range(5))])
    wanted = [f"k0={letter}/k1={number}" for letter in "ab" for number in (0, 3, 4)]
    selection = Selection(names=wanted, partial_values=["b"], filter=bound("k1 > 0", of))
    assert names(store, of, selection) == ["k0=b/k1=3", "k0=b/k1=4"]
    limited = Selection(names=wanted, partial_values=["b"], filter=bound("k1 > 0", of), limit=1)
    assert names(store, of, limited) == ["k0=b/k1=3"]
    assert store.read(lambda snapshot: snapshot.count_partitions(of, limited)) == 1
    assert names(store, of, Selection(limit=0)) == []
    assert names(store, of, Selection(names=[])) == []
    assert names(store, of, Selection(partial_values=["b\0"])) == []
    assert len(names(store, of, Selection(partial_values=[]))) == 15


def test_order_is_that_of_the_names_bytes(store: SqlStore) -> None:
    of = create(store, table(partitionKeys=[FieldSchema("k", "string")]), [["10"], ["2"], ["B"], ["a"], ["ä"], ["_"]])
    by_bytes = ["k=10", "k=2", "k=B", "k=_", "k=a", "k=ä"]
    assert names(store, of) == by_bytes
    assert names(store, of, Selection(filter=bound("k != 'x'", of))) == by_bytes
    assert names(store, of, Selection(names=by_bytes[::-1])) == by_bytes


def test_many_names_are_one_statement(store: SqlStore) -> None:
    of = create(store, values=[["a", "1"], ["a", "70000"]])
    wanted = [f"k0=a/k1={number}" for number in range(70_001)]
    assert names(store, of, Selection(names=wanted)) == ["k0=a/k1=1", "k0=a/k1=70000"]


@pytest.mark.slow
def test_wide_filters_work_and_absurd_ones_name_the_limit(store: SqlStore) -> None:
    of = create(store, values=[["a", "1"], ["b", "2"]])
    days = " or ".join(f"k0 = 'x{number}'" for number in range(19_999))
    assert names(store, of, Selection(filter=bound(days + " or k0 = 'b'", of))) == ["k0=b/k1=2"]
    ranges = " or ".join(f"k1 > {number}" for number in range(1, 2_000))
    assert names(store, of, Selection(filter=bound(ranges, of))) == ["k0=b/k1=2"]
    rows = ", ".join(f"const struct('x', {number})" for number in range(1_000))
    both = f"(struct(k0, k1)) in ({rows}, const struct('a', 1))"
    assert names(store, of, Selection(filter=bound(both, of))) == ["k0=a/k1=1"]
    absurd = bound(" or ".join(f"k1 > {number}" for number in range(5_001)), of)
    with pytest.raises(StoreError, match="more than 5000 conditions"):
        names(store, of, Selection(filter=absurd))


def test_a_filter_value_no_database_can_take_is_an_error(store: SqlStore) -> None:
    of = create(store, values=[["a", "1"]])
    with pytest.raises(UnstorableText, match="filter value"):
        names(store, of, Selection(filter=bound("k0 > 'a\0'", of)))
    assert names(store, of, Selection(filter=bound("(k0) in ('a\0', 'a')", of))) == ["k0=a/k1=1"]


def test_opaque_keys_satisfy_nothing(store: SqlStore, filled: StoredTable) -> None:
    parsed = parse_filter("s like '.*'")
    assert parsed is not None
    assert value_class(KEYS[5][1]) is ValueClass.OPAQUE
    assert len(names(store, filled, Selection(filter=bind(parsed, KEYS)))) == len(ROWS)
