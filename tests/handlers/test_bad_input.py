"""Every method with every argument made bad, one at a time: a result or a declared exception, never our own error.

The arguments come from the IDL (`bad_values`). Nothing lasts: each unit of work is undone, so all calls find the same
catalog.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.idl import Field
from hms_gateway.rpc.structs import METHODS, Method
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.settings import Settings
from tests.handlers.bad_catalog import MEANT, REFUSED, fill
from tests.handlers.bad_values import HALF_PAIR, template, variants
from tests.support.sample import WHOLE, sample

pytestmark = pytest.mark.slow

T = TypeVar("T")

# Big structs have thousands of variants. A sample has every so many of them, from another one each time.
_CALLS_MAX = 5
_EVERY_ON_SERVERS = sample(3, of=1)

_NEWER = [name for name, method in methods_of(Dialect.HIVE_4).items() if method is not METHODS[name]]
METHOD_AND_DIALECT = [
    *((method, Dialect.HIVE_2_3) for method in METHODS),
    *((method, Dialect.HIVE_4) for method in _NEWER),
]


class Undone(Exception):
    """Raised at the end of every unit of work."""


def forgetful(write: Callable[[Callable[[Any], T]], T]) -> Callable[[Callable[[Any], T]], T]:
    """A store's `write` that tells what the work gave and undoes it."""

    def pretend(work: Callable[[Any], T]) -> T:
        given: list[T] = []

        def undone(transaction: Any) -> T:
            given[:] = [work(transaction)]
            raise Undone

        try:
            return write(undone)
        except Undone:
            return given[0]

    return pretend


on_sqlite = pytest.mark.parametrize("metastore", ["sqlite"], indirect=True)
on_servers = pytest.mark.parametrize(
    "metastore",
    [
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.whole]),
    ],
    indirect=True,
)


@pytest.fixture(scope="module")
def metastore(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    folder: Path = tmp_path_factory.mktemp("bad")
    url = None
    if request.param != "sqlite":
        url = request.getfixturevalue(f"{request.param}_database_of_module")
    metastore = build_metastore(
        Settings(data_dir=folder, file_systems={"file": "ignore"}, database_url=url, administrators=["ann"])
    )
    fill(metastore)
    metastore.store.write = forgetful(metastore.store.write)  # type: ignore[method-assign, assignment]
    yield metastore
    metastore.store.close()


@on_sqlite
@pytest.mark.parametrize(("name", "dialect"), METHOD_AND_DIALECT)
def test_the_answer_is_a_result_or_a_declared_exception(
    metastore: Metastore, name: str, dialect: Dialect, caplog: pytest.LogCaptureFixture
) -> None:
    check(metastore, name, dialect, caplog)


@on_sqlite
@pytest.mark.parametrize(("name", "dialect"), METHOD_AND_DIALECT)
def test_a_call_that_is_meant_so_gets_through(metastore: Metastore, name: str, dialect: Dialect) -> None:
    """Or the variants of it would all be refused for one and the same reason."""
    check_meant(metastore, name, dialect)


@on_servers
def test_servers_have_answers_of_the_same_kind(metastore: Metastore, caplog: pytest.LogCaptureFixture) -> None:
    for name, dialect in METHOD_AND_DIALECT[::_EVERY_ON_SERVERS]:
        check_meant(metastore, name, dialect)
        check(metastore, name, dialect, caplog)


def check(metastore: Metastore, name: str, dialect: Dialect, caplog: pytest.LogCaptureFixture) -> None:
    method = methods_of(dialect)[name]
    for values in chosen(method):
        outcome = answer(metastore, method, values, dialect)
        assert outcome in expected(method), (name, outcome, values)
    assert not [record for record in caplog.records if record.levelname == "ERROR"], name


def check_meant(metastore: Metastore, name: str, dialect: Dialect) -> None:
    method = methods_of(dialect)[name]
    assert (answer(metastore, method, meant(method), dialect) == "ok") is (name not in REFUSED), name


def meant(method: Method) -> list[Any]:
    return [template(field, MEANT.get(method.name, {})) for field in method.definition.arguments]


def chosen(method: Method) -> Iterator[list[Any]]:
    """The calls with one thing made bad; of very many a part that differs from method to method."""
    values, fields = meant(method), method.definition.arguments
    every = list(_calls(values, fields))
    stride = 1 if WHOLE else max(1, len(every) // _CALLS_MAX)
    return iter(every[sum(map(ord, method.name)) % stride :: stride])


def _calls(values: list[Any], fields: tuple[Field, ...]) -> Iterator[list[Any]]:
    for position, field in enumerate(fields):
        for variant in variants(values[position], field.type):
            yield [*values[:position], variant, *values[position + 1 :]]


def expected(method: Method) -> set[str]:
    """`ok`, the declared exceptions by name, and what the protocol says of malformed arguments.

    INTERNAL_ERROR is never among them: it says that a method was not prepared for what it was sent.
    """
    return {"ok", "PROTOCOL_ERROR", *(field.type.name for field in method.definition.throws)}  # type: ignore[union-attr]


def answer(metastore: Metastore, method: Method, values: list[Any], dialect: Dialect) -> str:
    """The name of the outcome: `ok`, an exception in its declared place, or an application exception's type."""
    codec = metastore.codecs.tjson
    before, after = codec.envelope(method.name, MessageType.CALL, 1)
    payload = codec.encode(method.arguments(*values))
    assert isinstance(payload, bytes)
    payload = payload.replace(HALF_PAIR.encode(), rb"\ud800")
    message = codec.read_message(before + payload + after)
    reply = metastore.processor.process(codec, message, Call("ann", dialect=dialect))
    if reply.payload is None or reply.type is MessageType.EXCEPTION:
        return reply.outcome
    encoded = reply.payload if isinstance(reply.payload, bytes) else b"".join(reply.payload)
    result: Any = codec.decode(method.result, encoded)
    raised = (getattr(result, field.name) for field in method.definition.throws)
    return next((type(one).__name__ for one in raised if one is not None), "ok")
