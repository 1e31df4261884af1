"""Lists of valid transactions and write ids: texts, comparison, and what a reader sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.txn.rules.write_ids import (
    EVERYTHING,
    ID_MAX,
    InvalidList,
    ValidIds,
    ValidWriteIds,
    aborted_bits,
    allocate,
    are_equivalent,
    compare,
    covers,
    ids_with_bits,
    parse_valid_txn_write_ids,
    parse_valid_txns,
    valid_txn_write_ids_text,
    valid_txns_text,
    valid_txns_text_2_3,
    valid_write_ids_text,
    write_ids_seen,
)


@st.composite
def id_lists(draw: st.DrawFn) -> ValidIds:
    high_water_mark = draw(st.integers(0, 30))
    exceptions = draw(st.sets(st.integers(1, max(high_water_mark, 1)))) if high_water_mark else set()
    aborted = {number for number in exceptions if draw(st.booleans())}
    return ValidIds(high_water_mark, tuple(sorted(exceptions - aborted)), tuple(sorted(aborted)))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("7:9223372036854775807:", ValidIds(7)),
        ("7:5:5:6:9", ValidIds(7, (5, 6, 9))),
        ("9:7:5:7:8", ValidIds(9, (7, 8), (5,))),
        ("10:4:4,7:5,6", ValidIds(10, (4, 7), (5, 6))),
        ("10:9223372036854775807::", ValidIds(10)),
        ("12:4:4,7-12:", ValidIds(12, (4, 7, 8, 9, 10, 11, 12))),
        ("", EVERYTHING),
        ("  ", EVERYTHING),
        (None, EVERYTHING),
    ],
)
def test_texts_of_all_versions(text: str | None, ids: ValidIds) -> None:
    assert parse_valid_txns(text) == ids


@pytest.mark.parametrize(
    "text", ["x", "7", "a:b:c:d", "7:5:5-:", "7:5:-5:", "-7:5::", "7:1:1-9000000000:", "٧:5::", "9" * 30 + ":1::"]
)
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(InvalidList):
        parse_valid_txns(text)


def test_the_forms_that_are_written() -> None:
    ids = ValidIds(12, (4, 7, 8, 9, 10, 11, 12), (5,))
    assert valid_txns_text(ids) == "12:4:4,7,8,9,10,11,12:5"
    assert valid_txns_text(ids, has_ranges=True) == "12:4:4,7-12:5"
    assert valid_txns_text(ValidIds(9, (1, 2, 3, 4)), has_ranges=True) == "9:1:1,2,3,4:"
    assert valid_txns_text_2_3(ValidIds(7)) == "7:9223372036854775807:"
    assert valid_txns_text_2_3(ValidIds(7, (5, 6))) == "7:5:5:6"
    assert valid_write_ids_text(ValidWriteIds("default.t", ValidIds(12, (7, 8), (9,)))) == "default.t:12:7:7,8:9"
    assert valid_write_ids_text(ValidWriteIds(None, ValidIds(5))) == "null:5:9223372036854775807::"


@pytest.mark.slow
@given(id_lists(), st.booleans())
def test_texts_round_trip(ids: ValidIds, has_ranges: bool) -> None:
    assert parse_valid_txns(valid_txns_text(ids, has_ranges=has_ranges)) == ids
    lists = [ValidWriteIds("d.t", ids), ValidWriteIds(None, ids)]
    text = valid_txn_write_ids_text(7, lists, has_ranges=has_ranges)
    assert parse_valid_txn_write_ids(text) == (7, lists)
    assert parse_valid_txns(valid_txns_text_2_3(ids)).exceptions == ids.exceptions


def of(high_water_mark: int, *exceptions: int, table: str = "d.t") -> ValidWriteIds:
    return ValidWriteIds(table, ValidIds(high_water_mark, exceptions))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (of(12, 7, 8, 12), of(11, 7, 8), 0),
        (of(12, 7, 8, 12), of(12, 7, 8), -1),
        (of(12, 7), of(11, 7), 1),
        (of(12, 7, 12), of(12, 7, 8, 12), 1),
        (of(10), of(13, 11, 12, 13), 0),
        (of(10), of(14, 11, 12, 13), -1),
        (of(10), of(13, 12, 13), -1),
        (of(12), of(13, 11, 12, 13), 1),
        (of(5), of(5), 0),
        (of(5, table="a.a"), of(9, table="b.b"), -1),
    ],
)
def test_which_list_is_newer(one: ValidWriteIds, other: ValidWriteIds, expected: int) -> None:
    assert compare(one, other) == expected
    assert compare(other, one) == -expected
    assert are_equivalent(one, other) is (expected == 0)


@pytest.mark.slow
@given(id_lists(), id_lists())
def test_covering_is_being_a_superset(cached: ValidIds, reader: ValidIds) -> None:
    valid = [{number for number in range(1, 31) if ids.is_valid(number)} for ids in (cached, reader)]
    assert covers(ValidWriteIds("d.t", cached), ValidWriteIds("d.t", reader)) is (valid[1] <= valid[0])


def test_a_reader_that_sees_its_own_write_is_not_served_from_before() -> None:
    """Hive's comparison takes the cached list for newer (semantics §6.2, trap 1)."""
    reader, cached = of(8, 7), of(8, 8)
    assert compare(cached, reader) == 1
    assert not covers(cached, reader)
    assert not covers(of(8), of(8, table="d.other"))


