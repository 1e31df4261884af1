"""Readers that say which write ids they see: answered from memory, and never with less than they may see."""

import asyncio
import socket

import pytest

from hms_gateway.cache import InvalidList, ReplyCache, replies
from hms_gateway.cache.reader_lists import Tag
from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.metastore.ports.store import StoreUnavailable
from hms_gateway.rpc.structs import (
    METHODS,
    GetPartitionRequest,
    GetPartitionsByNamesRequest,
    GetTableRequest,
    GetValidWriteIdsRequest,
    OpenTxnRequest,
    PrimaryKeysRequest,
    TableStatsRequest,
)
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.cache.replica import ON, Replica, Writer, in_loop
from tests.support.catalog import place_empty_database, transactional_table

ROUNDS_MAX = 5_000


@pytest.fixture
def metastore(tmp_path):
    place_empty_database(tmp_path / DATABASE_FILE)
    settings = Settings(data_dir=tmp_path, file_systems={"file": "ignore"})
    built = build_metastore(settings)
    yield built
    built.store.close()


@pytest.fixture
def writer(metastore):
    found = Writer(metastore)
    found.create()
    return found


@in_loop
async def test_a_hit_asks_the_database_nothing_and_needs_none(metastore, writer):
    replica = Replica(metastore)
    writer.commit(writer.begin()[0])
    header = writer.header()
    first, was_known = await replica.get("get_partition_names", *ON, -1, sent=header)
    assert not was_known
    questions, replica.is_away = replica.questions, True
    assert await replica.get("get_partition_names", *ON, -1, sent=header) == (first, True)
    assert replica.questions == questions
    with pytest.raises(StoreUnavailable):
        await replica.get("get_partition_names", *ON, -1)


@in_loop
async def test_what_was_committed_before_the_list_was_taken_is_in_the_answer(metastore, writer):
    replica = Replica(metastore)
    before = writer.header()
    assert b"ds=" not in (await replica.get("get_partition_names", *ON, -1, sent=before))[0]
    txn_id, _ = writer.begin()
    writer.add("1")
    during = writer.header()
    writer.commit(txn_id)
    # Both see no less than they may; neither sees the transaction.
    assert (await replica.get("get_partition_names", *ON, -1, sent=before))[1]
    assert (await replica.get("get_partition_names", *ON, -1, sent=during))[1]
    after = writer.header()
    found, was_known = await replica.get("get_partition_names", *ON, -1, sent=after)
    assert b"ds=1" in found
    assert not was_known
    assert await replica.get("get_partition_names", *ON, -1, sent=after) == (found, True)
    # What is newer serves older readers, too.
    assert await replica.get("get_partition_names", *ON, -1, sent=before) == (found, True)


@pytest.mark.parametrize(("says", "is_known"), [(None, True), (True, True), (False, False)])
@in_loop
async def test_a_commit_is_learned_from_the_log(metastore, writer, says, is_known):
    """What the client says of its writes decides who is asked next, never what is answered."""
    replica = Replica(metastore)
    txn_id, _ = writer.begin()
    writer.add("1")
    before = writer.header()
    for _ in range(2):
        await replica.get("get_partition_names", *ON, -1, sent=before)
        await asyncio.sleep(0)  # what follows the log
        replica.clock.advance(1)
    writer.commit(txn_id, says)
    replica.clock.advance(1)
    await replica.get("get_partition_names", *ON, -1, sent=before)
    await asyncio.sleep(0)  # what follows the log
    questions, size = replica.questions, replica.cache.size_bytes
    after = writer.header()
    found, was_known = await replica.get("get_partition_names", *ON, -1, sent=after)
    assert b"ds=1" in found
    assert was_known is is_known
    assert (replica.questions == questions) is is_known
    assert await replica.get("get_partition_names", *ON, -1, sent=after) == (found, True)
    assert replica.cache.size_bytes > size  # the list


