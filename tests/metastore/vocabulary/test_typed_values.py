from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hms_gateway.metastore.vocabulary.partition_names import DEFAULT_PARTITION_NAME
from hms_gateway.metastore.vocabulary.typed_values import (
    ValueClass,
    canonical_boolean,
    canonical_date,
    canonical_timestamp,
    sort_key,
    typed_value,
    value_class,
)

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=None, min_value=-(10**40), max_value=10**40)
SMALL_DECIMALS = st.tuples(st.integers(-1200, 1200), st.integers(0, 3)).map(
    lambda pair: Decimal(pair[0]).scaleb(-pair[1])
)
DOUBLES = st.floats(allow_nan=False)


@pytest.mark.parametrize(
    ("type_name", "expected"),
    [
        ("string", ValueClass.TEXT),
        ("varchar(10)", ValueClass.TEXT),
        ("char(3)", ValueClass.TEXT),
        ("tinyint", ValueClass.INTEGER),
        ("smallint", ValueClass.INTEGER),
        ("INT", ValueClass.INTEGER),
        ("bigint", ValueClass.INTEGER),
        ("decimal(10,2)", ValueClass.DECIMAL),
        ("float", ValueClass.DOUBLE),
        ("double", ValueClass.DOUBLE),
        ("date", ValueClass.DATE),
        ("timestamp", ValueClass.TIMESTAMP),
        ("boolean", ValueClass.BOOLEAN),
        ("binary", ValueClass.OPAQUE),
        ("array<int>", ValueClass.OPAQUE),
        ("", ValueClass.OPAQUE),
    ],
)
def test_types_compare_by_class(type_name: str, expected: ValueClass) -> None:
    assert value_class(type_name) is expected


@pytest.mark.slow
@given(st.one_of(DECIMALS, SMALL_DECIMALS), st.one_of(DECIMALS, SMALL_DECIMALS))
@example(Decimal("-0.12"), Decimal("-0.123"))
@example(Decimal("0"), Decimal("-0.0"))
@example(Decimal("99999999999999999999999999999999999999"), Decimal("99999999999999999999999999999999999998"))
def test_sort_keys_of_decimals_order_and_equal_as_the_numbers_do(one: Decimal, other: Decimal) -> None:
    one_key, other_key = sort_key("decimal(38,10)", str(one)), sort_key("decimal(38,10)", str(other))
    assert one_key is not None
    assert other_key is not None
    assert (one_key < other_key, one_key == other_key) == (one < other, one == other)


@given(st.integers(), st.integers())
@example(2**63, 2**63 - 1)
@example(2**53, 2**53 + 1)
def test_sort_keys_of_integers_are_exact(one: int, other: int) -> None:
    one_key, other_key = sort_key("bigint", str(one)), sort_key("bigint", str(other))
    assert one_key is not None
    assert other_key is not None
    assert (one_key < other_key, one_key == other_key) == (one < other, one == other)


@given(DOUBLES, DOUBLES)
@example(float("inf"), 1e308)
@example(-0.0, 0.0)
@example(5e-324, 0.0)
def test_sort_keys_of_doubles_order_and_equal_as_the_numbers_do(one: float, other: float) -> None:
    one_key, other_key = sort_key("double", repr(one)), sort_key("double", repr(other))
    assert one_key is not None
    assert other_key is not None
    assert (one_key < other_key, one_key == other_key) == (one < other, one == other)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 5), st.integers(0, 5))
def test_spelling_of_a_number_does_not_matter(number: int, leading_zeros: int, trailing_zeros: int) -> None:
    sign, digits = ("-", str(-number)) if number < 0 else ("", str(number))
    spelled = f"{sign}{'0' * leading_zeros}{digits}.{'0' * trailing_zeros}"
    for type_name in ("bigint", "decimal(38,18)"):
        assert sort_key(type_name, spelled) == sort_key(type_name, str(number))
        assert typed_value(type_name, spelled) == number


@pytest.mark.slow
@given(st.one_of(DECIMALS.map(str), st.text(max_size=8)))
def test_sort_keys_of_numbers_are_ascii(text: str) -> None:
    for type_name in ("int", "decimal(38,18)", "double", "date", "timestamp", "boolean"):
        key = sort_key(type_name, text)
        assert key is None or key.isascii()
        assert (typed_value(type_name, text) is None) == (key is None)


