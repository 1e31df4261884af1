"""Replies that are produced while they are sent: one worker thread makes the chunks, the event loop sends them.

A thread that makes chunks competes with the event loop for the interpreter, which the loop gives up some twenty times
in a call that it answers. Two such threads hand the interpreter to each other, and the loop comes third. So while
several replies are made, one chunk is made at a time, and the loop lets the next one begin when it has done what was
there to do. A reply that is made alone waits for nothing.

All long replies together send one chunk in each turn of the event loop, so that a small call waits for one at most, and
of several replies a piece of one: encrypting a whole chunk takes the loop longer than answering from the cache.
At most QUEUED_CHUNKS_MAX chunks of a reply wait in between, so memory stays flat however slow the client is. Whatever
ends the reply (its end, an error, a client that has gone), the iterator is closed in the thread that ran it.
"""

import asyncio
import contextlib
import threading
import time
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

from hms_gateway.runtime.shares import FairQueue
from hms_gateway.runtime.suspension import call_in_loop

Gate = Callable[[], contextlib.AbstractContextManager[None]]
QUEUED_CHUNKS_MAX = 4
# What is sent of a chunk in a turn of the event loop while other long replies are sent.
PIECE_BYTES = 64 * 1024
# A chunk that takes longer waits for something else than the interpreter, such as a database.
CHUNK_SECONDS_MAX = 0.02
# The event loop decides sooner; this is for one that ends meanwhile.
DECISION_SECONDS_MAX = 10.0
COMPRESSION_LEVEL = 1
# Whole replies from this size on, when the client asks for it.
COMPRESSED_FROM_BYTES = 16 * 1024
GZIP = 16 + zlib.MAX_WBITS


class StreamFailed(Exception):
    """The reply could not be finished; what was sent of it is worthless.

    `limit` is the name of the limit that cut it off, if one did.
    """

    def __init__(self, text: str, limit: str = "") -> None:
        super().__init__(text)
        self.limit = limit


class _MakingTurn:
    """The turn of one thread to make one chunk. It has a number from when it begins."""

    __slots__ = ("begins", "number")

    def __init__(self) -> None:
        self.number = 0
        self.begins = threading.Lock()
        self.begins.acquire()