@in_loop
async def test_saying_wrongly_that_something_was_written_changes_nothing(metastore, writer):
    replica = Replica(metastore)
    header = writer.header()
    await replica.get("get_partition_names", *ON, -1, sent=header)
    (txn_id,) = writer.call("open_txns", OpenTxnRequest(1, "alice", "here")).txn_ids
    before = replica.version()
    writer.commit(txn_id, says=True)
    assert replica.version() == before
    assert (await replica.get("get_partition_names", *ON, -1, sent=writer.header()))[1]


@in_loop
async def test_a_commit_in_between_leaves_what_is_open_before_it_unknown(metastore, writer):
    replica = Replica(metastore)
    await replica.get("get_partition_names", *ON, -1, sent=writer.header())
    first, second = writer.begin(), writer.begin()
    writer.commit(second[0])
    replica.clock.advance(1)
    await replica.get("get_partition_names", *ON, -1, sent=f"default.t:0:1::;id={writer.seen()[1]}")
    await asyncio.sleep(0)  # what follows the log
    assert (await replica.get("get_partition_names", *ON, -1, sent=writer.header()))[1]
    writer.add("1")
    writer.commit(first[0])
    found, was_known = await replica.get("get_partition_names", *ON, -1, sent=writer.header())
    assert b"ds=1" in found
    assert not was_known


@in_loop
async def test_a_commit_of_another_table_of_the_name_does_not_count(metastore, writer):
    """Found by the simulation."""
    replica = Replica(metastore)
    writer.commit(writer.begin()[0])
    writer.call("drop_table", *ON, False)
    writer.create()
    txn_id, _ = writer.begin()
    # Read before the replica comes to the first table's commit in the log.
    await replica.get("get_partition_names", *ON, -1, sent=writer.header())
    await asyncio.sleep(0)  # what follows the log
    writer.add("1")
    writer.commit(txn_id)
    assert b"ds=1" in (await replica.get("get_partition_names", *ON, -1, sent=writer.header()))[0]


@in_loop
async def test_a_writer_sees_its_own_changes_and_others_do_not_get_half_of_them(metastore, writer):
    replica = Replica(metastore)
    txn_id, own = writer.begin()
    header = writer.header(own)
    for value in ("1", "2"):
        writer.add(value)
        found, was_known = await replica.get("get_partition_names", *ON, -1, sent=header)
        assert f"ds={value}".encode() in found
        assert not was_known
    # What the writer has read, with its own id as valid, was read before this.
    writer.add("3")
    writer.commit(txn_id)
    assert b"ds=3" in (await replica.get("get_partition_names", *ON, -1, sent=writer.header()))[0]


@in_loop
async def test_lists_with_other_exceptions_are_not_mistaken_for_newer_ones(metastore, writer):
    """Hive's order of lists takes the reader's below for the older one."""
    replica = Replica(metastore)
    mine, theirs = writer.begin(), writer.begin()
    writer.commit(mine[0])
    assert not (await replica.get("get_partition_names", *ON, -1, sent=writer.header()))[1]
    writer.add("1")
    header = f"default.t:{theirs[1]}:{mine[1]}:{mine[1]}:;id={writer.seen()[1]}"
    found, was_known = await replica.get("get_partition_names", *ON, -1, sent=header)
    assert b"ds=1" in found
    assert not was_known


@in_loop
async def test_a_table_that_is_made_again_is_another_one(metastore, writer):
    replica = Replica(metastore)
    txn_id, _ = writer.begin()
    writer.add("old")
    writer.commit(txn_id)
    assert b"old" in (await replica.get("get_partition_names", *ON, -1, sent=writer.header()))[0]
    writer.call("drop_table", *ON, False)
    writer.create()
    # Its write ids begin with 1 again, which the old one's answer covers.
    writer.commit(writer.begin()[0])
    found, _ = await replica.get("get_partition_names", *ON, -1, sent=writer.header())
    assert b"old" not in found