def test_one_number_has_one_key_in_all_numeric_types() -> None:
    assert {
        sort_key(type_name, text) for type_name in ("int", "decimal(9,1)", "double") for text in ("1", "01", "1.0")
    } == {"350011"}
    assert sort_key("decimal(9,1)", "1e0") == sort_key("double", "10E-1") == "350011"


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("int", "notint"),
        ("int", ""),
        ("int", "1.5"),
        ("int", "1e3"),
        ("int", "٣"),
        ("int", "1_000"),
        ("int", DEFAULT_PARTITION_NAME),
        ("decimal(10,2)", "."),
        ("decimal(10,2)", "-"),
        ("decimal(10,2)", "1e99999"),
        ("decimal(10,2)", "1e999999999999"),
        ("decimal(10,2)", "1" * 101),
        ("decimal(10,2)", "NaN"),
        ("double", "NaN"),
        ("double", "+-inf"),
        ("double", DEFAULT_PARTITION_NAME),
        ("date", "2024-02-30"),
        ("date", "20240101"),
        ("date", DEFAULT_PARTITION_NAME),
        ("timestamp", "2024-01-01 24:00:00"),
        ("boolean", "1"),
        ("array<int>", "[1]"),
    ],
)
def test_what_is_no_value_of_the_type_has_no_key(type_name: str, value: str) -> None:
    assert sort_key(type_name, value) is None
    assert typed_value(type_name, value) is None


def test_text_keys_hold_the_value_and_the_default_partition_in_one_spelling() -> None:
    assert sort_key("string", " A b") == " A b"
    assert sort_key("varchar(5)", "") == sort_key("varchar(5)", DEFAULT_PARTITION_NAME) == DEFAULT_PARTITION_NAME


@pytest.mark.parametrize(
    "text", ["2024-01-02", "2024-1-2", "2024-01-02 00:00:00", " 2024-01-2 ", "2024-01-02T03:04:05.6"]
)
def test_dates_are_read_leniently(text: str) -> None:
    assert canonical_date(text) == sort_key("date", text) == "2024-01-02"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2024-01-02", "2024-01-02 00:00:00"),
        ("2024-1-2 3:4", "2024-01-02 03:04:00"),
        ("2024-01-02 03:04:05.", "2024-01-02 03:04:05"),
        ("2024-01-02 03:04:05.500", "2024-01-02 03:04:05.5"),
        ("2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05.123456789"),
        ("2024-01-02 03:04:60", None),
        ("02.01.2024", None),
        ("0000-01-01", None),
    ],
)
def test_timestamps_become_canonical(text: str, canonical: str | None) -> None:
    assert canonical_timestamp(text) == canonical


@pytest.mark.slow
@given(st.datetimes(), st.datetimes())
def test_sort_keys_of_timestamps_order_as_the_times_do(one, other) -> None:  # type: ignore[no-untyped-def]
    one_key, other_key = sort_key("timestamp", str(one)), sort_key("timestamp", str(other))
    assert one_key is not None
    assert other_key is not None
    assert (one_key < other_key, one_key == other_key) == (one < other, one == other)


@pytest.mark.parametrize(("text", "canonical"), [("TRUE", "true"), ("false", "false"), ("yes", None), ("", None)])
def test_booleans_become_canonical(text: str, canonical: str | None) -> None:
    assert canonical_boolean(text) == canonical


def test_typed_values_are_python_values() -> None:
    assert typed_value("bigint", "-009") == -9
    assert typed_value("decimal(4,2)", "1.50") == Decimal("1.5")
    assert typed_value("double", "1e-1") == 0.1
    assert typed_value("date", "2024-1-2") == "2024-01-02"
    assert typed_value("boolean", "True") == "true"
    assert typed_value("string", "x") == "x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29", "2024-02-29"),
        ("2023-02-29", None),
        ("0000-01-01", None),
        ("0001-01-01", "0001-01-01"),
        ("2024-W01-1", None),
        ("2024-1-001", None),
        ("２024-01-01", None),
        ("2024-01-0x", None),
        (" 2024-1-1 ", "2024-01-01"),
    ],
)
def test_dates_of_ten_characters(text: str, expected: str | None) -> None:
    assert canonical_date(text) == expected


@pytest.mark.parametrize("text", ["0", "000", "7", "0070", "1" + "0" * 300, "9" * 100, "9" * 101, "1" + "0" * 4_999])
def test_plain_integers_have_the_keys_of_their_signed_spelling(text: str) -> None:
    assert sort_key("bigint", text) == sort_key("bigint", f"+{text}")


def test_digits_of_other_scripts_are_no_integers() -> None:
    assert sort_key("int", "٣") is None
    assert sort_key("int", "²") is None
