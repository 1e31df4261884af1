"""Lists of elements that have to do with each other are still worked off in time proportional to their number."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hms_gateway.rpc.structs import (
    FieldSchema,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Struct,
)
from tests.attacks.processor_calls import answered
from tests.attacks.test_work_is_linear import is_linear
from tests.attacks.work import Watched, open_watched_metastore
from tests.support.catalog import new_table

SIZES = (50, 100, 200)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with open_watched_metastore(tmp_path_factory.mktemp("elements")) as opened:
        yield opened


def counted(watched: Watched, calls: Callable[[int], list[tuple[str, tuple[Any, ...]]]]) -> list[list[int]]:
    """The steps of each call, by the number of elements; those of fewest elements are made twice."""
    steps = []
    for size in (SIZES[0] - 1, *SIZES):
        each = []
        for method, arguments in calls(size):
            with watched.work:
                outcome = answered(watched.metastore, method, *arguments)
            assert outcome == ("ok", None)
            each.append(watched.work.steps)
        steps.append(each)
    return [list(by_size) for by_size in zip(*steps[1:], strict=True)]


def granting(count: int) -> list[tuple[str, tuple[Any, ...]]]:
    on = HiveObjectRef(HiveObjectType.TABLE, "default", "other")
    given = PrivilegeGrantInfo("SELECT,INSERT", 0, "ann", PrincipalType.USER, False)
    bag = PrivilegeBag(
        [HiveObjectPrivilege(on, f"user{number}", PrincipalType.USER, given, "x") for number in range(count)]
    )
    return [("grant_privileges", (bag,)), ("revoke_privileges", (bag,))]


def constraining(made: Callable[[str, int], Struct], lists: int) -> Any:
    def calls(count: int) -> list[tuple[str, tuple[Any, ...]]]:
        name = f"{made.__name__.strip('_')}_{count}"
        table = new_table(name)
        table.sd.cols = [FieldSchema(f"c{number}", "int") for number in range(count)]
        constraints: list[Any] = [None] * 6
        constraints[lists] = [made(name, number) for number in range(count)]
        return [("create_table_with_constraints", (table, *constraints)), ("drop_table", ("default", name, False))]

    return calls


def primary_key(table: str, number: int) -> Struct:
    return SQLPrimaryKey("default", table, f"c{number}", number + 1, "pk", True, True, True)


def not_null(table: str, number: int) -> Struct:
    return SQLNotNullConstraint("hive", "default", table, f"c{number}", None, True, True, True)


def of_one_column(table: str, number: int) -> Struct:
    return SQLNotNullConstraint("hive", "default", table, "c0", None, True, True, True)


def unique(table: str, number: int) -> Struct:
    return SQLUniqueConstraint("hive", "default", table, f"c{number}", 1, f"uk{number}", True, True, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "calls",
    [
        granting,
        constraining(primary_key, 0),
        constraining(unique, 2),
        constraining(not_null, 3),
        constraining(of_one_column, 3),
    ],
)
def test_twice_as_many_elements_are_at_most_twice_the_work(watched: Watched, calls: Any) -> None:
    for steps in counted(watched, calls):
        assert is_linear(steps), steps
