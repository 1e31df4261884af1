"""A batch over one connection: what turns out to be missing is read at once, so that nothing has to run elsewhere."""

from collections.abc import Sequence

from sqlalchemy import Connection

from hms_gateway.runtime.clock import Clock
from hms_gateway.storage.dialects import dialect_of
from hms_gateway.storage.txn.batch import BatchJob, Reading, TxnBatch
from hms_gateway.storage.txn.batch_statements import Rows, Statement


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
                statements = reading.send([self._rows(statement) for statement in statements])
            except StopIteration:
                return

    def write(self) -> None:
        """Write what was changed. Nothing may be run afterwards."""
        for sql, values in self.changes():
            self._connection.execute(sql, values)

    def _load(self, *readings: Reading) -> None:
        for reading in readings:
            reading.learn(self._rows(reading.statement))

    def _rows(self, statement: Statement) -> Rows:
        return self._connection.execute(statement.sql, statement.values).all()
