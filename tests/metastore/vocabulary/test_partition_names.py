import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.metastore.vocabulary.partition_names import (
    DEFAULT_PARTITION_NAME,
    IncompletePartitionName,
    InvalidPartitionName,
    PartitionCountMismatch,
    canonical_value,
    escape,
    make_name,
    name_to_spec,
    name_to_values,
    parse_name,
    partial_spec,
    unescape,
    values_in_name,
)

TEXTS = st.text(max_size=20)


@pytest.mark.parametrize("character", "\x00\x01\t\n\x1f\x7f\"#%'*/:=?\\[]^{")
def test_these_characters_are_escaped_with_upper_case_digits(character: str) -> None:
    assert escape(f"a{character}b") == f"a%{ord(character):02X}b"


@pytest.mark.parametrize("character", " }<>|&$@+,;~`!().-_aZ09é漢😀\x80")
def test_these_characters_are_not_escaped(character: str) -> None:
    assert escape(character) == character


@pytest.mark.parametrize(
    ("text", "unescaped"),
    [("a%2Fb", "a/b"), ("a%2fb", "a/b"), ("%", "%"), ("%2", "%2"), ("%zz", "%zz"), ("%%41", "%A"), ("%2541", "%41")],
)
def test_unescaping_leaves_malformed_sequences(text: str, unescaped: str) -> None:
    assert unescape(text) == unescaped


@pytest.mark.slow
@given(TEXTS)
def test_unescaping_undoes_escaping(text: str) -> None:
    assert unescape(escape(text)) == text


def test_names_are_made_from_lower_case_keys_and_escaped_values() -> None:
    assert make_name(["DS", "hr"], ["a/b=c %:é", "1"]) == "ds=a%2Fb%3Dc %25%3Aé/hr=1"


def test_an_empty_value_is_named_like_the_default_partition() -> None:
    assert make_name(["ds"], [""]) == make_name(["ds"], [DEFAULT_PARTITION_NAME]) == "ds=__HIVE_DEFAULT_PARTITION__"


@pytest.mark.parametrize(
    ("keys", "values", "shown"),
    [
        (["a", "b"], ["x"], "keys [a, b, ], values [x, ]"),
        ([], ["x"], "keys [], values [x, ]"),
        ([], [], "keys [], values []"),
        (["a"], [], "keys [a, ], values []"),
    ],
)
def test_a_wrong_number_of_values_is_refused(keys: list[str], values: list[str], shown: str) -> None:
    with pytest.raises(PartitionCountMismatch) as refused:
        make_name(keys, values)
    assert str(refused.value) == f"Invalid partition key & values; {shown}"


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_name_leads_back_to_its_values(values: list[str]) -> None:
    keys = [f"k{position}" for position in range(len(values))]
    name = make_name(keys, values)
    canonical = [canonical_value(value) for value in values]
    assert parse_name(keys, name) == canonical
    assert name_to_values(name) == canonical
    assert [unescape(value) for value in values_in_name(name)] == canonical


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ds=d1/hr=1", ["d1", "1"]),
        ("hr=1/ds=d1", ["d1", "1"]),
        ("ds=d1/hr=1/minute=2", ["d1", "1"]),
        ("/ds=d1//hr=1/", ["d1", "1"]),
        ("ds=a%2Fb/hr=1", ["a/b", "1"]),
    ],
)
def test_names_given_by_clients_are_read_leniently(name: str, values: list[str]) -> None:
    assert parse_name(["ds", "hr"], name) == values


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("ds=d1", "hr"),
        ("hr=1", "ds"),
        ("DS=d1/HR=1", "ds"),
        ("ds=/hr=1", "ds"),
        ("nonsense", "ds"),
        ("ds=a=b/hr=1", "ds"),
    ],
)
def test_a_key_missing_from_a_name_is_named(name: str, missing: str) -> None:
    with pytest.raises(IncompletePartitionName) as refused:
        parse_name(["ds", "hr"], name)
    assert str(refused.value) == f"incomplete partition name - missing {missing}"


@pytest.mark.parametrize(
    ("name", "text"), [("", "Partition name is invalid. "), (None, "Partition name is invalid. null")]
)
def test_no_name_is_refused(name: str | None, text: str) -> None:
    with pytest.raises(InvalidPartitionName) as refused:
        parse_name(["ds"], name)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("", {}),
        ("nonsense", {}),
        ("a=1/b=2", {"a": "1", "b": "2"}),
        ("a=1/a=2", {"a": "2"}),
        ("a=1/b=2/a=3", {"a": "3", "b": "2"}),
        ("DS=d1", {"DS": "d1"}),
        ("a=b=c", {"a=b": "c"}),
        ("=x/a=/b=1", {"b": "1"}),
        ("a=x%3Dy", {"a": "x=y"}),
    ],
)
def test_the_helper_methods_split_at_the_last_equals_sign(name: str, spec: dict[str, str]) -> None:
    assert name_to_spec(name) == spec
    assert name_to_values(name) == list(spec.values())


@pytest.mark.parametrize(
    ("key_count", "partial", "text"),
    [
        (2, ["a", "b", "c"], "Incorrect number of partition values. numPartKeys=2, part_val=3"),
        (0, ["a"], "Incorrect number of partition values. numPartKeys=0, part_val=1"),
        (2, [], "Invalid partition key & values; keys [], values []"),
    ],
)
def test_partial_specs_that_do_not_fit_are_refused(key_count: int, partial: list[str], text: str) -> None:
    with pytest.raises(PartitionCountMismatch) as refused:
        partial_spec(key_count, partial)
    assert str(refused.value) == text
