"""What show_locks tells, the plain way: out of values, one struct after the other."""

from collections.abc import Iterable, Iterator, Mapping

from hms_gateway.rpc.structs import LockState, LockType, ShowLocksResponseElement, Struct
from hms_gateway.rpc.wire.tjson_codec import TJsonCodec
from hms_gateway.runtime.limits import Limits
from hms_gateway.txn.ports.txn import ShownLock
from hms_gateway.txn.rules.locks import STRENGTH


def elements(locks: Iterable[ShownLock], shown_types: Mapping[LockType, LockType]) -> list[ShowLocksResponseElement]:
    """Acquired ones first, weak before strong, then by id and number."""
    return [_element(shown, shown_types) for shown in sorted(locks, key=_order)]


class ElementList:
    """An EncodedList of structs."""

    def __init__(self, structs: list[ShowLocksResponseElement]) -> None:
        self._structs = structs

    def __len__(self) -> int:
        return len(self._structs)

    def tjson_chunks(self) -> Iterator[bytes]:
        for one in self._structs:
            text = TJsonCodec(Limits()).encode(one)
            assert isinstance(text, bytes)
            yield text

    def struct_chunks(self) -> Iterator[list[Struct]]:
        yield [*self._structs]

    def close(self) -> None:
        pass


def _order(shown: ShownLock) -> tuple[bool, int, int, int]:
    lock = shown.lock
    return not lock.is_acquired, STRENGTH[lock.type], lock.lock_id, lock.number


def _element(shown: ShownLock, shown_types: Mapping[LockType, LockType]) -> ShowLocksResponseElement:
    lock, client = shown.lock, shown.client
    return ShowLocksResponseElement(
        lockid=lock.lock_id,
        dbname=lock.target.db_name,
        tablename=lock.target.table_name,
        partname=lock.target.partition_name,
        state=LockState.ACQUIRED if lock.is_acquired else LockState.WAITING,
        type=shown_types.get(lock.type, lock.type),
        txnid=lock.txn_id,
        lastheartbeat=lock.last_heartbeat_ms,
        acquiredat=shown.since_ms if shown.lock.is_acquired else None,
        user=client.user,
        hostname=client.hostname,
        agentInfo=client.agent_info,
        blockedByExtId=shown.blocker and shown.blocker[0],
        blockedByIntId=shown.blocker and shown.blocker[1],
        lockIdInternal=lock.number,
    )
