"""Calls through the processor of a whole metastore on SQLite, without HTTP around it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.wire import MessageType
from hms_gateway.rpc.wire.message import TApplicationException
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.handlers.bad_catalog import fill
from tests.support.catalog import place_empty_database


@contextmanager
def open_metastore(folder: Path, **limits: int) -> Iterator[Metastore]:
    """One of everything in it (`bad_catalog`), its files left alone."""
    settings = Settings(
        data_dir=folder, file_systems={"file": "ignore"}, limits=Limits(**limits), administrators=["ann"]
    )
    place_empty_database(folder / DATABASE_FILE)
    metastore = build_metastore(settings)
    try:
        fill(metastore)
        yield metastore
    finally:
        metastore.store.close()


def answered(
    metastore: Metastore, name: str, *arguments: Any, dialect: Dialect = Dialect.HIVE_2_3
) -> tuple[str, str | None]:
    """The outcome of a call, and the text of the exception that is its answer."""
    codec, method = metastore.codecs.binary, methods_of(dialect)[name]
    before, after = codec.envelope(name, MessageType.CALL, 1)
    payload = codec.encode(method.arguments(*arguments))
    assert isinstance(payload, bytes)
    message = codec.read_message(before + payload + after)
    reply = metastore.processor.process(codec, message, Call("ann", dialect=dialect))
    if reply.payload is None:
        return reply.outcome, None
    encoded = reply.payload if isinstance(reply.payload, bytes) else b"".join(reply.payload)
    if reply.type is MessageType.EXCEPTION:
        return reply.outcome, codec.decode(TApplicationException, encoded).message
    result: Any = codec.decode(method.result, encoded)
    raised = (getattr(result, field.name) for field in method.definition.throws)
    return reply.outcome, next((one.message for one in raised if one is not None), None)
