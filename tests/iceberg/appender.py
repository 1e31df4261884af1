"""A writer in a process of its own: appends rows to a table, or stops for ever while it holds the lock.

appender.py URI TABLE FIRST COUNT          appends COUNT rows from FIRST on, each in a commit of its own
appender.py URI TABLE FIRST stop           takes the lock, says "locked" and waits to be killed
"""

import signal
import sys
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import CommitFailedException

PROPERTIES = {"lock-check-min-wait-time": "0.02", "lock-check-max-wait-time": "0.2", "lock-check-retries": "200"}


class StoppingCatalog(HiveCatalog):
    """Stops where a commit holds the lock and has read the table."""

    def _update_and_stage_table(self, *arguments: Any, **named: Any) -> Any:
        print("locked", flush=True)
        signal.pause()
        raise AssertionError("it was to be killed")


def main() -> None:
    uri, table_name, first, count = sys.argv[1:]
    catalog_class = StoppingCatalog if count == "stop" else HiveCatalog
    catalog = catalog_class("appender", uri=uri, **PROPERTIES)
    numbers = [int(first)] if count == "stop" else range(int(first), int(first) + int(count))
    for number in numbers:
        append(catalog, table_name, number)


def append(catalog: HiveCatalog, table_name: str, number: int) -> None:
    """One commit. Others commit in between, so it may have to be tried on a newer table."""
    row = pa.table({"id": pa.array([number], pa.int64()), "name": pa.array([f"row {number}"])})
    while True:
        try:
            catalog.load_table(table_name).append(row)
        except CommitFailedException:
            continue
        return


if __name__ == "__main__":
    main()
