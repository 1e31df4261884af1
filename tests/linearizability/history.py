"""What clients did and were told, written down while it happens, so that nothing is lost with a process that is killed.

Times are nanoseconds of the machine's monotonic clock, which all processes share.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

NEVER: Final = 2**63


class Unknown(Exception):
    """Nobody can say what became of a call, such as when the connection broke before the answer."""


class NotMade(Exception):
    """The call surely did not happen: nobody was there to take it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer of a call that was refused: the exception's name, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """`answer` counts only when `returned` is not NEVER. `world` separates objects that have nothing in common.

    `ended` is when whoever made or served a call without an answer was dead.
    """

    world: int
    client: int
    name: str
    arguments: tuple[Any, ...]
    answer: Any
    invoked: int
    returned: int
    ended: int = NEVER

    @property
    def is_answered(self) -> bool:
        return self.returned != NEVER

    @property
    def failure(self) -> Failure | None:
        return self.answer if isinstance(self.answer, Failure) else None


class Journal:
    """One client's calls as lines of a file: what is called, and then what was answered."""

    def __init__(self, path: Path, client: int) -> None:
        self._file = path.open("ab", buffering=0)
        self._client = client
        self.world = 0
        self.count = 0

    def record(self, name: str, arguments: tuple[Any, ...], call: Callable[[], Any], refusals: type[Exception]) -> Any:
        """Make the call; its result, or a Failure for one of `refusals`.

        Raises Unknown, noted as no answer, and NotMade.
        """
        self.count += 1
        invoked = time.monotonic_ns()
        self._write([self.world, self._client, name, arguments, invoked])
        try:
            answer: Any = call()
        except NotMade:
            self._write([None, 0])
            raise
        except Unknown:
            self._write([None, time.monotonic_ns()])
            raise
        except refusals as error:
            answer = Failure(type(error).__name__.removesuffix("Exception"), getattr(error, "message", None) or "")
        returned = time.monotonic_ns()
        shown = ["failed", answer.name, answer.text] if isinstance(answer, Failure) else ["ok", answer]
        self._write([shown, returned])
        return answer

    def died(self) -> None:
        """Note that the client is dead; to be called by somebody else."""
        self._write([None, time.monotonic_ns()])

    def _write(self, line: list[Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")


def read_journals(paths: Iterable[Path]) -> list[Call]:
    """The calls of all journals in order of invocation."""
    return sorted((call for path in paths for call in _calls(path)), key=lambda call: call.invoked)


def by_world(calls: Iterable[Call]) -> dict[int, list[Call]]:
    worlds: dict[int, list[Call]] = {}
    for call in calls:
        worlds.setdefault(call.world, []).append(call)
    return worlds


def answered(calls: Iterable[Call], name: str) -> list[Call]:
    """Those of this name that were answered and not refused."""
    return [call for call in calls if call.name == name and call.is_answered and call.failure is None]


def shown(calls: Iterable[Call]) -> str:
    """A history to read, one line for each call, times in microseconds from its begin."""
    listed = list(calls)
    begin = min((call.invoked for call in listed), default=0)
    return "\n".join(_shown(call, begin) for call in listed)


def _shown(call: Call, begin: int) -> str:
    end = (call.returned - begin) // 1000 if call.is_answered else "never"
    return f"{(call.invoked - begin) // 1000}..{end} client {call.client}: {call.name}{call.arguments} -> {call.answer}"


def _calls(path: Path) -> Iterator[Call]:
    made: Call | None = None
    for line in path.read_bytes().splitlines():
        read = _frozen(json.loads(line))
        if len(read) == 2:
            if made is not None:
                yield from _ended(made, *read)
            made = None
        else:
            assert made is None
            world, client, name, arguments, invoked = read
            made = Call(world, client, name, arguments, None, invoked, NEVER)
    if made is not None:
        yield made


def _ended(made: Call, outcome: Any, time_ns: int) -> Iterator[Call]:
    if outcome is not None:
        kind, *told = outcome
        yield replace(made, answer=Failure(*told) if kind == "failed" else told[0], returned=time_ns, ended=time_ns)
    elif time_ns:
        yield replace(made, ended=time_ns)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
