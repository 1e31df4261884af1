"""Runs scenarios written as text against the services of transactions and locks.

    open    t1
    lock    L1 t1 EXCLUSIVE    sales.orders/ds=1   -> ACQUIRED
    lock    L2 -  SHARED_READ  sales.orders        -> WAITING by L1
    commit  t1
    check   L2                                     -> ACQUIRED

Names stand for the ids that were given. What a line without `->` answers does not matter, but it must not raise.
Further words of a lock: an operation (`UPDATE`), `+ TYPE object` for another component, `hive4`, `zero-wait`, `ctas`.
"""

import re
from collections.abc import Callable
from typing import Any

from hms_gateway.rpc.structs import LockState, LockType, ShowLocksResponseElement, ThriftException, TxnType
from hms_gateway.txn.ports.txn import Client, LockFilter, TxnStore
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target, target
from hms_gateway.txn.rules.transactions import TxnOperation, Write
from hms_gateway.txn.rules.write_ids import valid_txns_text
from hms_gateway.txn.services.compaction import CompactionService, Expiry
from hms_gateway.txn.services.locks import ComponentSpec, LockAnswer, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService

CLIENT = Client("tester", "host", "test")


class World:
    """The services over one store; `sleep` lets so many seconds of the database's time pass."""

    def __init__(self, store: TxnStore, sleep: Callable[[int], None], **settings: Any) -> None:
        self.settings = TxnSettings(**settings)
        self.sleep = sleep
        self.locks = LockService(store, self.settings)
        self.transactions = TransactionService(store, self.locks, self.settings)
        self.write_ids = WriteIdService(store, self.settings)
        self.compactions = CompactionService(store)
        self.expiry = Expiry(store, self.settings)
        self.ids: dict[str, int] = {}

    def play(self, scenario: str) -> None:
        """Raises AssertionError naming the line that came out otherwise."""
        for line in scenario.strip().splitlines():
            command, arrow, expected = (part.strip() for part in line.partition("->"))
            if not command or command.startswith("#"):
                continue
            outcome = self._outcome(command.split(), raises=bool(arrow))
            assert not arrow or outcome == expected, f"{command} -> {outcome}, not {expected}"

    def lock(self, place: str, type: LockType = LockType.EXCLUSIVE, txn_id: int = 0) -> LockAnswer:
        return self.locks.lock(LockSpec([ComponentSpec(place_of(place), type)], CLIENT, TxnId(txn_id))).result()

    def shown_locks(self, filter: LockFilter | None = None) -> list[ShowLocksResponseElement]:
        return [shown for chunk in self.locks.show(filter or LockFilter()).struct_chunks() for shown in chunk]

    def _outcome(self, words: list[str], *, raises: bool) -> str:
        try:
            return self._named(getattr(self, f"_do_{words[0]}")(*words[1:]))
        except ThriftException as error:
            if not raises:
                raise
            return f"{type(error).__name__.removesuffix('Exception')} {self._named(error.message or '')}".strip()

    def _do_name(self, name: str, number: str) -> str:
        self.ids[name] = int(number)
        return name

    def _do_open(self, name: str, type_name: str = "DEFAULT") -> str:
        (self.ids[name],) = self.transactions.open(1, CLIENT, TxnType[type_name]).result()
        return name

    def _do_lock(self, name: str, txn: str, *words: str) -> str:
        flags = {word for word in words if word in ("hive4", "zero-wait", "ctas")}
        components = " ".join(word for word in words if word not in flags).split(" + ")
        call = LockSpec(
            [_component(*component.split()) for component in components],
            CLIENT,
            TxnId(0 if txn == "-" else self._id(txn)),
            shares_writes="hive4" in flags,
            zero_wait_read="zero-wait" in flags,
            exclusive_ctas="ctas" in flags,
        )
        answer = self.locks.lock(call).result()
        self.ids[name] = answer.lock_id
        return self._state(answer)

    def _do_check(self, name: str) -> str:
        return self._state(self.locks.check_lock(self._id(name)).result())

    def _do_unlock(self, name: str) -> str:
        self.locks.unlock(self._id(name)).result()
        return "OK"

    def _do_release(self, name: str) -> str:
        released = self.locks.release(self._id(name), "released by an administrator")
        return " ".join(dict.fromkeys(self._name(shown.lock.lock_id, "L") for shown in released))

    def _do_force(self, user: str, name: str) -> str:
        released = self.locks.force_release(user, self._id(name))
        return " ".join(self._name(shown.lock.lock_id, "L") for shown in released)

    def _do_blocking(self, place: str = "") -> str:
        """Each lock that is in the way, and in brackets what waits for it."""
        named = place_of(place) if place else ()
        return " ".join(
            self._name(one.shown.lock.lock_id, "L") + f"[{' '.join(self._name(other, 'L') for other in one.blocked)}]"
            for one in self.locks.blocking(LockFilter(*named))
        )

    def _do_commit(self, name: str, check: str = "2.3") -> str:
        strict = check == "strict"
        self.transactions.commit(self._id(name), checks_writes=check != "hive4", is_strict=strict).result()
        return "OK"

    def _do_abort(self, name: str) -> str:
        self.transactions.abort(self._id(name)).result()
        return "OK"

    def _do_beat(self, *names: str) -> str:
        ids = {name[0]: self._id(name) for name in names}
        self.transactions.heartbeat(ids.get("L", 0), ids.get("t", 0)).result()
        return "OK"

    def _do_range(self, first: str, last: str) -> str:
        outcome = self.transactions.heartbeat_range(self._id(first), self._id(last))
        aborted = " ".join(self._name(number, "t") for number in outcome.aborted)
        missing = " ".join(self._name(number, "t") for number in outcome.missing)
        return f"aborted [{aborted}] nosuch [{missing}]"

    def _do_add(self, name: str, operation: str, *places: str) -> str:
        self.transactions.add_writes(self._id(name), [place_of(one) for one in places], TxnOperation[operation], None)
        return "OK"

    def _do_listed(self) -> str:
        found = self.transactions.open_txns()
        shown = [self._name(one.txn_id, "t") + ("" if one.is_open else "!") for one in found.unfinished]
        return " ".join(shown)

    def _do_shown(self, place: str = "") -> str:
        named = place_of(place) if place else None
        filter = LockFilter(*named) if named else LockFilter()
        return " ".join(
            self._name(shown.lockid, "L") + ("" if shown.state == LockState.ACQUIRED else "?")
            for shown in self.shown_locks(filter)
        )

    def _do_allocate(self, place: str, *names: str) -> str:
        given = self.write_ids.allocate(place_of(place), [self._id(name) for name in names])
        return " ".join(f"{self._name(txn_id, 't')}={write_id}" for txn_id, write_id in sorted(given.items()))

    def _do_seen(self, place: str, text: str | None = None) -> str:
        ((found, _),) = self.write_ids.valid_write_ids([(place, place_of(place))], text)
        return valid_txns_text(found.ids).replace("9223372036854775807", "-")

    def _do_after(self, seconds: str) -> str:
        self.sleep(int(seconds))
        return "OK"

    def _do_expire(self) -> str:
        self.expiry.expire()
        return "OK"

    def _state(self, answer: LockAnswer) -> str:
        if answer.state is not LockState.WAITING:
            return answer.state.name + (f" {answer.error_message}" if answer.error_message else "")
        blocker = next(one.blockedByExtId for one in self.shown_locks() if one.lockid == answer.lock_id)
        return f"WAITING by {self._name(blocker or 0, 'L')}"

    def _id(self, name: str) -> int:
        return int(name) if name.lstrip("-").isdigit() else self.ids[name]

    def _name(self, number: int, kind: str) -> str:
        return next((name for name, known in self.ids.items() if known == number and name[0] == kind), str(number))

    def _named(self, text: str) -> str:
        """With names instead of ids, where they have one."""

        def named(found: re.Match[str]) -> str:
            kind = "t" if found[1] == "txnid" else "L"
            name = self._name(int(found[2]), kind)
            return found[0] if name == found[2] else name

        return re.sub(r"(txnid|lockid):(\d+)", named, text)


def place_of(text: str) -> Target:
    """`database.table/partition`."""
    table, _, partition = text.partition("/")
    db_name, _, table_name = table.partition(".")
    return target(db_name, table_name, partition)


def _component(type_name: str, place: str, operation: str | None = None) -> ComponentSpec:
    where = place_of(place)
    return ComponentSpec(where, LockType[type_name], Write(where, TxnOperation[operation]) if operation else None)
