"""Figures as the benchmarks print them."""

import statistics
import sys
from collections.abc import Callable, Sequence
from time import perf_counter


def median_seconds(work: Callable[[], object], runs: int) -> float:
    """The median time of `work` over `runs`, after one run that is not counted."""
    work()
    times = []
    for _ in range(runs):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return statistics.median(times)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Markdown table, so that it can be copied into docs/performance.md as it is."""
    print(f"\n## {title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()
