"""docs/reference/measurements.md has the tables of the figures that are saved beside it."""

import json

from benchmarks.peer import __main__ as bench
from benchmarks.peer.results import row_from
from benchmarks.peer.tables import writing_table
from tools.marked import with_lines


def test_the_table_of_changes_is_that_of_the_saved_figures():
    saved = json.loads((bench.DOCS / "peer_writes.json").read_text())
    rows = [row_from({name: value for name, value in each.items() if name != "day"}) for each in saved]
    document = bench.TABLES.read_text()
    assert document == with_lines(document, bench.WRITES_BEGIN, [writing_table(rows).strip()])


def test_both_markers_are_there():
    document = bench.TABLES.read_text()
    assert all(with_lines(document, marker, []) != document for marker in (bench.BEGIN, bench.WRITES_BEGIN))
