"""A server's reply cache over a whole metastore, calls through it, and a writer beside it."""

import asyncio
import functools
import inspect

from hms_gateway.cache import ReplyCache
from hms_gateway.metastore.ports.store import StoreUnavailable
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    METHODS,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    GetValidWriteIdsRequest,
    OpenTxnRequest,
    Partition,
    SerDeInfo,
    StorageDescriptor,
)
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.limits import Limits
from hms_gateway.txn.rules.write_ids import ValidWriteIds, ids_with_bits, valid_write_ids_text
from tests.support.catalog import columns, new_table, transactional_table
from tests.support.manual_clock import ManualClock

ON = ("default", "t")


def in_loop(test):
    """Each test is one program on an event loop."""

    @functools.wraps(test)
    def run(**fixtures):
        asyncio.run(test(**fixtures))

    return run


class Replica:
    """One server's cache over a database, and how many questions it has put to that."""

    def __init__(self, metastore):
        self.metastore = metastore
        self.questions = 0
        self.is_away = False
        self.clock = ManualClock()
        self.cache = ReplyCache(self, Limits(), self.read, monotonic=lambda: self.clock.milliseconds() / 1000)

    def _ask(self):
        self.questions += 1
        if self.is_away:
            raise StoreUnavailable("the database is away")
        return self.metastore.store

    def read(self, work):
        return self._ask().read(work)

    def data_version(self):
        return self._ask().data_version()

    def version(self):
        return self._ask().version()

    def changes_since(self, event_id):
        return self._ask().changes_since(event_id)

    def version_watch(self):
        return None

    async def get(self, method, *values, sent=None, dialect="2.3", codec="tjson"):
        """The payload, and whether the cache had it."""
        codec = getattr(self.metastore.codecs, codec)
        before, after = codec.envelope(method, MessageType.CALL, 1)
        asked = codec.read_message(before + codec.encode(METHODS[method].arguments(*values)) + after)
        key = (codec.name, dialect, method, asked.payload)
        reading = self.cache.reading(key, codec, None if sent is None else sent.encode())
        found = self.cache.lookup(key) if reading is None else self.cache.lookup_for(reading)
        if inspect.isawaitable(found):
            found = await found
        if found is not None:
            return found, True
        tagged = None if reading is None else self.cache.tag_reading(reading)
        last = None if tagged is None else tagged.confirm
        ticket = self.cache.ticket()
        self._ask()
        reply = self.metastore.processor.process(codec, asked, Call("alice", dialect=dialect, first=tagged, last=last))
        self.cache.note_answered(method)
        self.cache.remember(key if reading is None else reading.key, reply.arguments, reply.payload, ticket, tagged)
        return reply.payload, False


class Writer:
    """Calls of the metastore that change something, and what a reader is sent."""

    def __init__(self, metastore):
        self.metastore = metastore

    def call(self, method, *values):
        codec = self.metastore.codecs.tjson
        before, after = codec.envelope(method, MessageType.CALL, 1)
        asked = codec.read_message(before + codec.encode(METHODS[method].arguments(*values)) + after)
        reply = self.metastore.processor.process(codec, asked, Call("alice"))
        assert reply.outcome == "ok", reply.payload
        return codec.decode(METHODS[method].result, reply.payload).success if METHODS[method].definition.returns else 0

    def create(self, is_transactional=True):
        make = transactional_table if is_transactional else new_table
        self.call("create_table", make("t", keys=columns("ds string")))

    def begin(self):
        """A transaction and its write id."""
        (txn_id,) = self.call("open_txns", OpenTxnRequest(1, "alice", "here")).txn_ids
        given = self.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("default", "t", [txn_id]))
        return txn_id, given.txnToWriteIds[0].writeId

    def add(self, value):
        self.call("add_partition", Partition([value], *ON, sd=StorageDescriptor(cols=[], serdeInfo=SerDeInfo())))

    def commit(self, txn_id, says=None):
        self.call("commit_txn", CommitTxnRequest(txn_id, writemanaged=says))

    def seen(self, own=None):
        """The list of a reader that begins now, and the table's id."""
        request = GetValidWriteIdsRequest(["default.t"], withTableIds=True)
        (one,) = self.call("get_valid_write_ids", request).tblValidWriteIds
        ids = ids_with_bits(one.writeIdHighWaterMark, one.invalidWriteIds, one.abortedBits)
        ids = ids if own is None else ids.with_own(own)
        return valid_write_ids_text(ValidWriteIds("default.t", ids)), one.tableId

    def header(self, own=None):
        text, table_id = self.seen(own)
        return f"{text};id={table_id}"
