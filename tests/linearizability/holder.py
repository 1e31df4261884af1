"""A program that leases a table and writes to it under the lease for as long as it is let, one line for each write.

Arguments: URL, user, password, `header` or `context` for how it presents the lease, seconds of the lease, number of
refusals after which it ends.
"""

import sys
from typing import Any

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import EnvironmentContext, LeaseObject, ThriftException
from tests.support.server import trusting


def main(url: str, user: str, password: str, presents: str, seconds: str, refusals_max: str) -> None:
    account: Any = (url, (user, password), trusting())
    with MetastoreClient(*account) as client:
        lease_id = client.call("grab_lease", [LeaseObject("default", "t", None, "x")], int(seconds), 10)
        table = client.call("get_table", "default", "t")
    print("granted", lease_id, flush=True)
    headers = {"X-HMS-Lease-Id": str(lease_id)} if presents == "header" else {}
    context = EnvironmentContext({"hms.lease.id": str(lease_id)} if presents == "context" else {})
    refusals = number = 0
    with MetastoreClient(*account, headers=headers) as client:
        while refusals < int(refusals_max):
            number += 1
            table.parameters["writer"] = f"holder {number}"
            try:
                client.call("alter_table_with_environment_context", "default", "t", table, context)
                print("written", number, flush=True)
            except ThriftException as error:
                refusals += 1
                print("refused", number, type(error).__name__, error.message, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
