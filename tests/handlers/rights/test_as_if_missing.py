"""What a caller may not see does not exist: every method answers about it as in a catalog that never had it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.idl.method_facts import method_rights
from hms_gateway.rpc.structs import Database
from hms_gateway.rpc.wire import MessageType
from hms_gateway.runtime.settings import Settings
from tests.handlers.bad_catalog import fill
from tests.handlers.test_bad_input import METHOD_AND_DIALECT, forgetful, meant
from tests.support.catalog import place_empty_database

# Their answers are numbers that every change moves, and say of no object that it exists.
NUMBERS = {
    *("get_current_notificationEventId", "get_open_txns", "get_open_txns_req", "get_metastore_db_uuid", "aliveSince"),
    *("getCounters", "get_open_txns_info", "open_txns", "get_catalog"),
}
# Of no database and no user, or of every user: plans, types, roles as such.
OF_EVERYBODY = {
    *("get_active_resource_plan", "get_all_resource_plans", "get_resource_plan", "get_triggers_for_resourceplan"),
    *("validate_resource_plan", "get_type", "get_type_all"),
}


def opened(folder: Path) -> Metastore:
    settings = Settings(
        data_dir=folder, file_systems={"file": "ignore"}, administrators=["ann"], authorization="grants"
    )
    place_empty_database(folder / DATABASE_FILE)
    return build_metastore(settings)


@pytest.fixture(scope="module")
def metastores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Metastore, Metastore]]:
    """One with everything, and one with nothing. Nothing that is called lasts."""
    both = opened(tmp_path_factory.mktemp("full")), opened(tmp_path_factory.mktemp("bare"))
    fill(both[0])
    for metastore in both:
        ask(metastore, "ann", "alter_database", "default", Database(name="default", ownerName="ann", ownerType=1))
        metastore.store.write = forgetful(metastore.store.write)  # type: ignore[method-assign]
    yield both
    for metastore in both:
        metastore.store.close()


def ask(metastore: Metastore, user: str, name: str, *values: Any, dialect: Dialect = Dialect.HIVE_2_3) -> Any:
    """The answer, or the exception or application exception as a text."""
    codec, method = metastore.codecs.tjson, methods_of(dialect)[name]
    before, after = codec.envelope(name, MessageType.CALL, 1)
    payload = codec.encode(method.arguments(*values))
    assert isinstance(payload, bytes)
    message = codec.read_message(before + payload + after)
    reply = metastore.processor.process(codec, message, Call(user, dialect=dialect))
    encoded = reply.payload if reply.payload is None or isinstance(reply.payload, bytes) else b"".join(reply.payload)
    return reply.outcome, encoded


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dialect"), METHOD_AND_DIALECT)
def test_a_hidden_object_is_answered_about_like_a_missing_one(
    metastores: tuple[Metastore, Metastore], name: str, dialect: Dialect
) -> None:
    if name in NUMBERS | OF_EVERYBODY:
        pytest.skip("says nothing of any object")
    method = methods_of(dialect)[name]
    full, bare = (ask(each, "mallory", name, *meant(method), dialect=dialect) for each in metastores)
    assert full == bare


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dialect"), METHOD_AND_DIALECT)
def test_an_administrator_gets_through_as_without_rights(
    metastores: tuple[Metastore, Metastore], name: str, dialect: Dialect
) -> None:
    outcome, _ = ask(metastores[0], "ann", name, *meant(methods_of(dialect)[name]), dialect=dialect)
    assert outcome != "INTERNAL_ERROR"


def test_what_is_of_everybody_needs_nothing() -> None:
    assert not [name for name in OF_EVERYBODY if method_rights()[name].needs]