@in_loop
async def test_an_older_answer_does_not_replace_a_newer_one(metastore, writer):
    replica = Replica(metastore)
    header = writer.header()
    reading = replica.cache.reading(("tjson", "2.3", "get_partition_names", b"asked"), None, header.encode())
    arguments = METHODS["get_partition_names"].arguments(*ON, -1)
    slow, ticket = replica.cache.tag_reading(reading), replica.cache.ticket()
    slow()
    writer.commit(writer.begin()[0])
    quick = replica.cache.tag_reading(reading)
    quick()
    replica.cache.remember(reading.key, arguments, b"newer", ticket, quick)
    replica.cache.remember(reading.key, arguments, b"older", ticket, slow)
    replica.cache.remember(reading.key, arguments, b"untagged", ticket)
    assert replica.cache.lookup_for(reading) == b"newer"


@pytest.mark.parametrize("codec", ["tjson", "binary", "compact"])
@pytest.mark.parametrize("dialect", ["2.3", "4"])
@in_loop
async def test_the_list_may_be_in_the_request(metastore, writer, codec, dialect):
    replica = Replica(metastore)

    async def get(of_table=None, **fields):
        text, table_id = writer.seen()
        request = GetTableRequest(*ON, validWriteIdList=text, id=table_id if of_table is None else of_table)
        return await replica.get("get_table_req", request, dialect=dialect, codec=codec)

    assert [(await get())[1] for _ in range(2)] == [False, True]
    txn_id, _ = writer.begin()
    # Another list, of which nothing is new.
    assert (await get())[1]
    writer.commit(txn_id)
    assert [(await get())[1] for _ in range(2)] == [False, True]
    # Without the table's id the first look-up asks whether anything has changed, and no further one does.
    questions = replica.questions
    assert (await get(-1))[1]
    assert replica.questions > questions
    replica.is_away = True
    assert (await get(-1))[1]


@in_loop
async def test_a_list_without_an_id_that_is_new_gets_nothing_of_an_earlier_table(metastore, writer):
    replica = Replica(metastore)
    for value in ("old", "new"):
        writer.add(value)
        writer.commit(writer.begin()[0])
        text, _ = writer.seen()
        # Both begin with the same ids; the second is told by its blanks.
        sent = text if value == "old" else f"{text} "
        assert f"ds={value}".encode() in (await replica.get("get_partition_names", *ON, -1, sent=sent))[0]
        if value == "old":
            writer.call("drop_table", *ON, False)
            writer.create()


@pytest.mark.parametrize("by", ["a change here", "lists given here", "the log"])
@in_loop
async def test_a_list_without_an_id_that_is_known_follows_the_name(metastore, writer, by):
    """A change elsewhere is learned when the log is followed, as by a reader that sends the id."""
    replica = Replica(metastore)
    writer.add("old")
    text, _ = writer.seen()
    for _ in range(2):
        await replica.get("get_partition_names", *ON, -1, sent=text)
        await asyncio.sleep(0)  # what follows the log
    if by == "a change here":
        await replica.get("drop_table", *ON, False)
        writer.create()
    else:
        writer.call("drop_table", *ON, False)
        writer.create()
        assert writer.seen()[0] == text
        assert b"old" in (await replica.get("get_partition_names", *ON, -1, sent=text))[0]
    if by == "lists given here":
        await replica.get("get_valid_write_ids", GetValidWriteIdsRequest(["default.t"]))
    if by == "the log":
        replica.clock.advance(1)
        await replica.get("get_partition_names", *ON, -1, sent=text)
        await asyncio.sleep(0)  # what follows the log
    assert b"old" not in (await replica.get("get_partition_names", *ON, -1, sent=text))[0]


@in_loop
async def test_calls_that_keep_locks_alive_change_no_table(metastore, writer):
    replica = Replica(metastore)
    text, _ = writer.seen()
    for _ in range(2):
        await replica.get("get_partition_names", *ON, -1, sent=text)
    await replica.get("open_txns", OpenTxnRequest(1, "alice", "here"))
    replica.is_away = True
    assert (await replica.get("get_partition_names", *ON, -1, sent=text))[1]


