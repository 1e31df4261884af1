"""Outcomes of calls that clients may repeat, written by the unit of work that makes the change (design D11)."""

import zlib
from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from app.call_keys import AlreadyConcluded, CallKey, Outcome
from app.storage.repository import Repository
from app.storage.schema import OUTCOMES

PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
_COMPRESSED_FROM_BYTES: Final = 1024
_PLAIN, _COMPRESSED = b"p", b"z"


class OutcomeWrites(Repository):
    def conclude(self, key: CallKey, seconds: int) -> None:
        """Note that the call's change is part of this unit of work. Raises AlreadyConcluded."""
        found = self._connection.execute(select(OUTCOMES.c.method).where(_is(key.principal, key.text))).first()
        if found is not None:
            raise AlreadyConcluded(key.text)
        row = {"principal": key.principal, "call_key": key.text, "method": key.method, "concluded_at": seconds}
        self._connection.execute(insert(OUTCOMES), row)

    def complete_outcome(self, key: CallKey, codec_name: str, payload: bytes) -> None:
        """Add the encoded result; one over PAYLOAD_BYTES_MAX is left out."""
        if len(payload) <= PAYLOAD_BYTES_MAX:
            values = {"codec_name": codec_name, "payload": _packed(payload)}
            self._connection.execute(update(OUTCOMES).where(_is(key.principal, key.text)).values(values))

    def delete_outcomes_before(self, seconds: int) -> int:
        """Forget what was concluded before; how many."""
        return self._connection.execute(delete(OUTCOMES).where(OUTCOMES.c.concluded_at < seconds)).rowcount


def find_outcome(connection: Connection, principal: str, key: str) -> Outcome | None:
    """The outcome stored under the key of this user."""
    columns = (OUTCOMES.c.method, OUTCOMES.c.codec_name, OUTCOMES.c.payload)
    row = connection.execute(select(*columns).where(_is(principal, key))).first()
    return None if row is None else Outcome(row.method, row.codec_name, _unpacked(row.payload))


def _is(principal: str, key: str) -> ColumnElement[bool]:
    return (OUTCOMES.c.principal == principal) & (OUTCOMES.c.call_key == key)


def _packed(payload: bytes) -> bytes:
    if len(payload) < _COMPRESSED_FROM_BYTES:
        return _PLAIN + payload
    return _COMPRESSED + zlib.compress(payload, 1)


def _unpacked(stored: bytes | None) -> bytes | None:
    if stored is None:
        return None
    return zlib.decompress(stored[1:]) if stored[:1] == _COMPRESSED else bytes(stored[1:])
