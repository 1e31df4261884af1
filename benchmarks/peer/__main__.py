"""`python -m benchmarks.peer`: measure, print, and save as JSON, chart and tables (see --help)."""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from benchmarks.peer.changes import Changes
from benchmarks.peer.chart import svg
from benchmarks.peer.content import FOR_WRITERS, QUICK, Sizes
from benchmarks.peer.loads import many_readers, mixed
from benchmarks.peer.measuring import Operation, Pace, Steps, measured, median
from benchmarks.peer.reads import reads
from benchmarks.peer.results import MIB, WRITING_CLIENTS, WRITING_GOALS, Row, as_json, row_from, row_of
from benchmarks.peer.sides import TITLES, Bench, running
from benchmarks.peer.starts import SIDES as STARTING_SIDES
from benchmarks.peer.starts import Starts
from benchmarks.peer.tables import markdown, writing_table
from benchmarks.peer.txns import many_held, pairs
from benchmarks.peer.writers import writers
from tests.oracle.peer import PeerUnavailable
from tools.marked import with_lines

DOCS = Path(__file__).parents[2] / "docs"
TABLES = DOCS / "reference" / "measurements.md"
BEGIN, WRITES_BEGIN = "<!-- peer: make bench-peer -->", "<!-- writes: make bench-peer -->"
CHART = "![how many times as fast as the real metastore](../peer.svg)"
QUICK_PACE = Pace(rounds=3, seconds=0.5, single_seconds=0.1, side_seconds_max=10.0)


def main() -> None:
    options = _options()
    sizes = FOR_WRITERS if options.writes else QUICK if options.quick else Sizes()
    pace = QUICK_PACE if options.quick else Pace(seconds=1.5) if options.writes else Pace()
    pace = replace(pace, rounds=options.rounds or pace.rounds, seconds=options.seconds or pace.seconds)
    begin = perf_counter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    with tempfile.TemporaryDirectory(prefix="hms-bench-") as folder:
        try:
            with running(Path(folder), sizes, _say, options.gateways) as bench:
                rows, memory = _measure(bench, pace, options)
        except PeerUnavailable as error:
            sys.exit(f"the real metastore cannot run here: {error}")
    _say(f"took {perf_counter() - begin:.0f} s")
    of_writers = [row for row in rows if row.operation in WRITING_GOALS]
    if of_writers:
        print(writing_table(of_writers))
        _save_writers(options, of_writers)
    if not options.writes:
        others = [row for row in rows if row not in of_writers]
        text = markdown(others, memory)
        print(text)
        _save(options, others, memory, text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller tables, fewer and shorter rounds")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="operations whose name has TEXT")
    parser.add_argument("--writes", action="store_true", help="the changes by many clients only, on small tables")
    parser.add_argument("--clients", type=int, action="append", help="numbers of clients; default 1, 4, 16 and 64")
    parser.add_argument("--sides", default=",".join(TITLES), help="comma-separated, default %(default)s")
    parser.add_argument("--rounds", type=int, help="rounds that count; default 5, with --quick 3")
    parser.add_argument("--seconds", type=float, help="what a round takes where many clients call at once")
    parser.add_argument("--gateways", type=int, default=1, help="of ours on the database, for changes by many clients")
    parser.add_argument("--save", type=Path, help="folder for peer.json and peer.svg; a full run saves to docs/")
    parser.add_argument(
        "--save-writes", action="store_true", help="put changes by many clients that were measured into docs/"
    )
    return parser.parse_args()


def _measure(bench: Bench, pace: Pace, options: argparse.Namespace) -> tuple[list[Row], dict[str, dict[str, float]]]:
    wanted_sides = [bench.sides[name] for name in options.sides.split(",")]
    starts = Starts()
    rows = []
    for operation in _operations(bench, options, starts):
        if options.only and not any(text in operation.name for text in options.only):
            continue
        begin = perf_counter()
        able = [side for side in wanted_sides if side.name in operation.sides]
        row = row_of(operation.name, operation.clients, measured(operation, bench, pace, able, _say))
        rows.append(row)
        _say(f"{operation.name}, {operation.clients}: {_shown(row)} ({perf_counter() - begin:.1f} s)")
    memory = {
        "idle": {name: median(seen) / MIB for name, seen in starts.idle_bytes.items()},
        "after the whole run": {side.name: side.resident_bytes() / MIB for side in wanted_sides},
    }
    return rows, {what: by_side for what, by_side in memory.items() if by_side}


def _shown(row: Row) -> str:
    return "; ".join(
        f"{name} {of_side.median_ms:.2f}/{of_side.p99_ms:.2f} ms {of_side.per_second:.0f}/s"
        f" {of_side.cpu_us or 0:.0f} us ({row.ratios.get(name, 1):.1f})"
        for name, of_side in row.figures.items()
    )


def _operations(bench: Bench, options: argparse.Namespace, starts: Starts) -> Iterator[Operation]:
    """Reads before changes, and what leaves most behind last."""
    sizes = bench.sizes
    yield from writers(options.clients or WRITING_CLIENTS)
    if options.writes:
        return
    clients: Sequence[int] = options.clients or ((1, 16, 64) if options.quick else (1, 4, 16, 64))
    yield from many_readers(clients)
    yield from reads(sizes)
    yield mixed(max(clients), sizes)
    yield from pairs(clients)
    yield from Changes(sizes).operations((1, 100, 1_000) if options.quick else (1, 100, 1_000, 10_000))
    yield Steps("start to first answer", starts.steps, sides=STARTING_SIDES)
    yield from many_held()


def _save_writers(options: argparse.Namespace, rows: list[Row]) -> None:
    """Beside those that were measured before, each with its day: one row takes minutes, all of them an hour."""
    is_whole = not (options.quick or options.writes or options.only or options.clients)
    if not (options.save_writes or is_whole):
        return
    path = DOCS / "peer_writes.json"
    saved = json.loads(path.read_text()) if path.exists() else []
    known = {(each["operation"], each["clients"]): each for each in saved}
    day = datetime.now(UTC).date().isoformat()
    known |= {(row.operation, row.clients): {"day": day, **asdict(row)} for row in rows}
    order = [(name, clients) for name in WRITING_GOALS for clients in WRITING_CLIENTS]
    kept = [known[key] for key in order if key in known]
    path.write_text(json.dumps(kept, indent=1) + "\n")
    without_day = [row_from({name: value for name, value in each.items() if name != "day"}) for each in kept]
    _write(WRITES_BEGIN, writing_table(without_day))


def _save(options: argparse.Namespace, rows: list[Row], memory: dict[str, dict[str, float]], text: str) -> None:
    is_whole = not (options.quick or options.only or options.clients or options.sides != ",".join(TITLES))
    folder = options.save or (DOCS if is_whole else None)
    if folder is None:
        return
    machine = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": datetime.now(UTC).date().isoformat(),
        "sides": TITLES,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peer.json").write_text(json.dumps(as_json(machine, rows, memory), indent=1) + "\n")
    (folder / "peer.svg").write_text(svg(rows))
    if folder == DOCS:
        _write(BEGIN, f"{CHART}\n\n{text}")


def _write(marker: str, text: str) -> None:
    TABLES.write_text(with_lines(TABLES.read_text(), marker, [text.strip()]))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