@in_loop
async def test_the_log_is_followed_while_answers_are_kept_though_nobody_asks(metastore, writer, monkeypatch):
    monkeypatch.setattr(replies, "FOLLOW_SECONDS", 0.001)
    replica = Replica(metastore)
    replica.cache = ReplyCache(replica, Limits(), replica.read)
    await replica.get("get_partition_names", *ON, -1, sent=writer.header())
    writer.commit(writer.begin()[0])
    await until_at(replica, replica.version())
    header = writer.header()
    replica.is_away = True
    assert (await replica.get("get_partition_names", *ON, -1, sent=header))[1]
    replica.is_away = False
    writer.call("drop_table", *ON, False)
    await until_at(replica, replica.version())
    assert len(replica.cache) == 0
    replica.cache.close()


async def until_at(replica, version):
    for _ in range(ROUNDS_MAX):
        if replica.cache.version == version:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the log is not followed")


@in_loop
async def test_whether_statistics_hold_is_an_answer_to_one_list(metastore, writer):
    replica = Replica(metastore)

    async def get(text):
        request = TableStatsRequest(*ON, ["a"], None, text, None, writer.seen()[1])
        return await replica.get("get_table_statistics_req", request)

    for _ in range(2):
        writer.commit(writer.begin()[0])
    answers = [await get(text) for text in ("default.t:1:9::", "default.t:2:9::", None, "default.t:1:9::")]
    assert [was_known for _, was_known in answers] == [False, False, False, True]
    replica.is_away = True
    assert (await get("default.t:1:9::"))[1]
    # By the arguments as they came, which is where every call is looked for first, it is not found.
    codec = metastore.codecs.tjson
    arguments = METHODS["get_table_statistics_req"].arguments(TableStatsRequest(*ON, ["a"], None, "default.t:1:9::"))
    asked = ("tjson", "2.3", "get_table_statistics_req", codec.encode(arguments))
    assert replica.cache.reading(asked, codec, None).key != asked


@in_loop
async def test_readers_share_a_table_where_the_same_is_true_of_its_statistics(metastore):
    writer = Writer(metastore)
    table = transactional_table("t")
    table.parameters |= {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "DO_NOT_UPDATE_STATS": "true"}
    table.writeId = 2
    writer.call("create_table", table)
    for _ in range(3):
        writer.commit(writer.begin()[0])
    replica, table_id = Replica(metastore), writer.seen()[1]

    async def get(seen):
        request = GetTableRequest(*ON, validWriteIdList=seen and f"default.t:{seen}", id=table_id)
        payload, was_known = await replica.get("get_table_req", request)
        result = metastore.codecs.tjson.decode(METHODS["get_table_req"].result, payload)
        return result.success.table.isStatsCompliant, was_known

    asked = ["3:9::", "2:9::", "1:9::", None, "1:9::", "3:2:2:", "3:9::", None]
    assert [await get(seen) for seen in asked] == [
        (True, False),
        (True, True),
        # All that it sees is in the answer that is kept, which is another one all the same.
        (False, False),
        (None, False),
        (False, True),
        (False, True),
        (True, False),
        (None, True),
    ]


@in_loop
async def test_whether_a_partitions_statistics_hold_is_an_answer_to_one_list(metastore, writer):
    replica = Replica(metastore)
    writer.add("1")
    for _ in range(2):
        writer.commit(writer.begin()[0])
    table_id = writer.seen()[1]

    async def get(seen, method, make):
        request = make(seen and f"default.t:{seen}", table_id)
        return (await replica.get(method, request))[1]

    def of_partition(text, table_id):
        return GetPartitionRequest(None, *ON, ["1"], text, table_id)

    def of_names(text, table_id):
        return GetPartitionsByNamesRequest(*ON, ["ds=1"], get_col_stats=True, validWriteIdList=text, id=table_id)

    for method, make in (("get_partition_req", of_partition), ("get_partitions_by_names_req", of_names)):
        known = [await get(seen, method, make) for seen in ("2:9::", "1:9::", None, "2:9::", "1:9::")]
        assert known == [False, False, False, True, True]


