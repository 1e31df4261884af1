"""A batch over one connection: what turns out to be missing is read at once, so that nothing has to run elsewhere."""

from collections.abc import Sequence

from sqlalchemy import Connection

from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects import dialect_of
from hms_gateway.storage.dialects.statements import Rows, Statement
from hms_gateway.storage.txn.batch import BatchJob, Reading, TxnBatch


class ConnectedBatch(TxnBatch):
    """Errors of the database, which end the batch, are those of SQLAlchemy."""

    def __init__(self, connection: Connection, clock: Clock, jobs: Sequence[BatchJob] = ()) -> None:
        super().__init__(dialect_of(connection), clock, jobs)
        self._connection = connection

    def read_ahead(self) -> None:
        """What the jobs said they will ask for."""
        reading = self.reading()
        statements = next(reading, None)
        while statements is not None:
            try:
                statements = reading.send(self._rows(statements))
            except StopIteration:
                return

    def write(self) -> None:
        """Write what was changed. Nothing may be run afterwards."""
        self._rows(self.changes())

    def _load(self, *readings: Reading) -> None:
        for reading, rows in zip(readings, self._rows([each.statement for each in readings]), strict=True):
            reading.learn(rows)

    def _rows(self, statements: Sequence[Statement]) -> list[Rows]:
        return self._dialect.run_together(self._connection, statements)