class MakingTurns:
    """Used from the threads that make chunks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._replies = 0
        self._waiting: FairQueue[_MakingTurn] = FairQueue()
        # Whether a turn was given that has not ended, the number of the last one, and when it began.
        self._is_taken = False
        self._number = 0
        self._begun = 0.0

    @contextlib.contextmanager
    def reply(self) -> Iterator[None]:
        """Inside, a long reply is made."""
        with self._lock:
            self._replies += 1
        try:
            yield
        finally:
            with self._lock:
                self._replies -= 1

    @contextlib.contextmanager
    def of(self, user: str | None, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Inside, the calling thread makes a chunk for `user`."""
        turn = self._ask(user)
        while not turn.begins.acquire(timeout=CHUNK_SECONDS_MAX):
            self._pass_over()
        try:
            yield
        finally:
            self._leave(turn.number, loop)

    def _ask(self, user: str | None) -> _MakingTurn:
        turn = _MakingTurn()
        with self._lock:
            if self._is_taken:
                self._waiting.add(turn, user)
            else:
                self._take(turn)
        return turn

    def _leave(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if number != self._number:
                # Another one has the turn already.
                return
            # It stays taken until the loop has come by.
            self._is_taken = bool(self._waiting) or self._replies > 1
            is_given = self._is_taken
            self._begun = time.monotonic()
        if is_given and not call_in_loop(loop, loop.call_soon, self._give, number):
            self._give(number)

    def _give(self, number: int) -> None:
        """After the turn of this number: to the user whose last turn is the longest ago."""
        with self._lock:
            if number != self._number:
                return
            turn = self._waiting.next()
            if turn is None:
                self._is_taken = False
            else:
                self._take(turn)

    def _take(self, turn: _MakingTurn) -> None:
        """Take a turn, with the lock held."""
        self._is_taken = True
        self._number += 1
        self._begun = time.monotonic()
        turn.number = self._number
        turn.begins.release()

    def _pass_over(self) -> None:
        """One that takes too long does not keep the others waiting."""
        with self._lock:
            number, is_late = self._number, time.monotonic() - self._begun > CHUNK_SECONDS_MAX
        if is_late:
            self._give(number)


class SendingTurns:
    """Lets one chunk pass in each turn of the event loop, of users in turn. Used from the event loop's thread."""

    def __init__(self) -> None:
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()
        self._is_taken = False
        # Long replies on their way.
        self.replies = 0

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What is sent of a chunk in one turn each. A reply that is sent alone would take longer in pieces."""
        if self.replies < 2:
            yield chunk
            return
        for begin in range(0, len(chunk), PIECE_BYTES):
            yield chunk[begin : begin + PIECE_BYTES]

    async def wait(self, user: str | None) -> None:
        """Returns when it is the user's turn to send a chunk."""
        loop = asyncio.get_running_loop()
        if self._is_taken:
            turn = loop.create_future()
            self._waiting.add(turn, user)
            await turn
        else:
            self._is_taken = True
            loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Once in each turn of the loop, while chunks wait."""
        turn = self._waiting.next()
        while turn is not None and turn.done():
            # Its client has gone.
            turn = self._waiting.next()
        self._is_taken = turn is not None
        if turn is not None:
            turn.set_result(None)
            loop.call_soon(self._next, loop)


class ReplyStream:
    """The seam between the thread (`pump`) and the loop (`chunks`, `cancel`); `user` waits for its turn in `turns`."""

    def __init__(
        self,
        iterator: Iterator[bytes],
        loop: asyncio.AbstractEventLoop,
        gate: Gate = contextlib.nullcontext,
        turns: SendingTurns | None = None,
        user: str | None = None,
    ) -> None:
        self._iterator = iterator
        self._turns = turns or SendingTurns()
        self._user = user
        self._gate = gate
        self._loop = loop
        self._slots = threading.Semaphore(QUEUED_CHUNKS_MAX)
        self._queue: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._has_ended = False
        self._failure: BaseException | None = None
        self._is_cancelled = False
        # Whether it has a place among the long replies; the event loop's business.
        self.is_counted = False
        self._is_decided = threading.Event()

    def begin(self) -> None:
        """It is going to be sent."""
        self._is_decided.set()

    def wait_until_decided(self) -> None:
        """Run in the worker thread: returns when it is going to be sent, or was cancelled."""
        self._is_decided.wait(DECISION_SECONDS_MAX)

    def pump(self) -> None:
        """Run in the worker thread until everything is taken or the stream is cancelled. Never raises."""
        failure: BaseException | None = None
        try:
            while (chunk := self._next()) is not None:
                self._slots.acquire()
                if self._is_cancelled or not call_in_loop(self._loop, self._put, chunk):
                    break
        except BaseException as error:
            failure = error
        failure = self._close_iterator() or failure
        call_in_loop(self._loop, self._end, failure)

    def _next(self) -> bytes | None:
        """The next chunk, made when it is its turn."""
        with self._gate():
            return next(self._iterator, None)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks in order, or pieces of them. Raises StreamFailed."""
        while True:
            while self._queue:
                for piece in self._turns.pieces(self._queue.popleft()):
                    await self._turns.wait(self._user)
                    yield piece
                self._slots.release()
            if self._has_ended:
                break
            self._arrived.clear()
            await self._arrived.wait()
        if self._failure is not None:
            raise StreamFailed("the reply could not be finished") from self._failure

    def cancel(self) -> None:
        """Make the thread stop at its next chunk. Harmless when the stream has ended."""
        self._is_cancelled = True
        self._is_decided.set()
        self._slots.release()

    def _put(self, chunk: bytes) -> None:
        if not self._is_cancelled:
            self._queue.append(chunk)
            self._arrived.set()

    def _end(self, failure: BaseException | None) -> None:
        self._failure = failure
        self._has_ended = True
        self._arrived.set()

    def _close_iterator(self) -> BaseException | None:
        close = getattr(self._iterator, "close", None)
        if close is None:
            return None
        try:
            close()
        except BaseException as error:
            return error
        return None


def enclosed(before: bytes, chunks: Iterator[bytes], after: bytes) -> Iterator[bytes]:
    """The chunks of a result between the two halves of its envelope."""
    try:
        yield before
        yield from chunks
        yield after
    finally:
        _close(chunks)


def compressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks as one gzip member; little is held back, so that the first bytes leave early."""
    compressor = zlib.compressobj(COMPRESSION_LEVEL, wbits=GZIP)
    try:
        for chunk in chunks:
            piece = compressor.compress(chunk)
            if piece:
                yield piece
        yield compressor.flush()
    finally:
        _close(chunks)


def compress(body: bytes) -> bytes:
    return zlib.compress(body, COMPRESSION_LEVEL, wbits=GZIP)


def _close(chunks: Iterator[bytes]) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()
