"""Reads by many clients at once, and a mix of reads beside writers, as Spark drivers make it."""

from collections.abc import Iterator, Sequence

from benchmarks.peer.caller import Caller
from benchmarks.peer.content import DATABASE, Sizes, partition_name, table, values
from benchmarks.peer.load import MakeScript, Script, Step, repeating
from benchmarks.peer.measuring import Loaded, Operation
from benchmarks.peer.sides import Side

MIXED = "mixed load"
WRITERS = 2
WRITER_PACE_SECONDS = 0.05


def many_readers(clients: Sequence[int]) -> Iterator[Operation]:
    for count in clients:
        yield Loaded("get_table", count, lambda side, caller, n: _repeated(caller, n, "get_table", DATABASE, "wide_10"))
    for count in clients:
        yield Loaded("get_database", count, lambda side, caller, n: _repeated(caller, n, "get_database", DATABASE))


def mixed(clients: int, sizes: Sizes) -> Operation:
    """Latencies are those of get_table, the rate is of all calls. Two writers each change a table 20 times a second."""
    return Loaded(f"get_table in a {MIXED}", clients, lambda side, caller, n: _mix(side, caller, n, sizes), "get_table")


def _repeated(caller: Caller, clients: int, method: str, *arguments: str) -> Sequence[MakeScript]:
    prepared = caller.prepare(method, *arguments)
    return [lambda client: repeating([Step(*prepared, "call")])] * clients


def _mix(side: Side, caller: Caller, clients: int, sizes: Sizes) -> Sequence[MakeScript]:
    """Of 20 calls 10 are get_table, 6 get_database and 4 others."""
    big = f"parts_{max(sizes.partitions)}"
    names = [partition_name(number) for number in range(10)]
    read = Step(*caller.prepare("get_table", DATABASE, "wide_10"), "get_table")
    look = Step(*caller.prepare("get_database", DATABASE), "get_database")
    others = [
        Step(*caller.prepare("get_partition", DATABASE, big, values(7)), "other"),
        Step(*caller.prepare("get_partitions_by_names", DATABASE, big, names), "other"),
        Step(*caller.prepare("get_all_tables", f"many_{sizes.tables[0]}"), "other"),
        Step(*caller.prepare("get_partition_names", DATABASE, f"parts_{sizes.partitions[0]}", -1), "other"),
    ]
    one, two, three, four = others
    steps = [read, look, read, one, read, look, read, look, read, two]
    steps += [read, look, read, three, read, look, read, four, look, read]
    readers = [lambda client: repeating(steps, client * 7)] * clients
    return [*readers, *(_writer(side, caller, number) for number in range(WRITERS))]


def _writer(side: Side, caller: Caller, number: int) -> MakeScript:
    name = f"written_{number}"
    made = table(side.warehouse, DATABASE, name)
    if name not in caller.call("get_tables", DATABASE, name):
        caller.call("create_table", made)
    steps = []
    for value in ("1", "2"):
        made.parameters["round"] = value
        request = caller.speech.request("alter_table", DATABASE, name, made)
        steps.append(Step(request, caller.seen(request)[0], "write", WRITER_PACE_SECONDS))

    def script() -> Script:
        yield from repeating(steps)

    return lambda client: script()