def test_write_ids_are_given_in_order_of_the_transactions_and_once() -> None:
    assert allocate([9, 3, 5, 3], {5: 1}, 4) == ({3: 5, 5: 1, 9: 6}, 6)
    assert allocate([], {}, 4) == ({}, 4)


@pytest.mark.parametrize(
    ("valid", "last", "rows", "seen"),
    [
        (ValidIds(10), 0, [], ValidIds(0)),
        (ValidIds(10), 6, [], ValidIds(6)),
        # Transactions beyond the mark do not raise it, those below count as open.
        (ValidIds(10, (4,), (5,)), 5, [(4, 1), (5, 3), (12, 2), (13, 5)], ValidIds(4, (1, 2), (3,))),
        (ValidIds(10), 3, [(12, 2), (13, 3)], ValidIds(1)),
        (ValidIds(10, (4,)), 3, [(4, 3)], ValidIds(3, (3,))),
    ],
)
def test_what_a_reader_sees(valid: ValidIds, last: int, rows: list[tuple[int, int]], seen: ValidIds) -> None:
    assert write_ids_seen("d.t", valid, last, rows) == ValidWriteIds("d.t", seen)


@pytest.mark.slow
@given(id_lists())
def test_bits_tell_which_ids_are_aborted(ids: ValidIds) -> None:
    bits = aborted_bits(ids.exceptions, ids.aborted_ids)
    assert ids_with_bits(ids.high_water_mark, ids.exceptions, bits) == ids
    assert ids_with_bits(9, [3, 4], None) == ValidIds(9, (3, 4))
    assert [number for number in ids.exceptions if ids.is_aborted(number)] == list(ids.aborted_ids)


def test_who_wrote_it_sees_its_own_id() -> None:
    ids = ValidIds(9, (5, 7), (6,))
    assert ids.with_own(7) == ValidIds(9, (5,), (6,))
    assert ids.with_own(6) == ValidIds(9, (5, 7))
    assert ids.with_own(8) == ids


def test_bits_of_aborted_ids() -> None:
    assert aborted_bits([], []) == b""
    assert aborted_bits([4, 5, 6], []) == b""
    assert aborted_bits([4, 5, 6], [5]) == b"\x02"
    assert aborted_bits(list(range(1, 18)), [1, 9, 17]) == b"\x01\x01\x01"
    assert aborted_bits([ID_MAX], [ID_MAX]) == b"\x01"
