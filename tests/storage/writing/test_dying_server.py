"""The writer of the event loop, on the loop of a gateway, and a server that dies with a question unread."""

import asyncio
import socket
from collections.abc import Iterable

import uvloop

from hms_gateway.runtime.suspension import Job, Later
from hms_gateway.storage.dialects.postgres import PostgresDialect
from hms_gateway.storage.dialects.statements import ConnectionLost, Rows, Statement
from hms_gateway.storage.writing.pipelined_writer import PipelinedWriter
from hms_gateway.txn.services.locks import LockService
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from tests.storage.txn.test_batch import WHO
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_SECONDS


class DyingServer:
    """A pipeline to one that gets a question, says a last word and is gone. Reads the word in pieces, as libpq may."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)

    def fileno(self) -> int:
        return self._ours.fileno()

    def send(self, statements: Iterable[Statement]) -> None:
        self._ours.send(b"a question")
        self._theirs.send(b"shutting down")
        self._theirs.close()

    def flush(self) -> bool:
        return True

    def answers(self) -> list[Rows] | None:
        try:
            if self._ours.recv(4):
                return None
        except OSError as error:
            raise ConnectionLost from error
        raise ConnectionLost

    def close(self) -> None:
        self._ours.close()


def test_what_was_asked_goes_to_the_other_writer() -> None:
    async def run() -> list[Job]:
        loop, handed, is_handed = asyncio.get_running_loop(), list[Job](), asyncio.Event()

        def hand_over(job: Job) -> None:
            handed.append(job)
            is_handed.set()

        writer = PipelinedWriter(DyingServer, PostgresDialect(), ManualClock(), 10, hand_over)
        settings = TxnSettings()
        txns = TransactionService(None, LockService(None, settings), settings)  # type: ignore[arg-type]
        job = Job(txns.open(1, WHO).work, Later(lambda result: None, loop), None)
        # The first ones go to the other writer, until there is a connection.
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not writer.take(job):
                await asyncio.sleep(0)
            await is_handed.wait()
        writer.close()
        return handed

    assert len(uvloop.run(run())) == 1
