"""Whether reads of a right that is given and taken have one order."""

import pytest

from tests.handlers.rights.at_once import Step, violation

GIVEN, TAKEN = Step(10, 20, True), Step(30, 40, False)


@pytest.mark.parametrize(
    ("reads", "wrong"),
    [
        ([Step(0, 5, False), Step(21, 25, True), Step(41, 50, False)], None),
        ([Step(0, 5, True)], Step(0, 5, True)),
        ([Step(21, 25, False)], Step(21, 25, False)),
        ([Step(41, 45, True)], Step(41, 45, True)),
        ([Step(11, 12, True), Step(11, 12, False)], None),
        ([Step(11, 12, True), Step(13, 14, False)], Step(13, 14, False)),
        ([Step(31, 32, True), Step(33, 34, False)], None),
        ([Step(31, 32, False), Step(33, 34, True)], Step(33, 34, True)),
    ],
)
def test_a_read_sees_what_held_between_its_start_and_its_end(reads: list[Step], wrong: Step | None) -> None:
    assert violation([GIVEN, TAKEN], reads) == wrong
