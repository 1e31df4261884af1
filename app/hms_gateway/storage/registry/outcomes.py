"""Outcomes of calls that clients may repeat, written by the unit of work that makes the change (design D11).

An outcome keeps the encoded answer, or, when it names no codec, the value of the unit of work itself. Calls that failed
are kept by a unit of work of their own. A value is written as MessagePack of a tree whose objects carry the name of
their class in the IDL, or the tag that the table below gives it: classes can move and get other names, and reading
builds nothing but these classes.
"""

import logging
import zlib
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from hms_gateway.rpc.structs import ENUMS, STRUCTS
from hms_gateway.rpc.structs.base import Struct, ThriftException
from hms_gateway.rpc.wire.binary import ApacheCodec, make_compact
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey, KeptAnswer, KeptValue, Outcome
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.schema.catalog import OUTCOMES
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.txn.ports.txn import Client, ShownLock
from hms_gateway.txn.rules.compaction import Compaction, CompactionDetails, CompactionState
from hms_gateway.txn.rules.leases import Claim, Extension, LeaseConflict, LeasedObject, LeaseType, Waiter
from hms_gateway.txn.rules.locks import Lock
from hms_gateway.txn.rules.names import CommittedRefusal, Target
from hms_gateway.txn.services.compaction import AbortOutcome
from hms_gateway.txn.services.locks import LockAnswer
from hms_gateway.txn.services.transactions import RangeHeartbeat

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
# Tags are stored: a class may be renamed, its tag and the names of its fields may not.
TAGS: Final[Mapping[type, str]] = {
    AbortOutcome: "abort_outcome",
    Claim: "claim",
    Client: "client",
    Compaction: "compaction",
    CompactionDetails: "compaction_details",
    CompactionState: "compaction_state",
    LeaseConflict: "lease_conflict",
    Extension: "lease_extension",
    LeasedObject: "held_lease",
    LeaseType: "lease_type",
    Lock: "lock",
    LockAnswer: "lock_answer",
    RangeHeartbeat: "range_heartbeat",
    ShownLock: "shown_lock",
    Target: "target",
    Waiter: "waiting_lease",
}
_FORMAT: Final = 1
# How what versions wrote begins that used Python's pickle.
_PICKLE_START: Final = b"\x80"
_COMPRESSED_FROM_BYTES: Final = 1024
_PLAIN, _COMPRESSED = b"p", b"z"
_TUPLE, _SET, _MAP, _REFUSED = "tuple", "set", "map", "refused"

_Tree: TypeAlias = Any
"""None, a number, a text, bytes, a list of trees, or a map from one tag to what the tagged value is made of."""

_log = logging.getLogger(__name__)


def packed_value(value: object) -> bytes | None:
    """None for a value that is too large to be kept, or of a class that has no tag."""
    try:
        written = msgspec.msgpack.encode([_FORMAT, _tree(value)])
    except (TypeError, ValueError, OverflowError):
        _log.exception("the value of a call cannot be kept for a repetition")
        return None
    return packed(written) if len(written) <= KEPT_BYTES_MAX else None


def unpacked_value(stored: bytes) -> KeptValue | None:
    """None for what this version cannot read, such as a value that an earlier version wrote."""
    try:
        content = unpacked(stored)
        if content.startswith(_PICKLE_START):
            _log.warning("the kept value of a call is of an earlier version and is not used")
            return None
        format, tree = msgspec.msgpack.decode(content)
        if format == _FORMAT:
            return KeptValue(_value(tree))
        _log.warning("the kept value of a call is in format %r; this version reads %d", format, _FORMAT)
    except Exception:
        _log.warning("the kept value of an earlier call cannot be read", exc_info=True)
    return None


def packed(content: bytes) -> bytes:
    """`content`, compressed when that is worth it."""
    if len(content) < _COMPRESSED_FROM_BYTES:
        return _PLAIN + content
    return _COMPRESSED + zlib.compress(content, 1)


