"""H2: no call is worse than linear. Twice as long a text, or twice as many elements, is at most twice the work.

The work is what Python executes, in lines, so it is the same on every machine. What single calls into C cost is not
seen here: `test_long_patterns.py` and its like look at those. By default each second method is tried with one of its
texts or lists, another one for each method; `make test-all` tries all of them (330,000: an hour of one processor).
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import pytest

from hms_gateway.composition.main import Metastore
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import Method
from hms_gateway.rpc.wire import MessageType
from hms_gateway.rpc.wire.message import ApplicationError
from tests.attacks.argument_texts import PREFIXES, SHAPES, list_places, long_text, places
from tests.attacks.work import SLACK_STEPS, Watched, Work, count, is_linear, open_watched_metastore
from tests.handlers.test_bad_input import forgetful, meant
from tests.support.sample import WHOLE, sample

pytestmark = pytest.mark.slow

T = TypeVar("T")

CHARACTERS = (1_000, 2_000, 4_000)
ELEMENTS = (50, 100, 200)
METHODS = methods_of(Dialect.HIVE_4)
NAMES = list(METHODS)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with open_watched_metastore(tmp_path_factory.mktemp("work")) as opened:
        opened.metastore.store.write = forgetful(opened.metastore.store.write)  # type: ignore[method-assign]
        yield opened


class Case(NamedTuple):
    """`filled` makes the arguments for a length; `place` is where in them the text or list lies."""

    place: str
    name: str
    filled: Callable[[int], list[Any]]


@pytest.mark.parametrize("name", sample(NAMES[::4], of=NAMES))
def test_a_text_of_twice_the_length_is_at_most_twice_the_work(watched: Watched, name: str) -> None:
    assert_linear(watched, METHODS[name], chosen(name, list(text_cases(METHODS[name]))), CHARACTERS)


@pytest.mark.parametrize("name", sample(NAMES[2::4], of=NAMES))
def test_a_list_of_twice_the_elements_is_at_most_twice_the_work(watched: Watched, name: str) -> None:
    assert_linear(watched, METHODS[name], chosen(name, list(list_cases(METHODS[name]))), ELEMENTS)


def test_work_that_is_not_linear_is_seen() -> None:
    def quadratic(count: int) -> int:
        return sum(number for _ in range(count) for number in range(count))

    work = Work()
    with work.watching():
        counted = [count(work, lambda count=each: quadratic(count)) for each in ELEMENTS]
    assert not is_linear(counted)
    with work.watching():
        counted = [count(work, lambda count=each: sum(number for number in range(count))) for each in CHARACTERS]
    assert is_linear(counted)


def text_cases(method: Method) -> Iterator[Case]:
    for place in places(meant(method), method.definition.arguments):
        for number, shape in enumerate(SHAPES):
            for prefix in ("", PREFIXES[number % len(PREFIXES)]):
                yield Case(
                    place.path,
                    f"{prefix}{shape}…",
                    lambda length, place=place, shape=shape, prefix=prefix: place.filled(
                        long_text(shape, length, prefix)
                    ),
                )


def list_cases(method: Method) -> Iterator[Case]:
    for place in list_places(meant(method), method.definition.arguments):
        yield Case(place.path, "elements", place.filled)


def chosen(name: str, every: Sequence[T]) -> Sequence[T]:
    stride = 1 if WHOLE else max(1, len(every))
    return every[zlib.crc32(name.encode()) % stride :: stride]


def assert_linear(watched: Watched, method: Method, cases: Sequence[Case], sizes: tuple[int, int, int]) -> None:
    warmed = None
    for case in cases:
        if case.place != warmed:  # What is made once, such as statements, is not part of the work.
            answer(watched.metastore, method, case.filled(sizes[0]))
            warmed = case.place
        shortest, longest = (count_answer(watched, method, case, size) for size in (sizes[0], sizes[2]))
        if longest - shortest > SLACK_STEPS:  # Most work does not grow, and needs no other length.
            counted = [count_answer(watched, method, case, size) for size in sizes]
            if not is_linear(counted):  # Such as threads that help from some number on: a step, which does not grow.
                counted = [count_answer(watched, method, case, 4 * size) for size in sizes]
            assert is_linear(counted), (method.name, case.place, case.name, counted)


def count_answer(watched: Watched, method: Method, case: Case, size: int) -> int:
    return count(watched.work, lambda: answer(watched.metastore, method, case.filled(size)))


def answer(metastore: Metastore, method: Method, values: list[Any]) -> None:
    codec = metastore.codecs.binary
    before, after = codec.envelope(method.name, MessageType.CALL, 1)
    payload = codec.encode(method.arguments(*values))
    assert isinstance(payload, bytes)
    try:
        message = codec.read_message(before + payload + after)
    except ApplicationError:
        return
    reply = metastore.processor.process(codec, message, Call("ann", dialect=Dialect.HIVE_4))
    if reply.payload is not None and not isinstance(reply.payload, bytes):
        for _ in reply.payload:
            pass
