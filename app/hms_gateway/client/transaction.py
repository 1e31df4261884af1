"""A transaction of Hive as a client sees it: one snapshot for all its reads, its own write ids, commit or abort.

Its reads say which write ids they see, so a gateway answers them from memory, and never with less than the snapshot
(docs/caching.md).
"""

import getpass
import socket
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self

from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.structs import (
    METHODS,
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    GetOpenTxnsRequest,
    GetValidWriteIdsRequest,
    HeartbeatRequest,
    OpenTxnRequest,
    Struct,
)
from hms_gateway.rpc.structs.paths import argument_paths
from hms_gateway.txn.rules.write_ids import (
    ValidIds,
    ValidWriteIds,
    ids_with_bits,
    valid_txns_text,
    valid_write_ids_text,
)

WRITE_IDS_HEADER: Final = "x-hms-valid-write-ids"
# A longer header is refused by HTTP servers; the call then reads without a list.
HEADER_CHARACTERS_MAX: Final = 8192


class TransactionCaller(Protocol):
    """What a transaction needs of `MetastoreClient`."""

    def call(self, name: str, /, *arguments: Any, **options: Any) -> Any: ...

    def arguments(self, name: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Struct: ...


class _Seen(NamedTuple):
    ids: ValidIds
    table_id: int | None


class MetastoreTransaction:
    """An open transaction. `MetastoreClient.transaction` makes it; leaving the `with` commits, an exception aborts.

    The snapshot is taken when it begins. Nothing keeps it alive by itself: one that lasts longer than the server's
    `txn_timeout_seconds` calls `heartbeat` meanwhile.
    """

    def __init__(self, caller: TransactionCaller) -> None:
        self._caller = caller
        self._lists: dict[str, _Seen] = {}
        self._own: dict[str, int] = {}
        self._is_open = False
        self.txn_id = 0
        self.valid_txns = ValidIds(0)

    def __enter__(self) -> Self:
        # The snapshot first: what commits between the two calls counts as open, as does this transaction itself.
        found = self._caller.call("get_open_txns_req", GetOpenTxnsRequest())
        self.valid_txns = ids_with_bits(found.txn_high_water_mark, found.open_txns, found.abortedBits)
        request = OpenTxnRequest(num_txns=1, user=getpass.getuser(), hostname=socket.gethostname())
        (self.txn_id,) = self._caller.call("open_txns", request).txn_ids
        self._is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            self.commit() if error is None else self.abort()

    def valid_write_ids(self, *tables: str) -> list[ValidWriteIds]:
        """What the transaction sees of tables, by `database.table`; its own write ids count as seen."""
        unknown = [table for table in map(str.lower, tables) if table not in self._lists]
        if unknown:
            request = GetValidWriteIdsRequest(unknown, valid_txns_text(self.valid_txns), withTableIds=True)
            for one in self._caller.call("get_valid_write_ids", request).tblValidWriteIds:
                ids = ids_with_bits(one.writeIdHighWaterMark, one.invalidWriteIds, one.abortedBits)
                self._lists[one.fullTableName] = _Seen(ids, one.tableId)
        return [ValidWriteIds(table, self._ids(table)) for table in map(str.lower, tables)]

    def allocate(self, table: str) -> int:
        """The write id under which the transaction changes `database.table`; the same when asked again."""
        table = table.lower()
        if table not in self._own:
            # Before the id is given, or another's that is committed meanwhile might hide behind it.
            self.valid_write_ids(table)
            db_name, _, tbl_name = table.partition(".")
            request = AllocateTableWriteIdsRequest(db_name, tbl_name, txnIds=[self.txn_id])
            given = self._caller.call("allocate_table_write_ids", request).txnToWriteIds
            self._own[table] = given[0].writeId
        return self._own[table]

    def call(self, name: str, /, *arguments: Any, **options: Any) -> Any:
        """As `MetastoreClient.call`; a read of one table says what the transaction sees of it."""
        table = self._table_of(name, arguments, options)
        if table is not None:
            sent = self.header(table)
            if sent is not None:
                options["headers"] = {WRITE_IDS_HEADER: sent}
        return self._caller.call(name, *arguments, **options)

    def header(self, table: str) -> str | None:
        """The header's text for reads of `database.table`; None for a table that is not there, or too long a list."""
        table = table.lower()
        (valid,) = self.valid_write_ids(table)
        table_id = self._lists[table].table_id
        text = f"{valid_write_ids_text(valid, has_ranges=True)};id={table_id}"
        return None if table_id is None or len(text) > HEADER_CHARACTERS_MAX else text

    def heartbeat(self) -> None:
        """Keep the transaction from timing out. Raises TxnAbortedException, NoSuchTxnException."""
        self._caller.call("heartbeat", HeartbeatRequest(txnid=self.txn_id))

    def commit(self) -> None:
        """Raises TxnAbortedException when it was aborted meanwhile, or another has changed the same."""
        self._is_open = False
        self._caller.call("commit_txn", CommitTxnRequest(self.txn_id, writemanaged=bool(self._own)))

    def abort(self) -> None:
        self._is_open = False
        self._caller.call("abort_txn", AbortTxnRequest(self.txn_id))

    def _ids(self, table: str) -> ValidIds:
        ids, own = self._lists[table].ids, self._own.get(table)
        return ids if own is None else _with_own(ids, own)

    def _table_of(self, name: str, positional: tuple[Any, ...], options: dict[str, Any]) -> str | None:
        facts = method_facts().get(name)
        if facts is None or not facts.write_ids_in or facts.cached_by not in ("table", "columns"):
            return None
        fields = {field.name for field in METHODS[name].definition.arguments}
        named = {key: value for key, value in options.items() if key in fields}
        arguments = self._caller.arguments(name, positional, named)
        return _full_name(argument_paths(facts.scope_paths).held(arguments) or ())


def _full_name(names: tuple[str | None, ...]) -> str | None:
    """`database.table`, None where a name is missing or says a catalog as well."""
    if not names or not all(names) or any("@" in (name or "") or "." in (name or "") for name in names):
        return None
    return ".".join((name or "").strip().lower() for name in names)


def _with_own(ids: ValidIds, own: int) -> ValidIds:
    """As the writer sees it: ids between the snapshot's mark and its own are of others, who were open then."""
    between = tuple(range(ids.high_water_mark + 1, own))
    return ValidIds(max(ids.high_water_mark, own), ids.open_ids + between, ids.aborted_ids).with_own(own)