def unpacked(stored: bytes) -> bytes:
    """The value that `packed` was given."""
    return zlib.decompress(stored[1:]) if stored[:1] == _COMPRESSED else bytes(stored[1:])


def _tree(value: Any) -> _Tree:
    """Raises TypeError for a class that is not known."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str, bytes):
        return value
    if kind is list:
        return [_tree(each) for each in value]
    if kind is tuple:
        return {_TUPLE: [_tree(each) for each in value]}
    if kind in (set, frozenset):
        return {_SET: [_tree(each) for each in value]}
    if kind is dict:
        return {_MAP: [(_tree(key), _tree(item)) for key, item in value.items()]}
    return _object_tree(kind, value)


def _object_tree(kind: type, value: Any) -> _Tree:
    if kind is CommittedRefusal:
        return {_REFUSED: _tree(value.reason)}
    if isinstance(value, (Struct, ThriftException)):
        return {type(value).definition.name: _codec().encode(value)}
    tag = kind.__name__ if ENUMS.get(kind.__name__) is kind else TAGS.get(kind)
    if tag is None:
        raise TypeError(f"{kind.__name__} has no tag in TAGS")
    if isinstance(value, Enum):
        return {tag: value.value}
    return {tag: {name: _tree(getattr(value, name)) for name in _field_names(kind)}}


def _value(tree: _Tree) -> Any:
    """Raises for trees that `_tree` does not make."""
    if isinstance(tree, list):
        return [_value(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    ((tag, content),) = tree.items()
    return _readers()[tag](content)


@cache
def _readers() -> Mapping[str, Callable[[_Tree], Any]]:
    readers: dict[str, Callable[[_Tree], Any]] = {
        _TUPLE: lambda content: tuple(map(_value, content)),
        _SET: lambda content: set(map(_value, content)),
        _MAP: lambda content: {_value(key): _value(item) for key, item in content},
        _REFUSED: lambda content: CommittedRefusal(_value(content)),
    }
    readers |= {name: _struct_reader(struct) for name, struct in STRUCTS.items()}
    readers |= ENUMS
    return readers | {tag: _reader(kind) for kind, tag in TAGS.items()}


def _struct_reader(struct: Any) -> Callable[[bytes], Any]:
    return lambda content: _codec().decode(struct, content)


def _reader(kind: type) -> Callable[[_Tree], Any]:
    if issubclass(kind, Enum):
        return kind
    return lambda content: kind(**{name: _value(item) for name, item in content.items()})


def _field_names(kind: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else kind._fields
    return names


@cache
def _codec() -> ApacheCodec:
    """Codec of kept values, without limits: they passed those of a request once, or were written by us."""
    return make_compact(Limits())


_IS_KEPT: Final = and_(OUTCOMES.c.principal == bindparam("the_principal"), OUTCOMES.c.call_key == bindparam("the_key"))
_OUTCOME: Final = select(
    OUTCOMES.c.method, OUTCOMES.c.message_hash, OUTCOMES.c.codec_name, OUTCOMES.c.payload, OUTCOMES.c.is_exception
).where(_IS_KEPT)
_COMPLETE: Final = update(OUTCOMES).where(_IS_KEPT)


class OutcomeWrites(Repository):
    def complete_outcome(self, key: CallKey, answer: KeptAnswer) -> None:
        """Add the encoded answer; one over KEPT_BYTES_MAX is left out."""
        if len(answer.payload) <= KEPT_BYTES_MAX:
            self._connection.execute(_COMPLETE, {**_kept(key.principal, key.text), **_columns(answer)})

    def conclude_failed(self, key: CallKey, seconds: int, answer: KeptAnswer) -> None:
        """Note the answer of a call that changed nothing. Raises AlreadyConcluded."""
        if self._connection.execute(_OUTCOME, _kept(key.principal, key.text)).first() is not None:
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
    row = connection.execute(_OUTCOME, _kept(principal, key)).first()
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


def _kept(principal: str, key: str) -> dict[str, object]:
    return {"the_principal": principal, "the_key": key}
