"""Appends events one after the other to a store and prints the id of each that is committed."""

import sys

from hms_gateway.metastore.ports.store import Event
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store


def main(url: str, count: int) -> None:
    store = open_store(url, SystemClock(), Limits())
    for _ in range(count):
        event_id = store.write(lambda transaction: transaction.append_event(Event("X", "d", None, "{}")))
        print(event_id, flush=True)
    store.close()


main(sys.argv[1], int(sys.argv[2]))
