"""Many connections at once, each following a script of prepared requests, from a process of their own.

The process connects first and waits for the word, so that neither handshakes nor its start are in what is measured.
"""

import asyncio
import gc
import itertools
import multiprocessing
import time
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection
from time import perf_counter
from typing import NamedTuple, cast

import uvloop

from benchmarks.peer.caller import Address
from benchmarks.peer.speech import Speech

FINISH_SECONDS_MAX = 60.0


class Step(NamedTuple):
    """One request of a script. `label` of the step that ends a unit of work names it; others have None.

    A unit's time begins with the step behind the one that ended the last. With `pace_seconds` the step waits until that
    long after the last unit began.
    """

    sent: bytes
    reply_bytes: int | None
    label: str | None
    pace_seconds: float = 0.0


# Yields steps, is sent the head of each reply.
Script = Generator[Step, bytes, None]
MakeScript = Callable[[int], Script]


class Loaded(NamedTuple):
    """What the generator saw within its window, latencies by label in seconds; `units` counts those outside as well."""

    latencies: dict[str, list[float]]
    seconds: float
    units: int
    busy: float  # share of a core that the generator itself used


class LoadProcess:
    """Forked; `run()` may be called once. A context manager."""

    def __init__(
        self,
        addresses: Sequence[Address],
        speech: Speech,
        scripts: Sequence[MakeScript],
        seconds: float,
        warm_up: float,
    ) -> None:
        """Clients are shared out among the addresses."""
        context = multiprocessing.get_context("fork")
        self._pipe, other = context.Pipe()
        work = (addresses, speech, scripts, seconds, warm_up, other)
        self._process = context.Process(target=_serve, args=work, daemon=True)

    def __enter__(self) -> "LoadProcess":
        self._process.start()
        self._expect("ready")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self._process.join(1.0)
            self._process.kill()
        self._process.join()

    def run(self) -> Loaded:
        self._pipe.send("go")
        return cast(Loaded, self._expect(Loaded))

    def _expect(self, wanted: object) -> object:
        received = self._pipe.recv()
        if isinstance(received, BaseException):
            raise received
        assert received == wanted or isinstance(received, Loaded), received
        return received


def _serve(
    addresses: Sequence[Address],
    speech: Speech,
    scripts: Sequence[MakeScript],
    seconds: float,
    warm_up: float,
    pipe: Connection,
) -> None:
    gc.disable()
    try:
        uvloop.run(_measure(addresses, speech, scripts, seconds, warm_up, pipe))
    except BaseException as error:
        pipe.send(RuntimeError(f"load generator: {error!r}"))


async def _measure(
    addresses: Sequence[Address],
    speech: Speech,
    scripts: Sequence[MakeScript],
    seconds: float,
    warm_up: float,
    pipe: Connection,
) -> None:
    loop = asyncio.get_running_loop()
    measured = _Measured()
    links = []
    for number, make in enumerate(scripts):
        address = addresses[number % len(addresses)]
        factory = _factory(speech, make(number), measured)
        links.append((await loop.create_connection(factory, "127.0.0.1", address.port, ssl=address.context()))[1])
    pipe.send("ready")
    await loop.run_in_executor(None, pipe.recv)
    for link in links:
        link.start()
    await _wait(warm_up, measured)
    cpu, begin = time.process_time(), perf_counter()
    measured.is_counting = True
    await _wait(seconds, measured)
    measured.is_counting = False
    elapsed, used = perf_counter() - begin, time.process_time() - cpu
    for link in links:
        link.is_stopping = True
    await asyncio.wait([link.finished for link in links], timeout=FINISH_SECONDS_MAX)
    if measured.failure is not None:
        raise measured.failure
    pipe.send(Loaded(measured.latencies, elapsed, measured.units, used / elapsed))


async def _wait(seconds: float, measured: "_Measured") -> None:
    end = perf_counter() + seconds
    while (left := end - perf_counter()) > 0 and measured.failure is None:
        await asyncio.sleep(min(left, 0.25))


def _factory(speech: Speech, script: Script, measured: "_Measured") -> Callable[[], "_Link"]:
    return lambda: _Link(speech, script, measured)


class _Measured:
    def __init__(self) -> None:
        self.latencies: dict[str, list[float]] = {}
        self.units = 0
        self.is_counting = False
        self.failure: BaseException | None = None


class _Link(asyncio.Protocol):
    """One connection with one request in flight."""

    def __init__(self, speech: Speech, script: Script, measured: _Measured) -> None:
        self._speech = speech
        self._script = script
        self._measured = measured
        self._reply = speech.reply()
        self._unit_begin = 0.0
        self._is_between_units = True
        self._step: Step
        self._transport: asyncio.Transport
        self.is_stopping = False
        self.finished = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def start(self) -> None:
        self._take(next(self._script))

    def data_received(self, data: bytes) -> None:
        try:
            if not self._reply.feed(data):
                return
        except Exception as error:
            self._fail(error)
            return
        step = self._step
        if step.label is not None:
            measured = self._measured
            measured.units += 1
            if measured.is_counting:
                took = perf_counter() - self._unit_begin
                measured.latencies.setdefault(step.label, []).append(took)
            self._is_between_units = True
            if self.is_stopping:
                self._transport.close()
                return
        self._take(self._script.send(self._reply.head))

    def connection_lost(self, exc: Exception | None) -> None:
        if not (self.is_stopping and self._is_between_units):
            self._fail(exc or ConnectionError("the server closed the connection"))
        if not self.finished.done():
            self.finished.set_result(None)

    def _take(self, step: Step) -> None:
        self._step = step
        if step.pace_seconds:
            left = max(0.0, self._unit_begin + step.pace_seconds - perf_counter())
            asyncio.get_running_loop().call_later(left, self._send)
        else:
            self._send()

    def _send(self) -> None:
        if self._is_between_units:
            if self.is_stopping:
                self._transport.close()
                return
            self._unit_begin = perf_counter()
            self._is_between_units = False
        self._reply = self._speech.reply(self._step.reply_bytes)
        self._transport.write(self._step.sent)

    def _fail(self, error: BaseException) -> None:
        if self._measured.failure is None:
            self._measured.failure = error
        self._transport.abort()


def repeating(steps: Sequence[Step], first: int = 0) -> Script:
    """The same steps over and over, beginning with the one numbered `first`."""
    for number in itertools.count(first):
        yield steps[number % len(steps)]
