"""Names nobody would choose in every text of every call: exceptions are declared ones, where any are declared."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.main import Metastore, build_metastore
from app.rpc import Call
from app.rpc.call import Dialect
from app.rpc.dialects import methods_of
from app.settings import Settings
from app.structs import (
    AlterCatalogRequest,
    Catalog,
    CmRecycleRequest,
    CreateCatalogRequest,
    DropCatalogRequest,
    FieldSchema,
    FireEventRequest,
    FireEventRequest_v4,
    FireEventRequestData,
    FireEventRequestData_v4,
    Function,
    GetCatalogRequest,
    GetFunctionsRequest,
    Index,
    InsertEventRequestData,
    InsertEventRequestData_v4,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    PropertyGetRequest,
    PropertySetRequest,
    ResourceUri,
    SerDeInfo,
    StorageDescriptor,
    Struct,
    Table,
    Type,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogRequest,
)
from app.wire import MessageType

BAD = (
    None,
    "",
    " ",
    "missing",
    "DEFAULT",
    "größe☃",
    "a\0b",
    "a\x01\x7fb",
    "a/b'\"\\%_*",
    "@x",
    "@spark#d",
    "n" * 5_000,
)

FUNCTION = Function("f", "default", "a.B", "o", 1, 1, 1, [ResourceUri(1, "file:/a")], "hive")
TABLE = Table("x", "default", sd=StorageDescriptor([FieldSchema("a", "int", "c")], serdeInfo=SerDeInfo("s", "l")))
INDEX = Index("i", "a.B", "default", "t", 0, 0, "x", None, {"k": "v"}, False)
WRITE = WriteNotificationLogRequest(1, 1, "default", "t", InsertEventRequestData_v4(True, ["file:/a"], ["1"]), ["1"])

INSERTED = FireEventRequestData(InsertEventRequestData(["a"], ["b"]))
INSERTED_4 = FireEventRequestData_v4(insertDatas=[InsertEventRequestData_v4(True, ["a"], ["b"], ["c"], ["1"])])

CALLS: dict[str, tuple[Any, ...]] = {
    "create_function": (FUNCTION,),
    "alter_function": ("default", "f", FUNCTION),
    "drop_function": ("default", "f"),
    "get_function": ("default", "f"),
    "get_functions": ("default", "f*"),
    "get_functions_req": (GetFunctionsRequest("default", "hive", "f*", False),),
    "create_type": (Type("t", "a", "b", [FieldSchema("a", "int", "c")]),),
    "get_type": ("t",),
    "drop_type": ("t",),
    "get_type_all": ("t",),
    "get_next_notification": (NotificationEventRequest(0, 5, ["A"], "hive", "default", ["t"], ["INSERT"]),),
    "get_notification_events_count": (NotificationEventsCountRequest(0, "default", "hive", 9, 9, ["t"]),),
    "fire_listener_event": (FireEventRequest(True, INSERTED, "default", "t", ["1"], "hive"),),
    "add_write_notification_log": (WRITE,),
    "add_write_notification_log_in_batch": (WriteNotificationLogBatchRequest("hive", "default", "t", [WRITE]),),
    "cm_recycle": (CmRecycleRequest("file:/a", False),),
    "get_delegation_token": ("o", "r"),
    "renew_delegation_token": ("t",),
    "cancel_delegation_token": ("t",),
    "add_token": ("i", "t"),
    "get_token": ("i",),
    "remove_token": ("i",),
    "add_master_key": ("k",),
    "update_master_key": (1, "k"),
    "add_index": (INDEX, TABLE),
    "alter_index": ("default", "t", "i", INDEX),
    "get_index_by_name": ("default", "t", "i"),
    "get_indexes": ("default", "t", -1),
    "get_index_names": ("default", "t", -1),
    "drop_index_by_name": ("default", "t", "i", True),
    "markPartitionForEvent": ("default", "t", {"ds": "1"}, 1),
    "isPartitionMarkedForEvent": ("default", "t", {"ds": "1"}, 1),
    "get_properties": (PropertyGetRequest("hms", "db.t", None, ["a"]),),
    "set_properties": (PropertySetRequest("hms", {"db.t.a": "1"}),),
    "get_catalog": (GetCatalogRequest("hive"),),
    "alter_catalog": (AlterCatalogRequest("hive", Catalog("hive", "d", "file:/a")),),
    "create_catalog": (CreateCatalogRequest(Catalog("new", "d", "file:/a")),),
    "drop_catalog": (DropCatalogRequest("new"),),
}

CALLS_4: dict[str, tuple[Any, ...]] = {
    "fire_listener_event": (FireEventRequest_v4(True, INSERTED_4, "default", "t", ["1"], "hive"),),
    "get_function": ("@hive#default", "f"),
}


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    folder: Path = tmp_path_factory.mktemp("bad")
    metastore = build_metastore(Settings(data_dir=folder, file_systems={"file": "ignore"}))
    table = msgspec.structs.replace(TABLE, tableName="t", partitionKeys=[FieldSchema("ds", "string")])
    assert outcome(metastore, "create_table", (table,), Dialect.HIVE_2_3) == ("ok", MessageType.REPLY)
    yield metastore
    metastore.store.close()


def outcome(metastore: Metastore, method: str, values: tuple[Any, ...], dialect: Dialect) -> tuple[str, MessageType]:
    codec = metastore.codecs.tjson
    arguments = methods_of(dialect)[method].arguments(*values)
    before, after = codec.envelope(method, MessageType.CALL, 1)
    payload = codec.encode(arguments)
    assert isinstance(payload, bytes)
    reply = metastore.processor.process(codec, codec.read_message(before + payload + after), Call("t", dialect=dialect))
    return reply.outcome, reply.type


def variants(value: Any) -> Iterator[Any]:
    """`value` with one of its texts, numbers, lists, maps or structs replaced by something bad, each in turn."""
    if isinstance(value, str):
        yield from BAD
    elif isinstance(value, bool):
        yield None
    elif isinstance(value, int):
        yield from (None, 0, -1, 2**31 - 1, -(2**31))
    elif isinstance(value, Struct):
        yield None
        for field in value.definition.fields:
            for variant in variants(getattr(value, field.name)):
                yield msgspec.structs.replace(value, **{field.name: variant})
    elif isinstance(value, list):
        yield from (None, [])
        yield from ([variant] for variant in variants(value[0]) if variant is not None)
    elif isinstance(value, dict):
        yield from (None, {})
        [(key, item)] = value.items()
        yield from ({variant: item} for variant in variants(key) if variant is not None)
        yield from ({key: variant} for variant in variants(item) if variant is not None)
    elif value is None:
        yield None
    else:
        raise AssertionError(value)


@pytest.mark.parametrize(
    ("dialect", "method"),
    [
        *((Dialect.HIVE_2_3, method) for method in CALLS),
        *((Dialect.HIVE_4, method) for method in CALLS_4),
    ],
)
def test_the_answer_is_a_result_or_a_declared_exception(
    metastore: Metastore, dialect: Dialect, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    declares = bool(methods_of(dialect)[method].definition.throws)
    template = (CALLS if dialect is Dialect.HIVE_2_3 else CALLS_4)[method]
    for position, value in enumerate(template):
        for variant in variants(value):
            values = (*template[:position], variant, *template[position + 1 :])
            told, kind = outcome(metastore, method, values, dialect)
            assert kind is MessageType.REPLY or told == "PROTOCOL_ERROR" or not declares, (values, told)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
