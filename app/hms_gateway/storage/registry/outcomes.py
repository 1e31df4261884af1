"""Outcomes of calls that clients may repeat, written by the unit of work that makes the change (design D11).

An outcome keeps the encoded answer, or, when it names no codec, the value of the unit of work itself. Calls that failed
are kept by a unit of work of their own.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey, KeptAnswer, Outcome
from hms_gateway.storage.registry.kept_values import KEPT_BYTES_MAX, packed, packed_value, unpacked, unpacked_value
from hms_gateway.storage.schema.catalog import OUTCOMES
from hms_gateway.storage.sql.repository import Repository


class OutcomeWrites(Repository):
    def complete_outcome(self, key: CallKey, answer: KeptAnswer) -> None:
        """Add the encoded answer; one over KEPT_BYTES_MAX is left out."""
        if len(answer.payload) <= KEPT_BYTES_MAX:
            self._connection.execute(update(OUTCOMES).where(_is(key.principal, key.text)).values(_columns(answer)))

    def conclude_failed(self, key: CallKey, seconds: int, answer: KeptAnswer) -> None:
        """Note the answer of a call that changed nothing. Raises AlreadyConcluded."""
        if self._connection.execute(select(OUTCOMES.c.method).where(_is(key.principal, key.text))).first() is not None:
            raise AlreadyConcluded(key.text)
        self._connection.execute(insert(OUTCOMES), {**outcome_row(key, seconds), **_columns(answer)})

    def delete_outcomes_before(self, seconds: int) -> int:
        """Forget what was concluded before; how many."""
        return self._connection.execute(delete(OUTCOMES).where(OUTCOMES.c.concluded_at < seconds)).rowcount


def outcome_row(key: CallKey, seconds: int, value: object = None) -> dict[str, Any]:
    """What is stored of a call whose change gave `value`."""
    return {
        "principal": key.principal,
        "call_key": key.text,
        "method": key.method,
        "concluded_at": seconds,
        "message_hash": key.message_hash,
        "payload": packed_value(value) if key.keeps_value else None,
    }


def find_outcome(connection: Connection, principal: str, key: str) -> Outcome | None:
    """The outcome stored under the key of this user."""
    columns = (
        OUTCOMES.c.method,
        OUTCOMES.c.message_hash,
        OUTCOMES.c.codec_name,
        OUTCOMES.c.payload,
        OUTCOMES.c.is_exception,
    )
    row = connection.execute(select(*columns).where(_is(principal, key))).first()
    if row is None:
        return None
    known = Outcome(row.method, None if row.message_hash is None else bytes(row.message_hash))
    if row.payload is None:
        return known
    if row.codec_name is None:
        return known._replace(value=unpacked_value(row.payload))
    return known._replace(answer=KeptAnswer(row.codec_name, unpacked(row.payload), bool(row.is_exception)))


def _columns(answer: KeptAnswer) -> dict[str, Any]:
    return {
        "codec_name": answer.codec_name,
        "payload": packed(answer.payload),
        "is_exception": answer.is_exception or None,
    }


def _is(principal: str, key: str) -> ColumnElement[bool]:
    return (OUTCOMES.c.principal == principal) & (OUTCOMES.c.call_key == key)
