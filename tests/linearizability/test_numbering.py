"""Histories of counters that are known to be right or wrong."""

import pytest

from tests.linearizability.numbering import NotInOrder, Told, check_dense, check_order


def test_numbers_that_grow_with_time() -> None:
    check_order([Told(1, 0, 1), Told(2, 2, 3), Told(3, 4, 5)])


def test_calls_that_overlap_may_be_told_in_any_order() -> None:
    check_order([Told(2, 0, 9), Told(1, 5, 9), Told(3, 8, 12)])


def test_a_smaller_number_after_a_larger_one() -> None:
    with pytest.raises(NotInOrder, match=r"number=1.*after.*number=2"):
        check_order([Told(2, 0, 1), Told(1, 2, 3)])


def test_a_smaller_number_after_one_that_was_told_long_ago() -> None:
    with pytest.raises(NotInOrder):
        check_order([Told(5, 0, 1), Told(2, 0, 9), Told(3, 0, 9), Told(4, 2, 9)])


def test_a_number_that_is_given_twice() -> None:
    with pytest.raises(NotInOrder, match="given twice"):
        check_order([Told(1, 0, 9), Told(1, 0, 9)])


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_what_is_seen_while_a_number_is_given(seen: int) -> None:
    told = [Told(1, 0, 1), Told(2, 2, 6), Told(seen, 3, 4, is_new=False)]
    if seen == 0:
        with pytest.raises(NotInOrder):
            check_order(told)
    else:
        check_order(told)


def test_a_number_is_not_seen_before_it_is_given() -> None:
    with pytest.raises(NotInOrder):
        check_order([Told(2, 0, 1, is_new=False), Told(2, 2, 3)])


def test_what_was_seen_is_not_unseen() -> None:
    with pytest.raises(NotInOrder):
        check_order([Told(1, 0, 9), Told(2, 0, 9), Told(2, 1, 2, is_new=False), Told(1, 3, 4, is_new=False)])
    check_order([Told(1, 0, 9), Told(2, 0, 9), Told(1, 1, 2, is_new=False), Told(2, 3, 4, is_new=False)])


def test_gaps() -> None:
    check_dense([3, 1, 2], 1)
    check_dense([], 1)
    for wrong in ([1, 3], [2, 3], [1, 1, 2]):
        with pytest.raises(NotInOrder):
            check_dense(wrong, 1)
