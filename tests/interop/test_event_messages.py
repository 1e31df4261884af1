"""Messages of events as Hive 3.1.3's own classes read them: tests/oracle/third/ReadEvents.java."""

import base64
import contextlib
import subprocess

import pytest
from thrift.Thrift import TException

from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    NotificationEventRequest,
    ThriftException,
)
from tests.bridge.bridge_process import connected
from tests.faults.changing_calls import ROWS, World
from tests.oracle.peer import SHORT_LIFE, PeerUnavailable
from tests.oracle.third_peer import compiled
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, free_port

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.whole]

# Those that 3.1.3 writes and reads. It has names for CREATE_ISCHEMA and others, but no class that reads them.
READ_BY_HIVE_3 = {
    *("CREATE_DATABASE", "ALTER_DATABASE", "DROP_DATABASE", "CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"),
    *("ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION", "INSERT", "CREATE_FUNCTION", "DROP_FUNCTION"),
    *("ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT", "ADD_NOTNULLCONSTRAINT", "DROP_CONSTRAINT"),
    *("OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID"),
}


class Listening:
    """The Thrift port of a gateway."""

    def __init__(self, port: int) -> None:
        self.port = port


def test_hive_3_reads_all_of_every_message(tmp_path):
    try:
        class_path = compiled(tmp_path / "classes")
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    port = free_port()
    settings = {"thrift_port": port, "authorization": None}
    with GatewayServer(tmp_path / "gateway", settings=settings), connected(Listening(port)) as client:
        for method, arguments in ROWS.items():
            world = World(client, f"db_{method}".lower())
            with contextlib.suppress(TException, ThriftException):
                client.call(method, *arguments(world))
        world = World(client, "with_write_ids")
        for end in (
            lambda txn: client.commit_txn(CommitTxnRequest(txn)),
            lambda txn: client.abort_txn(AbortTxnRequest(txn)),
        ):
            txn = world.txn()
            client.allocate_table_write_ids(AllocateTableWriteIdsRequest(world.db, "t", [txn]))
            end(txn)
        events = client.get_next_notification(NotificationEventRequest(0, -1)).events
    written = {event.eventType for event in events}
    assert READ_BY_HIVE_3 - written == set()
    lines = [
        f"{event.eventType}\t{base64.b64encode(event.message.encode()).decode()}\n"
        for event in events
        if event.eventType in READ_BY_HIVE_3
    ]
    (tmp_path / "events").write_text("".join(lines))
    command = ["java", *SHORT_LIFE, "-Xmx256m", "-cp", class_path, "ReadEvents", str(tmp_path / "events")]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert printed.returncode == 0, printed.stderr
    complaints = sorted({*printed.stdout.splitlines()})
    assert not complaints, "\n".join(complaints)