@in_loop
async def test_requests_without_a_place_for_the_id_take_it_from_the_header(metastore, writer):
    replica = Replica(metastore)
    text, table_id = writer.seen()
    request = PrimaryKeysRequest(*ON, validWriteIdList=text)
    for was_known in (False, True):
        found = await replica.get("get_primary_keys", request, sent=f"{text};id={table_id}")
        assert found[1] is was_known
    questions = replica.questions
    assert (await replica.get("get_primary_keys", request, sent=f"{text};id={table_id}"))[1]
    assert replica.questions == questions


@in_loop
async def test_tables_without_write_ids_are_asked_for_as_ever(tmp_path, metastore):
    writer, replica = Writer(metastore), Replica(metastore)
    writer.create(is_transactional=False)
    header = writer.header()
    for value in ("1", "2"):
        writer.add(value)
        assert f"ds={value}".encode() in (await replica.get("get_partition_names", *ON, -1, sent=header))[0]
    questions = replica.questions
    assert (await replica.get("get_partition_names", *ON, -1, sent=header))[1]
    assert replica.questions > questions


@in_loop
async def test_a_list_of_another_table_does_not_count(metastore, writer):
    replica = Replica(metastore)
    text, table_id = writer.seen()
    header = f"{text.replace('default.t', 'default.u')};id={table_id}"
    await replica.get("get_partition_names", *ON, -1, sent=writer.header())
    writer.add("1")
    assert b"ds=1" in (await replica.get("get_partition_names", *ON, -1, sent=header))[0]


@in_loop
async def test_changes_without_a_write_id_are_seen_within_a_second(metastore, writer):
    replica = Replica(metastore)
    header = writer.header()
    await replica.get("get_partition_names", *ON, -1, sent=header)
    await asyncio.sleep(0)  # the event loop's next round
    writer.add("1")
    assert b"ds=1" not in (await replica.get("get_partition_names", *ON, -1, sent=header))[0]
    replica.clock.advance(1)
    await replica.get("get_partition_names", *ON, -1, sent=header)
    await asyncio.sleep(0)  # the event loop's next round
    assert b"ds=1" in (await replica.get("get_partition_names", *ON, -1, sent=header))[0]


@pytest.mark.parametrize(
    "sent",
    ["nonsense", "default.t:x::", "default.t:1:1::;17", "default.t:1:1::;id=", "default.t:1:1::;id=-1", ":::;id=1"],
)
def test_a_header_that_cannot_be_read_is_an_error(metastore, sent):
    replica = Replica(metastore)
    with pytest.raises(InvalidList):
        replica.cache.reading(("tjson", "2.3", "get_table", b""), metastore.codecs.tjson, sent.encode())


@pytest.mark.parametrize("ids", ["1-10001", ",".join(map(str, range(1, 10_002)))])
def test_long_lists_are_not_compared(metastore, ids):
    replica = Replica(metastore)
    sent = f"default.t:20000:1:{ids}:;id=1"
    assert replica.cache.reading(("tjson", "2.3", "get_table", b""), metastore.codecs.tjson, sent.encode()) is None


@pytest.mark.slow
@in_loop
async def test_lists_take_their_part_of_the_memory(metastore, writer):
    replica = Replica(metastore)
    replica.cache = ReplyCache(replica, Limits(cache_bytes_max=100_000), replica.read)
    _, table_id = writer.seen()
    sizes = []
    for number in range(200):
        request = GetTableRequest(*ON, validWriteIdList=f"default.t:{number}:1:1:", id=table_id)
        await replica.get("get_table_req", request)
        sizes.append(replica.cache.size_bytes)
    assert max(sizes) <= 100_000
    assert len(replica.cache) == 1


@in_loop
async def test_kept_apart_a_reader_without_a_list_does_not_get_what_one_with_a_list_brought_in(metastore, writer):
    replica = Replica(metastore)
    replica.cache = ReplyCache(replica, Limits(), replica.read, keeps_apart=True)
    header = writer.header()
    assert [(await replica.get("get_table", *ON, sent=header))[1] for _ in range(2)] == [False, True]
    assert not (await replica.get("get_table", *ON))[1]


