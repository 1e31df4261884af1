"""Replies that are produced while they are sent, chunk by chunk: one at a time, of users in turn."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest

from hms_gateway.gateway.calls import dispatcher, streaming
from hms_gateway.gateway.calls.streaming import PIECE_BYTES, MakingTurns, SendingTurns
from tests.gateway.serving import CALL, CannedProcessor, post, read_all, running
from tests.support.patience import PATIENCE_SECONDS, until

BEFORE, AFTER = b'[1,"get_all_databases",2,1,', b"]"


class Chunks:
    """An iterator that tells where it is and whether it was closed, and by which threads it was used."""

    def __init__(self, chunks, fails_at=None) -> None:
        self.chunks = list(chunks)
        self.position = 0
        self.fails_at = fails_at
        self.closed = threading.Event()
        self.threads = set()

    def __iter__(self):
        return self

    def __next__(self):
        self.threads.add(threading.get_ident())
        if self.position == self.fails_at:
            raise OSError("the database went away")
        if self.position == len(self.chunks):
            raise StopIteration
        self.position += 1
        return self.chunks[self.position - 1]

    def close(self):
        self.threads.add(threading.get_ident())
        self.closed.set()


@pytest.mark.slow
def test_chunks_are_sent_inside_the_envelope_and_the_iterator_is_closed():
    chunks = Chunks([b'{"0":{"lst":["i32",2', b",1", b",2]}}"])
    with running(CannedProcessor(get_all_databases=chunks)) as server:
        reply = httpx.post(server.url, content=CALL)
        assert reply.headers["transfer-encoding"] == "chunked"
        assert reply.content == BEFORE + b"".join(chunks.chunks) + AFTER
        assert chunks.closed.wait(PATIENCE_SECONDS)
        until(lambda: server.metrics.streams_in_flight == 0 and server.metrics.calls_in_flight == 0)


def test_one_thread_makes_the_reply_from_the_call_to_the_close():
    chunks = Chunks([b"a"] * 10)
    called_in = []
    processor = CannedProcessor(
        get_all_databases=lambda message, call: called_in.append(threading.get_ident()) or chunks
    )
    with running(processor) as server:
        httpx.post(server.url, content=CALL)
        assert chunks.closed.wait(PATIENCE_SECONDS)
        assert chunks.threads == set(called_in)


def test_a_stream_is_compressed_when_asked():
    chunks = Chunks([b"x" * 10_000] * 20)
    with running(CannedProcessor(get_all_databases=chunks)) as server:
        reply = httpx.post(server.url, content=CALL, headers={"Accept-Encoding": "gzip"})
        assert reply.headers["content-encoding"] == "gzip"
        assert reply.content == BEFORE + b"x" * 200_000 + AFTER
        assert chunks.closed.is_set()


def test_a_client_that_leaves_closes_the_iterator():
    chunks = Chunks([b"x" * 1_000_000] * 1000)
    with running(CannedProcessor(get_all_databases=chunks)) as server:
        with server.connect() as connection:
            connection.sendall(post(CALL))
            connection.recv(1000)
        assert chunks.closed.wait(PATIENCE_SECONDS)
        assert chunks.position < 1000
        until(lambda: server.metrics.streams_in_flight == 0)


def test_little_is_produced_ahead_of_a_client_that_does_not_read():
    chunks = Chunks([b"x" * 1_000_000] * 1000)
    with running(CannedProcessor(get_all_databases=chunks)) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        connection.recv(1000)
        httpx.get(f"{server.root}/healthz")
        assert chunks.position < 50


@pytest.mark.slow
def test_a_client_that_takes_nothing_for_too_long_is_cut_off():
    chunks = Chunks([b"x" * 1_000_000] * 1000)
    with running(CannedProcessor(get_all_databases=chunks), write_stall_seconds_max=0.05) as server:
        with server.connect() as connection:
            connection.sendall(post(CALL))
            assert chunks.closed.wait(PATIENCE_SECONDS)
        assert chunks.position < 1000


@pytest.mark.slow
def test_a_failure_in_the_middle_breaks_the_connection_off():
    chunks = Chunks([b"x" * 100] * 10, fails_at=5)
    with running(CannedProcessor(get_all_databases=chunks)) as server:
        with server.connect() as connection:
            connection.sendall(post(CALL))
            received = read_all(connection)
        assert b"200 OK" in received
        assert not received.endswith(b"0\r\n\r\n")
        assert chunks.closed.is_set()
    assert server.log_lines()[0]["outcome"] == "stream_failed"


def test_too_many_streams_are_503():
    chunks = [Chunks([b"x" * 1_000_000] * 1000), Chunks([b"x" * 1_000_000] * 1000)]
    waiting = iter(chunks)
    processor = CannedProcessor(get_all_databases=lambda message, call: next(waiting))
    with running(processor, streams_max=1) as server, server.connect() as connection:
        connection.sendall(post(CALL))
        connection.recv(1000)
        refused = httpx.post(server.url, content=CALL)
        assert refused.status_code == 503
        assert chunks[1].closed.wait(PATIENCE_SECONDS)


def test_a_long_reply_waits_a_moment_for_another_one_of_its_user(monkeypatch):
    monkeypatch.setattr(dispatcher, "LATE_SECONDS_MAX", 60.0)
    begun = iter([Chunks([b"x" * 1_000_000] * 1000), Chunks([b"{", b"}"])])
    processor = CannedProcessor(get_all_databases=lambda message, call: next(begun))
    bounds = {"streams_max": 2}
    with running(processor, **bounds) as server, server.connect() as late:
        with server.connect() as slow:
            slow.sendall(post(CALL))
            slow.recv(1000)
            late.sendall(post(CALL, "Connection: close"))
            until(lambda: len(processor.calls) == 2)
        assert read_all(late).startswith(b"HTTP/1.1 200 ")


def test_one_chunk_of_all_long_replies_is_sent_in_each_turn_of_the_loop_and_users_take_turns():
    sent: list[tuple[str, int]] = []

    async def send(turns: SendingTurns, user: str, turn_of_loop: list[int]) -> None:
        for _ in range(3):
            await turns.wait(user)
            sent.append((user, turn_of_loop[0]))

    async def run() -> None:
        loop, turns, turn_of_loop = asyncio.get_running_loop(), SendingTurns(), [0]

        def count() -> None:
            turn_of_loop[0] += 1
            loop.call_soon(count)

        count()
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            for user in ("greedy", "greedy", "greedy", "quiet"):
                tasks.create_task(send(turns, user, turn_of_loop))
            gone = tasks.create_task(send(turns, "gone", turn_of_loop))
            await asyncio.sleep(0)
            gone.cancel()

    asyncio.run(run())
    moments = [moment for _, moment in sent]
    assert len(moments) == 12
    assert len(set(moments)) == 12
    # Three replies of one user are not ahead of the one of another user.
    assert [user for user, _ in sent][:7].count("quiet") == 3


def test_of_several_long_replies_pieces_are_sent_and_one_that_is_alone_is_sent_in_chunks():
    turns, chunk = SendingTurns(), bytes(range(256)) * 600
    turns.replies = 1
    assert list(turns.pieces(chunk)) == [chunk]
    turns.replies = 2
    pieces = list(turns.pieces(chunk))
    assert [len(piece) for piece in pieces] == [PIECE_BYTES, PIECE_BYTES, len(chunk) - 2 * PIECE_BYTES]
    assert b"".join(pieces) == chunk
    assert list(turns.pieces(b"short")) == [b"short"]


def test_a_reply_in_pieces_is_whole():
    chunks = [bytes([number]) * 150_000 for number in range(20)]
    answers = iter([Chunks([b"x" * 1_000_000] * 1_000), Chunks(chunks)])

    def answer(message, call):
        return next(answers)

    with running(CannedProcessor(get_all_databases=answer)) as server, server.connect() as other:
        other.sendall(post(CALL))
        until(lambda: server.metrics.streams_in_flight == 1)
        reply = httpx.post(server.url, content=CALL)
    assert reply.content == BEFORE + b"".join(chunks) + AFTER


def test_slow_streams_do_not_take_the_threads_of_other_calls():
    def answer(message, call):
        return Chunks([b"x" * 1_000_000] * 1000)

    processor = CannedProcessor(get_all_databases=answer, get_table=b"{}")
    with running(processor, threads=2) as server:
        slow = [server.connect() for _ in range(5)]
        for connection in slow:
            connection.sendall(post(CALL))
            connection.recv(1000)
        assert httpx.post(server.url, content=b'[1,"get_table",1,1,{}]').status_code == 200
        for connection in slow:
            connection.close()


class HandLoop:
    """An event loop that calls what it was handed when the test says so."""

    def __init__(self) -> None:
        self._handed: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def call_soon_threadsafe(self, function: Callable[..., object], *arguments: object) -> None:
        self._handed.append((function, arguments))

    call_soon = call_soon_threadsafe

    def run(self) -> int:
        """How many turns it took."""
        turns = 0
        while self._handed:
            handed, self._handed = self._handed, []
            for function, arguments in handed:
                function(*arguments)
            turns += 1
        return turns


class Maker:
    """A thread that makes one chunk, and is inside from when it may until `leave`."""

    def __init__(self, turns: MakingTurns, loop: HandLoop, user: str) -> None:
        self.is_inside = threading.Event()
        self._may_leave = threading.Event()
        self._thread = threading.Thread(target=self._make, args=(turns, loop, user), daemon=True)
        self._thread.start()

    def _make(self, turns: MakingTurns, loop: HandLoop, user: str) -> None:
        with turns.of(user, loop):
            self.is_inside.set()
            assert self._may_leave.wait(PATIENCE_SECONDS)

    def leave(self) -> None:
        self._may_leave.set()
        self._thread.join(PATIENCE_SECONDS)


@pytest.fixture
def loop():
    return HandLoop()


@pytest.fixture
def turns(monkeypatch):
    monkeypatch.setattr(streaming, "CHUNK_SECONDS_MAX", 60.0)
    return MakingTurns()


def waiting(turns: MakingTurns) -> int:
    return len(turns._waiting)


def queued(turns: MakingTurns, loop: HandLoop, *users: str) -> list[Maker]:
    """Makers that wait in this order."""
    makers = []
    for user in users:
        before = waiting(turns)
        makers.append(Maker(turns, loop, user))
        until(lambda before=before: waiting(turns) == before + 1)
    return makers


def test_the_next_chunk_is_made_after_a_turn_of_the_loop(turns, loop):
    first = Maker(turns, loop, "ann")
    assert first.is_inside.wait(PATIENCE_SECONDS)
    [second] = queued(turns, loop, "ann")
    first.leave()
    assert not second.is_inside.is_set()
    assert loop.run() == 2
    assert second.is_inside.wait(PATIENCE_SECONDS)
    second.leave()


def test_users_take_turns(turns, loop):
    first = Maker(turns, loop, "greedy")
    assert first.is_inside.wait(PATIENCE_SECONDS)
    one, two, other = queued(turns, loop, "greedy", "greedy", "quiet")
    for leaving, following in ((first, one), (one, other), (other, two)):
        leaving.leave()
        loop.run()
        assert following.is_inside.wait(PATIENCE_SECONDS)
    two.leave()
    loop.run()


def test_a_reply_that_is_made_alone_waits_for_nothing(turns, loop):
    with turns.reply():
        for _ in range(3):
            with turns.of("ann", loop):
                pass
    assert loop.run() == 0


def test_of_several_replies_each_chunk_waits_for_the_loop(turns, loop):
    with turns.reply(), turns.reply():
        with turns.of("ann", loop):
            pass
        [second] = queued(turns, loop, "ann")
        loop.run()
        assert second.is_inside.wait(PATIENCE_SECONDS)
        second.leave()
        loop.run()
    # Nobody waits any more, and the last one has left.
    with turns.of("ann", loop):
        pass


def test_a_chunk_that_waits_for_a_database_holds_up_no_other(loop, monkeypatch):
    monkeypatch.setattr(streaming, "CHUNK_SECONDS_MAX", 0.001)
    turns = MakingTurns()
    with ExitStack() as slow:
        slow.enter_context(turns.of("ann", loop))
        second = Maker(turns, loop, "bo")
        assert second.is_inside.wait(PATIENCE_SECONDS)
        [third] = queued_behind(turns, loop, monkeypatch)
    # The slow one has no turn to pass on.
    assert loop.run() == 0
    assert not third.is_inside.is_set()
    second.leave()
    loop.run()
    assert third.is_inside.wait(PATIENCE_SECONDS)
    third.leave()


def queued_behind(turns: MakingTurns, loop: HandLoop, monkeypatch: pytest.MonkeyPatch) -> list[Maker]:
    """One that is not let in by the time that passes."""
    monkeypatch.setattr(streaming, "CHUNK_SECONDS_MAX", 60.0)
    return queued(turns, loop, "eve")
