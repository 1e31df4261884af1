"""Turns as figures: a row for each operation and number of clients, with ratios to theirs, and the goals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Final

from benchmarks.peer.loads import MIXED
from benchmarks.peer.measuring import Turn, median, percentile
from benchmarks.peer.sides import BRIDGE, OURS, SQLITE, THEIRS
from benchmarks.peer.usage import Used
from benchmarks.peer.writers import (
    ADD_TO_MANY,
    ADD_TO_ONE,
    ALTER_PARTITIONS,
    CREATE_DROP,
    GET_ALTER,
    ICEBERG,
    LOCK_UNLOCK,
    OPEN_COMMIT,
    READING_ALONE,
    READING_BESIDE,
)

# Beyond this share of a core the load generator is what limits the rate.
BUSY: Final = 0.9
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the rounds of each round's median, 99th percentile and rate; CPU of all rounds together."""

    median_ms: float
    p99_ms: float
    per_second: float
    cpu_us: float | None
    generator_busy: float | None
    rounds: int
    database_us: float | None = None  # of `cpu_us`
    waits: float | None = None  # of the database server for each


@dataclass(frozen=True, slots=True)
class Row:
    """`ratios` are how many times faster: calls a second with many clients, medians with one, p99 in the mixed load."""

    operation: str
    clients: int
    figures: dict[str, Figures]
    ratios: dict[str, float] = field(default_factory=dict)
    cpu_ratios: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Goal:
    text: str
    operation: str
    side: str
    at_least: float
    clients: int = 1


GOALS: Final = (
    Goal("get_table, 16 clients", "get_table", OURS, 30, 16),
    Goal("get_database, 16 clients", "get_database", OURS, 30, 16),
    Goal("get_table through the bridge, 16 clients", "get_table", BRIDGE, 8, 16),
    Goal("get_database through the bridge, 16 clients", "get_database", BRIDGE, 8, 16),
    Goal("p99 of get_table, 64 clients, mixed load", f"get_table in a {MIXED}", OURS, 10, 64),
    Goal("get_partitions of 1,000, nothing cached", "get_partitions, 1,000, first after a change", OURS, 5),
    Goal("get_partitions of 10,000, nothing cached", "get_partitions, 10,000, first after a change", OURS, 5),
    Goal("get_partitions of 1,000, cached", "get_partitions, 1,000", OURS, 8),
    Goal("get_partitions of 10,000, cached", "get_partitions, 10,000", OURS, 8),
    Goal("filter on a string, 1 of 100,000", "get_partitions_by_filter, 1 of 100,000 (string)", OURS, 10),
    Goal("filter on an int, 1 of 100,000", "get_partitions_by_filter, 1 of 100,000 (int)", OURS, 10),
    Goal("filter on a date, 1 of 100,000", "get_partitions_by_filter, 1 of 100,000 (date)", OURS, 10),
    Goal("add_partitions of 1,000", "add_partitions, 1,000, empty table", OURS, 50),
    Goal("add_partitions of 1,000, big table", "add_partitions, 1,000, table of 100,000", OURS, 50),
    Goal("rename with 10,000 partitions", "alter_table, rename, 10,000 partitions", OURS, 100),
    Goal("cascade with 10,000 partitions", "alter_table_with_cascade, 10,000 partitions", OURS, 100),
    Goal("open + commit, 64 clients", "open_txns + commit_txn", OURS, 10, 64),
    Goal("lock + unlock, 64 clients", "lock + unlock", OURS, 10, 64),
    Goal("open + commit, 64 clients, SQLite", "open_txns + commit_txn", SQLITE, 5, 64),
    Goal("lock + unlock, 64 clients, SQLite", "lock + unlock", SQLITE, 5, 64),
    Goal("start to first answer", "start to first answer", OURS, 10),
)
# At 1, 16 and 64 clients.
WRITING_GOALS: Final[Mapping[str, tuple[float, ...]]] = {
    CREATE_DROP: (2, 4, 4),
    ADD_TO_ONE: (2, 4, 4),
    ADD_TO_MANY: (2, 4, 4),
    GET_ALTER: (2, 5, 5),
    ALTER_PARTITIONS: (5, 8, 8),
    OPEN_COMMIT: (1.5, 5, 6),
    LOCK_UNLOCK: (1.5, 5, 6),
    ICEBERG: (1.5, 4, 5),
    READING_ALONE: (),
    READING_BESIDE: (),
}
WRITING_CLIENTS: Final = (1, 16, 64)


def writing_goal(row: "Row") -> float | None:
    """How many times theirs the Thrift port has to be."""
    goals = dict(zip(WRITING_CLIENTS, WRITING_GOALS.get(row.operation, ()), strict=False))
    return goals.get(row.clients)


def row_of(operation: str, clients: int, turns: Mapping[str, Sequence[Turn]]) -> Row:
    figures = {name: figures_of(of_side) for name, of_side in turns.items() if any(turn.latencies for turn in of_side)}
    row = Row(operation, clients, figures)
    theirs = figures.get(THEIRS)
    if theirs is None:
        return row
    for name, mine in figures.items():
        if name == THEIRS:
            continue
        row.ratios[name] = _times_faster(row, theirs, mine)
        if theirs.cpu_us and mine.cpu_us:
            row.cpu_ratios[name] = theirs.cpu_us / mine.cpu_us
    return row


def figures_of(turns: Sequence[Turn]) -> Figures:
    filled = [turn for turn in turns if turn.latencies]
    units = sum(turn.units for turn in filled)
    all_used = [turn.used for turn in filled if turn.used is not None]
    used = reduce(Used.plus, all_used) if all_used and units else None
    busy = [turn.generator_busy for turn in filled if turn.generator_busy is not None]
    return Figures(
        median_ms=1000 * median([percentile(turn.latencies, 0.5) for turn in filled]),
        p99_ms=1000 * median([percentile(turn.latencies, 0.99) for turn in filled]),
        per_second=median([turn.per_second for turn in filled]),
        cpu_us=used and 1e6 * used.cpu_seconds / units,
        generator_busy=median(busy) if busy else None,
        rounds=len(filled),
        database_us=used and 1e6 * used.database_seconds / units,
        waits=used and used.database_waits / units,
    )


def goals_of(rows: Sequence[Row]) -> Iterator[tuple[Goal, float | None]]:
    """Each goal with what was measured, None where it was not."""
    by_name = {(row.operation, row.clients): row for row in rows}
    for goal in GOALS:
        row = by_name.get((goal.operation, goal.clients))
        yield goal, None if row is None else row.ratios.get(goal.side)


def as_json(
    machine: Mapping[str, Any], rows: Sequence[Row], memory: Mapping[str, Mapping[str, float]]
) -> dict[str, Any]:
    goals = [{**asdict(goal), "measured": ratio} for goal, ratio in goals_of(rows)]
    return {"machine": machine, "rows": [asdict(row) for row in rows], "memory_mib": memory, "goals": goals}


def row_from(saved: Mapping[str, Any]) -> Row:
    """What `asdict` made of a row."""
    return Row(**{**saved, "figures": {name: Figures(**figures) for name, figures in saved["figures"].items()}})


def _times_faster(row: Row, theirs: Figures, mine: Figures) -> float:
    if MIXED in row.operation:
        return theirs.p99_ms / mine.p99_ms
    return mine.per_second / theirs.per_second if row.clients > 1 else theirs.median_ms / mine.median_ms
