"""Replies that are produced while they are sent: one worker thread makes the chunks, the event loop sends them.

At most QUEUED_CHUNKS_MAX chunks wait in between, so memory stays flat however slow the client is. Whatever ends the
reply (its end, an error, a client that has gone), the iterator is closed in the thread that ran it.
"""

import asyncio
import contextlib
import threading
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterator

from hms_gateway.runtime.event_loop import call_in_loop

Gate = threading.Semaphore | contextlib.AbstractContextManager[None]
QUEUED_CHUNKS_MAX = 4
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


class ReplyStream:
    """The seam between the thread (`pump`) and the loop (`chunks`, `cancel`)."""

    def __init__(self, iterator: Iterator[bytes], loop: asyncio.AbstractEventLoop, gate: Gate | None = None) -> None:
        self._iterator = iterator
        self._gate = gate or contextlib.nullcontext()
        self._loop = loop
        self._slots = threading.Semaphore(QUEUED_CHUNKS_MAX)
        self._queue: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._has_ended = False
        self._failure: BaseException | None = None
        self._is_cancelled = False
        # Whether it has a place among the long replies; the event loop's business.
        self.is_counted = False

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
        """The next chunk, made when no more than so many others of the user's are made."""
        with self._gate:
            return next(self._iterator, None)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks in order. Raises StreamFailed."""
        while True:
            while self._queue:
                chunk = self._queue.popleft()
                yield chunk
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
