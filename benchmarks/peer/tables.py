"""The results as Markdown: goals, memory, and every row."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from benchmarks.peer.results import BUSY, Figures, Row, goals_of, writing_goal
from benchmarks.peer.sides import BRIDGE, OURS, PORT, SQLITE, SQLITE_PORT, THEIRS, TWO_PORT

HEADINGS: Final = {THEIRS: "theirs", OURS: "ours", BRIDGE: "bridge", SQLITE: "SQLite"}
SIDES: Final = tuple(HEADINGS)


def markdown(rows: Sequence[Row], memory: Mapping[str, Mapping[str, float]]) -> str:
    return "\n".join([*_goals(rows, memory), "", *_rates(rows), "", *_latencies(rows), "", *_memory(memory)]) + "\n"


def writing_table(rows: Sequence[Row]) -> str:
    """Many clients that change things, each side over binary TCP."""
    lines = [
        *_head(
            *("changes a second", "clients", "theirs", "ours", "ratio", "goal", "two processes", "ratio", "SQLite"),
            *("CPU, µs: theirs + PostgreSQL", "ours + PostgreSQL", "waits: theirs", "ours"),
            *("p99, ms: theirs", "ours", "load generator busy"),
        )
    ]
    for row in rows:
        theirs, ours = row.figures.get(THEIRS), row.figures.get(PORT)
        goal, both = writing_goal(row), [theirs, ours]
        lines.append(
            _line(
                row.operation,
                row.clients,
                *map(_rate, both),
                _beside_goal(row.ratios.get(PORT), goal),
                "" if goal is None else f"{goal:g} ×",
                _rate(row.figures.get(TWO_PORT)),
                _beside_goal(row.ratios.get(TWO_PORT), goal),
                _rate(row.figures.get(SQLITE_PORT)),
                *map(_cpu_of_two, both),
                *("" if one is None or one.waits is None else f"{one.waits:.1f}" for one in both),
                *("" if one is None else _short(one.p99_ms) for one in both),
                " / ".join("" if one is None else f"{one.generator_busy or 0:.0%}" for one in both),
            )
        )
    return "\n".join(lines) + "\n"


def _beside_goal(ratio: float | None, goal: float | None) -> str:
    if ratio is None:
        return ""
    return _times(ratio) + (" short" if goal and ratio < goal else "")


def _cpu_of_two(figures: Figures | None) -> str:
    if figures is None or figures.cpu_us is None:
        return ""
    of_database = figures.database_us or 0
    return f"{figures.cpu_us - of_database:,.0f} + {of_database:,.0f}"


def _goals(rows: Sequence[Row], memory: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    yield from _head("goal", "at least", "measured", "")
    for goal, ratio in goals_of(rows):
        if ratio is not None:
            yield _line(goal.text, f"{goal.at_least:g} ×", _times(ratio), "" if ratio >= goal.at_least else "short")
    for what, by_side in memory.items():
        if by_side.get(OURS) and by_side.get(THEIRS):
            share = by_side[OURS] / by_side[THEIRS]
            yield _line(f"resident memory, {what}", "1/3", f"1/{1 / share:.1f}", "" if share <= 1 / 3 else "short")


def _rates(rows: Sequence[Row]) -> Iterator[str]:
    """Many clients: calls a second, latencies, CPU of the servers for each call."""
    loads = [row for row in rows if any(figures.generator_busy is not None for figures in row.figures.values())]
    if not loads:
        return
    yield from _head(
        "calls a second", "clients", *HEADINGS.values(), "ours", "bridge", "SQLite", "CPU: ours", "bridge", "SQLite"
    )
    for row in loads:
        rates = [_rate(row.figures.get(name)) for name in SIDES]
        yield _line(row.operation, row.clients, *rates, *_ratios(row.ratios), *_ratios(row.cpu_ratios))
    yield ""
    yield from _head("median / p99, ms", "clients", *HEADINGS.values())
    for row in loads:
        yield _line(row.operation, row.clients, *(_spread(row.figures.get(name)) for name in SIDES))
    yield ""
    yield from _head("server CPU for each call, µs", "clients", *HEADINGS.values())
    for row in loads:
        yield _line(row.operation, row.clients, *(_cpu(row.figures.get(name)) for name in SIDES))


def _latencies(rows: Sequence[Row]) -> Iterator[str]:
    """One client: medians."""
    single = [row for row in rows if all(figures.generator_busy is None for figures in row.figures.values())]
    if not single:
        return
    yield from _head("one client, median ms", *HEADINGS.values(), "ours", "bridge", "SQLite")
    for row in single:
        medians = [_ms(row.figures.get(name)) for name in SIDES]
        yield _line(row.operation, *medians, *_ratios(row.ratios))


def _memory(memory: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    if memory:
        yield from _head("resident memory, MiB", *HEADINGS.values())
    for what, by_side in memory.items():
        yield _line(what, *(f"{by_side[name]:.0f}" if name in by_side else "" for name in SIDES))


def _head(*titles: object) -> Iterator[str]:
    yield _line(*titles)
    yield "|" + " --- |" * len(titles)


def _line(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _ratios(ratios: Mapping[str, float]) -> list[str]:
    return [_times(ratios[name]) if name in ratios else "" for name in (OURS, BRIDGE, SQLITE)]


def _times(ratio: float) -> str:
    return f"{ratio:,.1f} ×" if ratio < 10 else f"{ratio:,.0f} ×"


def _rate(figures: Figures | None) -> str:
    if figures is None:
        return ""
    mark = "*" if (figures.generator_busy or 0) > BUSY else ""
    return f"{figures.per_second:,.0f}{mark}"


def _spread(figures: Figures | None) -> str:
    return "" if figures is None else f"{_short(figures.median_ms)} / {_short(figures.p99_ms)}"


def _cpu(figures: Figures | None) -> str:
    return "" if figures is None or figures.cpu_us is None else f"{figures.cpu_us:,.0f}"


def _ms(figures: Figures | None) -> str:
    if figures is None:
        return ""
    fewer = f" ({figures.rounds})" if figures.rounds < 5 else ""
    return f"{_short(figures.median_ms)}{fewer}"


def _short(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"
