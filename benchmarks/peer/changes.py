"""Operations that change tables and partitions, one client."""

from collections.abc import Iterator
from typing import Any

from benchmarks.peer.caller import Caller, Prepared
from benchmarks.peer.content import DATABASE, Sizes, partition_name, partitions, table
from benchmarks.peer.measuring import Operation, Steps
from benchmarks.peer.sides import Bench, Side
from hms_gateway.rpc.structs import DropPartitionsRequest, FieldSchema, RequestPartsSpec

# Partitions with these numbers are in no table before.
FIRST_NEW = 200_000
TIMES = {1: 20, 100: 3}


class Changes:
    """The operations in the order they have to be in: later ones change what earlier ones made."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._next_number = dict[str, int]()
        self._names = dict[tuple[str, int], str]()

    def operations(self, additions: tuple[int, ...]) -> Iterator[Operation]:
        yield Steps("create_table + drop_table", self._create_and_drop)
        for count in additions:
            yield self._one(f"add_partitions, {count:,}, empty table", self._add_to_empty, count)
        if 1_000 in additions:
            yield self._one("drop_partitions_req, 1,000", self._drop, 1_000)
        for count in additions:
            big = max(self._sizes.partitions)
            yield self._one(f"add_partitions, {count:,}, table of {big:,}", self._add_to_big, count)
        for count in self._sizes.partitions:
            if 10 <= count <= 10_000 and count != 100:
                yield self._one(f"alter_table, rename, {count:,} partitions", self._rename, count)
                yield self._one(f"alter_table_with_cascade, {count:,} partitions", self._cascade, count)

    def _one(self, name: str, steps: Any, count: int) -> Operation:
        return Steps(name, lambda bench, side, caller: steps(side, caller, count))

    def _create_and_drop(self, bench: Bench, side: Side, caller: Caller) -> Iterator[list[float]]:
        create = _prepared(caller, "create_table", table(side.warehouse, DATABASE, "short_lived"))
        drop = _prepared(caller, "drop_table", DATABASE, "short_lived", False)
        while True:
            yield [caller.timed(create) + caller.timed(drop) for _ in range(10)]

    def _add_to_empty(self, side: Side, caller: Caller, count: int) -> Iterator[list[float]]:
        number = 0
        while True:
            latencies = []
            for _ in range(TIMES.get(count, 1)):
                made = table(side.warehouse, DATABASE, f"added_{count}_{side.name}_{number}", is_partitioned=True)
                caller.call("create_table", made)
                latencies.append(caller.timed(_prepared(caller, "add_partitions", partitions(made, FIRST_NEW, count))))
                number += 1
            yield latencies

    def _drop(self, side: Side, caller: Caller, count: int) -> Iterator[list[float]]:
        """What `_add_to_empty` added, table by table."""
        tables = sorted(caller.call("get_tables", DATABASE, f"added_{count}_{side.name}_*"))
        names = [partition_name(number) for number in range(FIRST_NEW, FIRST_NEW + count)]
        for name in tables:
            request = DropPartitionsRequest(DATABASE, name, RequestPartsSpec(names=names), False, needResult=False)
            yield [caller.timed(_prepared(caller, "drop_partitions_req", request))]

    def _add_to_big(self, side: Side, caller: Caller, count: int) -> Iterator[list[float]]:
        big = table(side.warehouse, DATABASE, f"parts_{max(self._sizes.partitions)}", is_partitioned=True)
        while True:
            latencies = []
            for _ in range(TIMES.get(count, 1)):
                first = self._next_number.get(side.data, FIRST_NEW)
                self._next_number[side.data] = first + count
                latencies.append(caller.timed(_prepared(caller, "add_partitions", partitions(big, first, count))))
            yield latencies

    def _rename(self, side: Side, caller: Caller, count: int) -> Iterator[list[float]]:
        while True:
            name = self._names.get((side.data, count), f"parts_{count}")
            new_name = f"parts_{count}" if name.endswith("_renamed") else f"parts_{count}_renamed"
            new = caller.call("get_table", DATABASE, name)
            new.tableName = new_name
            seconds = caller.timed(_prepared(caller, "alter_table", DATABASE, name, new))
            self._names[side.data, count] = new_name
            yield [seconds]

    def _cascade(self, side: Side, caller: Caller, count: int) -> Iterator[list[float]]:
        name = self._names.get((side.data, count), f"parts_{count}")
        new = caller.call("get_table", DATABASE, name)
        while True:
            new.sd.cols = [*new.sd.cols, FieldSchema(f"added_{len(new.sd.cols)}", "int", "later")]
            yield [caller.timed(_prepared(caller, "alter_table_with_cascade", DATABASE, name, new, True))]


def _prepared(caller: Caller, method: str, *arguments: Any) -> Prepared:
    """Not called before: replies to changes are short enough to look for their end."""
    return Prepared(caller.speech.request(method, *arguments))