@in_loop
async def test_kept_apart_a_list_of_another_table_gets_nothing_that_is_kept(metastore, writer):
    """The call itself refuses it."""
    replica = Replica(metastore)
    replica.cache = ReplyCache(replica, Limits(), replica.read, keeps_apart=True)
    header = writer.header()
    assert [(await replica.get("get_table", *ON, sent=header))[1] for _ in range(2)] == [False, True]
    assert not (await replica.get("get_table", *ON, sent=header.replace("default.t", "default.u")))[1]


@in_loop
async def test_a_table_that_came_under_the_name_meanwhile_is_not_kept_under_the_first_ones_id(metastore, writer):
    """The first one may come back by a rename. Found by the simulation."""
    replica = Replica(metastore)
    reading = replica.cache.reading(("tjson", "2.3", "get_partition_names", b"x"), None, writer.header().encode())
    tagged = replica.cache.tag_reading(reading)
    tagged()
    tagged.confirm()
    assert tagged.tag is not None
    writer.call("drop_table", *ON, False)
    writer.create()
    tagged.confirm()
    assert tagged.tag is None


class LossyWatch:
    """The watch of a database that shows changes before they last; `is_lost` when the connection is gone."""

    sees_lasting_only = False

    def __init__(self, replica):
        self.replica = replica
        self.is_lost = False
        self.here, self.there = socket.socketpair()

    def fileno(self):
        return self.here.fileno()

    def ask(self):
        if self.is_lost:
            raise StoreUnavailable("the connection is lost")
        self.there.send(b"!")

    def answer(self):
        self.here.recv(1)
        return self.replica.version()

    def close(self):
        self.here.close()
        self.there.close()


def watched_replica(metastore):
    """A replica that asks a LossyWatch for changes, and this watch."""
    replica = Replica(metastore)
    watch = LossyWatch(replica)
    replica.data_version = lambda: None
    replica.version_watch = lambda: watch
    replica.cache = ReplyCache(replica, Limits(), replica.read, monotonic=lambda: replica.clock.seconds())
    return replica, watch


@in_loop
async def test_what_a_lost_connection_may_have_lost_is_not_served(metastore, writer):
    replica, watch = watched_replica(metastore)
    header = writer.header()
    # Tags count only once a loss would be noticed.
    assert not (await replica.get("get_table", *ON, sent=header))[1]
    assert await until_known(replica, header)
    watch.is_lost = True
    replica.clock.advance(1)
    assert (await replica.get("get_table", *ON, sent=header))[1]
    for _ in range(ROUNDS_MAX):
        await asyncio.sleep(0)
        if len(replica.cache) == 0:
            break
    assert not (await replica.get("get_table", *ON, sent=header))[1]
    replica.cache.close()


@in_loop
async def test_another_verdict_that_comes_under_the_key_meanwhile_is_not_served(metastore, writer):
    replica, _ = watched_replica(metastore)
    assert await until_known(replica, writer.header())
    codec, cache = metastore.codecs.tjson, replica.cache
    arguments = METHODS["get_table_req"].arguments(GetTableRequest(*ON, validWriteIdList="default.t:1:9::", id=1))
    reading = cache.reading(("tjson", "2.3", "get_table_req", codec.encode(arguments)), codec, None)
    tagged = cache.tag_reading(reading)
    tagged.tag = Tag(reading.scope, 1, cache.version, None)
    cache.remember(reading.key, arguments, b"without write ids", cache.ticket(), tagged)
    found = cache.lookup_for(reading)
    tagged.tag = Tag(reading.scope, 1, cache.version, reading.valid, (2, True))
    cache.remember(reading.key, arguments, b"holds", cache.ticket(), tagged)
    assert await found is None
    cache.close()


async def until_known(replica, header):
    for _ in range(ROUNDS_MAX):
        if (await replica.get("get_table", *ON, sent=header))[1]:
            return True
        replica.clock.advance(1)
        await asyncio.sleep(0.001)
    return False
