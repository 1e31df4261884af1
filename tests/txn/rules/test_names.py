"""Names of locked objects."""

import pytest

from hms_gateway.txn.rules.names import Target, normalize_partition, target


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("D", "T", "P=A"), ("d", "t", "p=A")),
        ((" d ", "T\t", None), ("d", "t", None)),
        (("d", None, "p=1"), ("d", None, None)),
        (("d", "", ""), ("d", None, None)),
        ((None, None, None), ("", None, None)),
        (("d", "t", "DS=2024-01-01/HR=X=Y/plain"), ("d", "t", "ds=2024-01-01/hr=X=Y/plain")),
    ],
)
def test_the_object_behind_the_names(given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert target(*given) == Target(*expected)


def test_values_of_partitions_keep_their_case() -> None:
    assert normalize_partition("A=B/C=D") == "a=B/c=D"


def test_how_an_object_is_shown() -> None:
    shown = [str(target("d")), str(target("d", "t")), str(target("d", "t", "p=1"))]
    assert shown == ["d", "d.t", "d.t/p=1"]
