"""A program that leases a table and writes to it under the lease, one line of output for each write.

Arguments: URL, user, password, seconds of the lease, number of refusals after which it ends.
"""

import sys

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.rpc.structs import LeaseObject, MetaException, ThriftException
from tests.support.server import trusting


def main(url: str, user: str, password: str, seconds: str, refusals_max: str) -> None:
    with MetastoreClient(url, (user, password), trusting()) as client:
        lease_id = client.call("grab_lease", [LeaseObject("default", "t", None, "x")], int(seconds), 0)
        table = client.call("get_table", "default", "t")
    print("granted", lease_id, flush=True)
    with MetastoreClient(url, (user, password), trusting(), headers={"X-HMS-Lease-Id": str(lease_id)}) as client:
        refusals = number = 0
        while refusals < int(refusals_max):
            number += 1
            try:
                table.parameters["writer"] = f"late {number}"
                client.call("alter_table", "default", "t", table)
                print("written", number, flush=True)
            except ThriftException as error:
                refusals += 1
                kind = "refused" if not isinstance(error, MetaException) else "failed"
                print(kind, number, error.message, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
