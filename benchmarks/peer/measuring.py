"""Operations and their turns: each operation is measured on every side in turns, in several rounds."""

import statistics
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from benchmarks.peer.caller import Caller, Prepared
from benchmarks.peer.load import LoadProcess, MakeScript
from benchmarks.peer.sides import OTHERS, Bench, Side
from benchmarks.peer.usage import Used

SINGLE_CALLS_MAX = 400


@dataclass(frozen=True, slots=True)
class Turn:
    """One side once. Latencies in seconds; `used` is over `units` calls (or pairs of calls)."""

    latencies: Sequence[float]
    per_second: float
    used: Used | None = None
    units: int = 0
    generator_busy: float | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How long and how often. A side that has used `side_seconds_max` for one operation has no more rounds of it."""

    rounds: int = 5
    seconds: float = 0.8
    warm_seconds: float = 5.0  # of the turn that is not counted, where many clients change things: Java compiles then
    single_seconds: float = 0.25
    side_seconds_max: float = 30.0


class Operation(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def clients(self) -> int: ...

    @property
    def sides(self) -> Sequence[str]:
        """The sides that it can be measured on."""
        ...

    def turns(self, bench: Bench, side: Side, pace: Pace) -> Generator[Turn]:
        """The first turn is for warming up and not counted. Is closed when enough were taken."""
        ...


@dataclass(frozen=True, slots=True)
class Single:
    """One client making one prepared call again and again, after a change by `before` whose time is not taken.

    With `varied` it asks for something else each time, whose reply has the same size: then nothing is cached.
    `prepare` gives the call and how many values its reply lists, which has to be the same on all sides.
    """

    name: str
    prepare: Callable[[Side, Caller], tuple[Prepared, int]]
    before: Callable[[Side, Caller], Callable[[], None]] | None = None
    varied: Callable[[Caller, int], bytes] | None = None
    clients: int = 1
    sides: Sequence[str] = OTHERS
    asked: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def turns(self, bench: Bench, side: Side, pace: Pace) -> Generator[Turn]:
        with side.caller() as caller:
            prepared, self.counts[side.name] = self.prepare(side, caller)
            assert len(set(self.counts.values())) == 1, f"{self.name}: {self.counts}"
            change = None if self.before is None else self.before(side, caller)
            while True:
                yield self._turn(side, caller, prepared, change, pace.single_seconds)

    def _turn(
        self, side: Side, caller: Caller, prepared: Prepared, change: Callable[[], None] | None, seconds: float
    ) -> Turn:
        caller.renew()
        latencies: list[float] = []
        before, end = side.used(), perf_counter() + seconds
        while not latencies or (perf_counter() < end and len(latencies) < SINGLE_CALLS_MAX):
            if change is not None:
                change()
            if self.varied is not None:
                self.asked[side.data] = self.asked.get(side.data, 0) + 1
                prepared = prepared._replace(sent=self.varied(caller, self.asked[side.data]))
            latencies.append(caller.timed(prepared))
        used = None if change is not None else side.used().since(before)
        return Turn(latencies, len(latencies) / sum(latencies), used, len(latencies))


@dataclass(frozen=True, slots=True)
class Loaded:
    """Many clients at once. `scripts` gives one for each; latencies are of the units named `label`."""

    name: str
    clients: int
    scripts: Callable[[Side, Caller, int], Sequence[MakeScript]]
    label: str = "call"
    sides: Sequence[str] = OTHERS
    is_warmed: bool = False
    factor: float = 1.0  # how many times as long as others a turn takes
    is_rate_of_label: bool = False  # else the rate is of all units

    def turns(self, bench: Bench, side: Side, pace: Pace) -> Generator[Turn]:
        with side.caller() as caller:
            made = self.scripts(side, caller, self.clients)
            always = self.factor * pace.seconds
            # The real metastore opens its store anew for each connection.
            warm_up = always if self.is_warmed else always / 10
            seconds = pace.warm_seconds if self.is_warmed else always
            while True:
                with LoadProcess(side.addresses, side.speech, made, seconds, warm_up) as load:
                    before = side.used()
                    seen = load.run()
                    used = side.used().since(before)
                latencies = seen.latencies.get(self.label, [])
                counted = [latencies] if self.is_rate_of_label else seen.latencies.values()
                rate = sum(map(len, counted)) / seen.seconds
                yield Turn(latencies, rate, used, seen.units, seen.busy)
                seconds = always


@dataclass(frozen=True, slots=True)
class Steps:
    """One client doing something different each time. `steps` yields the latencies of a turn."""

    name: str
    steps: Callable[[Bench, Side, Caller], Iterator[list[float]]]
    clients: int = 1
    sides: Sequence[str] = OTHERS

    def turns(self, bench: Bench, side: Side, pace: Pace) -> Generator[Turn]:
        with side.caller() as caller:
            steps = self.steps(bench, side, caller)
            while (latencies := next(steps, None)) is not None:
                yield Turn(latencies, len(latencies) / sum(latencies))
                caller.renew()


def measured(
    operation: Operation, bench: Bench, pace: Pace, sides: Sequence[Side], report: Callable[[str], None]
) -> dict[str, list[Turn]]:
    """Turns of each side. Sides whose turn fails have none, and `report` says why."""
    turns: dict[str, list[Turn]] = {side.name: [] for side in sides}
    used = dict.fromkeys(turns, 0.0)
    running = {side.name: operation.turns(bench, side, pace) for side in sides}
    for number in range(pace.rounds + 1):
        for name in list(running)[:: 1 if number % 2 else -1]:
            # A turn that alone takes most of the time is not spent on warming up.
            if used[name] > pace.side_seconds_max and turns[name]:
                continue
            begin = perf_counter()
            try:
                turn = next(running[name])
            except StopIteration:
                running.pop(name)
                continue
            except Exception as error:
                report(f"{operation.name}, {name}: {error!r}"[:2000])
                running.pop(name).close()
                continue
            took = perf_counter() - begin
            used[name] += took
            if number or took > pace.side_seconds_max:
                turns[name].append(turn)
    for turn_maker in running.values():
        turn_maker.close()
    return turns


def percentile(latencies: Sequence[float], share: float) -> float:
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")
