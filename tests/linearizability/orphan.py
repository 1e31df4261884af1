"""A program that takes locks, tells, and keeps them alive until it is killed.

Arguments: URL, user, password. It prints the ids of its transaction and lock, and then the time of each heartbeat, in
nanoseconds of the clock that all processes share, before it is sent.
"""

import sys
import time

from hms_gateway.rpc.structs import ThriftException
from tests.linearizability.services import GatewayServices


def main(*account: str) -> None:
    services = GatewayServices(*account)
    (txn_id,) = services.open(1)
    place = ("default", "t", None)
    of_txn, _ = services.lock(txn_id, False, [(place, "EXCLUSIVE", "UPDATE")])
    alone, _ = services.lock(0, False, [(("default", "u", None), "EXCLUSIVE", None)])
    print(txn_id, of_txn, alone, flush=True)
    while True:
        print(time.monotonic_ns(), flush=True)
        try:
            services.heartbeat(alone, txn_id)
        except ThriftException:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
