"""Outcomes of calls that clients may repeat, written by the unit of work that makes the change (design D11).

An outcome keeps the encoded answer, or, when it names no codec, the value of the unit of work itself.
"""

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from app.call_keys import AlreadyConcluded, CallKey, Outcome
from app.storage.kept_values import KEPT_BYTES_MAX, packed, packed_value, unpacked, unpacked_value
from app.storage.repository import Repository
from app.storage.schema import OUTCOMES


class OutcomeWrites(Repository):
    def refuse_second(self, key: CallKey) -> None:
        """Raises AlreadyConcluded for a call whose change was made before."""
        if self._connection.execute(select(OUTCOMES.c.method).where(_is(key.principal, key.text))).first() is not None:
            raise AlreadyConcluded(key.text)

    def conclude(self, key: CallKey, seconds: int, value: object) -> None:
        """Note that the call's change, which gave `value`, is part of this unit of work."""
        row = {"principal": key.principal, "call_key": key.text, "method": key.method, "concluded_at": seconds}
        if key.keeps_value:
            row["payload"] = packed_value(value)
        self._connection.execute(insert(OUTCOMES), row)

    def complete_outcome(self, key: CallKey, codec_name: str, payload: bytes) -> None:
        """Add the encoded result; one over KEPT_BYTES_MAX is left out."""
        if len(payload) <= KEPT_BYTES_MAX:
            values = {"codec_name": codec_name, "payload": packed(payload)}
            self._connection.execute(update(OUTCOMES).where(_is(key.principal, key.text)).values(values))

    def delete_outcomes_before(self, seconds: int) -> int:
        """Forget what was concluded before; how many."""
        return self._connection.execute(delete(OUTCOMES).where(OUTCOMES.c.concluded_at < seconds)).rowcount


def find_outcome(connection: Connection, principal: str, key: str) -> Outcome | None:
    """The outcome stored under the key of this user."""
    columns = (OUTCOMES.c.method, OUTCOMES.c.codec_name, OUTCOMES.c.payload)
    row = connection.execute(select(*columns).where(_is(principal, key))).first()
    if row is None:
        return None
    if row.payload is None:
        return Outcome(row.method)
    if row.codec_name is None:
        return Outcome(row.method, kept=unpacked_value(row.payload))
    return Outcome(row.method, row.codec_name, unpacked(row.payload))


def _is(principal: str, key: str) -> ColumnElement[bool]:
    return (OUTCOMES.c.principal == principal) & (OUTCOMES.c.call_key == key)
