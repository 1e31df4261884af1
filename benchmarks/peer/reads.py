"""Operations that read, one client, and the first read after a change."""

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.peer.caller import Caller, Prepared
from benchmarks.peer.content import DATABASE, Sizes, partition_name, values
from benchmarks.peer.measuring import Single
from benchmarks.peer.sides import Side

# What max_parts and max_tables mean by "all" in 2.3.
ALL = -1


def reads(sizes: Sizes) -> Iterator[Single]:
    yield call("get_all_databases", "get_all_databases")
    yield call("get_database", "get_database", DATABASE)
    yield call("get_table, 10 columns", "get_table", DATABASE, "wide_10")
    yield call("get_table, 1,000 columns", "get_table", DATABASE, "wide_1000")
    for count in sizes.tables:
        yield call(f"get_all_tables, {count:,}", "get_all_tables", f"many_{count}")
        yield call(f"get_tables by pattern, of {count:,}", "get_tables", f"many_{count}", "*99|*00")
    for count in sizes.partitions:
        yield call(f"get_partition_names, {count:,}", "get_partition_names", DATABASE, f"parts_{count}", ALL)
        yield call(f"get_partitions, {count:,}", "get_partitions", DATABASE, f"parts_{count}", ALL)
        if count in (1_000, 10_000):
            yield after_a_change(count)
    yield from searches(max(sizes.partitions))


def searches(count: int) -> Iterator[Single]:
    """Filters and names in the largest table."""
    table, middle = f"parts_{count}", values(count // 2)
    for kind, half in (
        ("string", f'name < "{middle[0]}"'),
        ("int", f"number < {middle[1]}"),
        ("date", f'day < "{middle[2]}"'),
    ):
        what = f"of {count:,} ({kind})"
        yield different(f"get_partitions_by_filter, 1 {what}", count, "get_partitions_by_filter", one_hit(table, kind))
        yield call(f"get_partitions_by_filter, half {what}", "get_partitions_by_filter", DATABASE, table, half, ALL)
    wanted = min(1_000, count)
    names = [partition_name(number) for number in range(0, count, count // wanted)]
    what = f"get_partitions_by_names, {wanted:,} of {count:,}"
    yield call(what, "get_partitions_by_names", DATABASE, table, names)
    what = f"get_partition, of {count:,}"
    yield different(what, count, "get_partition", lambda number: (DATABASE, table, values(number)))


def one_hit(table: str, kind: str) -> Callable[[int], tuple[Any, ...]]:
    """Arguments that select the partition with a number."""

    def arguments(number: int) -> tuple[Any, ...]:
        name, _, day = values(number)
        filters = {"string": f'name = "{name}"', "int": f"number = {number}", "date": f'day = "{day}"'}
        return DATABASE, table, filters[kind], ALL

    return arguments


def different(name: str, count: int, method: str, arguments: Callable[[int], tuple[Any, ...]]) -> Single:
    """Something else each time, from the upper half of `count`, where all numbers have as many digits."""
    half = count // 2

    def varied(caller: Caller, turn: int) -> bytes:
        return caller.speech.request(method, *arguments(half + turn % half))

    return Single(name, lambda side, caller: caller.prepare_and_count(method, *arguments(half)), varied=varied)


def call(name: str, method: str, *arguments: Any) -> Single:
    return Single(name, lambda side, caller: caller.prepare_and_count(method, *arguments))


def after_a_change(count: int) -> Single:
    """A parameter of one partition is changed before each read, to another text of the same length."""
    table = f"parts_{count}"

    def prepare(side: Side, caller: Caller) -> tuple[Prepared, int]:
        _change(side, caller, table)()
        return caller.prepare_and_count("get_partitions", DATABASE, table, ALL)

    def change(side: Side, caller: Caller) -> Callable[[], None]:
        return _change(side, caller, table)

    return Single(f"get_partitions, {count:,}, first after a change", prepare, change)


def _change(side: Side, caller: Caller, table: str) -> Callable[[], None]:
    partition = caller.call("get_partition", DATABASE, table, values(0))
    number = 100_000

    def change() -> None:
        nonlocal number
        number += 1
        partition.parameters["round"] = str(number)
        caller.call("alter_partition", DATABASE, table, partition)

    return change
