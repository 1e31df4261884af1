"""What is about the server itself or kept for nobody: fb303, tokens, keys, file metadata, marks, expressions."""

from base64 import b64decode
from collections.abc import Iterator

from hms_gateway.rpc.structs import (
    CacheFileMetadataRequest,
    ClearFileMetadataRequest,
    DropPartitionsExpr,
    DropPartitionsRequest,
    GetFileMetadataByExprRequest,
    GetFileMetadataRequest,
    Index,
    PartitionsByExprRequest,
    PutFileMetadataRequest,
    RequestPartsSpec,
)
from tests.comparison.ids import key
from tests.comparison.objects import SOME_KEYS, database, descriptor, table
from tests.comparison.servers import Step, call

LOAD_DONE = 1
JUNK = b"junk"
# Java objects as Hive's compiler sends them: ds = 'a', ds IS NOT NULL, upper(ds) = 'A'.
EQUALS = b64decode(
    "AQEAamF2YS51dGlsLkFycmF5TGlz9AECAQFvcmcuYXBhY2hlLmhhZG9vcC5oaXZlLnFsLnBsYW4uRXhwck5vZGVDb2x1bW5EZXPjAQFk8wEAAYJ0"
    "AQJvcmcuYXBhY2hlLmhhZG9vcC5oaXZlLnNlcmRlMi50eXBlaW5mby5QcmltaXRpdmVUeXBlSW5m7wEBc3RyaW7nAQNvcmcuYXBhY2hlLmhhZG9v"
    "cC5oaXZlLnFsLnBsYW4uRXhwck5vZGVDb25zdGFudERlc+MBAQIHAwGCYQEEb3JnLmFwYWNoZS5oYWRvb3AuaGl2ZS5xbC51ZGYuZ2VuZXJpYy5H"
    "ZW5lcmljVURGT1BFcXVh7AEAAQIBgj0BRVFVQcwBBW9yZy5hcGFjaGUuaGFkb29wLmlvLkJvb2xlYW5Xcml0YWJs5QEAAAECAQFib29sZWHu"
)
IS_NOT_NULL = b64decode(
    "AQEAamF2YS51dGlsLkFycmF5TGlz9AEBAQFvcmcuYXBhY2hlLmhhZG9vcC5oaXZlLnFsLnBsYW4uRXhwck5vZGVDb2x1bW5EZXPjAQFk8wEAAYJ0"
    "AQJvcmcuYXBhY2hlLmhhZG9vcC5oaXZlLnNlcmRlMi50eXBlaW5mby5QcmltaXRpdmVUeXBlSW5m7wEBc3RyaW7nAQNvcmcuYXBhY2hlLmhhZG9v"
    "cC5oaXZlLnFsLnVkZi5nZW5lcmljLkdlbmVyaWNVREZPUE5vdE51bOwBAQRvcmcuYXBhY2hlLmhhZG9vcC5pby5Cb29sZWFuV3JpdGFibOUBAAAB"
    "AgEBYm9vbGVh7g=="
)
UPPER = b64decode(
    "AQEAamF2YS51dGlsLkFycmF5TGlz9AECAQFvcmcuYXBhY2hlLmhhZG9vcC5oaXZlLnFsLnBsYW4uRXhwck5vZGVHZW5lcmljRnVuY0Rlc+MBAQAB"
    "AQECb3JnLmFwYWNoZS5oYWRvb3AuaGl2ZS5xbC5wbGFuLkV4cHJOb2RlQ29sdW1uRGVz4wEBZPMBAAGCdAEDb3JnLmFwYWNoZS5oYWRvb3AuaGl2"
    "ZS5zZXJkZTIudHlwZWluZm8uUHJpbWl0aXZlVHlwZUluZu8BAXN0cmlu5wEEb3JnLmFwYWNoZS5oYWRvb3AuaGl2ZS5xbC51ZGYuZ2VuZXJpYy5H"
    "ZW5lcmljVURGVXBwZfIBAAEDCQEFb3JnLmFwYWNoZS5oYWRvb3AuaGl2ZS5xbC5wbGFuLkV4cHJOb2RlQ29uc3RhbnREZXPjAQEDCQMBgkEBBm9y"
    "Zy5hcGFjaGUuaGFkb29wLmhpdmUucWwudWRmLmdlbmVyaWMuR2VuZXJpY1VERk9QRXF1YewBAAECAYI9AUVRVUHMAQdvcmcuYXBhY2hlLmhhZG9v"
    "cC5pby5Cb29sZWFuV3JpdGFibOUBAAABAwEBYm9vbGVh7g=="
)


def steps() -> Iterator[Step]:
    yield call("create_database", database("served"))
    yield call("create_table", table("served", "t", SOME_KEYS))
    yield call("create_table", table("served", "flat"))
    yield call("append_partition", "served", "t", ["a", "1"])
    yield from _itself()
    yield from _tokens()
    yield from _file_metadata()
    yield from _marks()
    yield from _indexes()
    yield from _expressions()


def _itself() -> Iterator[Step]:
    yield call("getOptions")
    for name, value in (("a", "b"), ("empty", ""), ("a", "c"), ("ünï", "😀")):
        yield call("setOption", name, value)
        yield call("getOption", name)
    yield call("getOptions")
    for method in ("getName", "aliveSince", "getVersion", "getStatus", "getStatusDetails", "getCounters"):
        yield call(method)
    for name in ("get_database", "nosuch", ""):
        yield call("getCounter", name)
    for method in ("reinitialize", "shutdown", "flushCache"):
        yield call(method)
    for user, groups in (("ann", ["g1", "g2"]), ("ann", []), ("", ["g"])):
        yield call("set_ugi", user, groups)


def _tokens() -> Iterator[Step]:
    for token in ("nosuch", "", None):
        yield call("renew_delegation_token", token)
        yield call("cancel_delegation_token", token)
    yield call("get_delegation_token", None, None)
    for text in ("first", "sécond", ""):
        yield call("add_master_key", text)
    yield call("get_master_keys")
    yield call("update_master_key", key(2), "changed")
    yield call("get_master_keys")
    for number in (1, 1, 2, 3):
        yield call("remove_master_key", key(number))
    yield call("update_master_key", key(1), "gone")
    yield call("get_master_keys")


def _file_metadata() -> Iterator[Step]:
    yield call("get_file_metadata", GetFileMetadataRequest([1, 2]))
    yield call("get_file_metadata", GetFileMetadataRequest([]))
    yield call("get_file_metadata_by_expr", GetFileMetadataByExprRequest([1], JUNK))
    yield call("put_file_metadata", PutFileMetadataRequest([1], [JUNK]))
    yield call("put_file_metadata", PutFileMetadataRequest([1], []))
    yield call("clear_file_metadata", ClearFileMetadataRequest([1]))
    yield call("cache_file_metadata", CacheFileMetadataRequest("served", "t"))
    yield call("cache_file_metadata", CacheFileMetadataRequest("served", "t", "ds=a/hr=1", True))
    yield call("cache_file_metadata", CacheFileMetadataRequest("served", "nosuch"))
    yield call("get_file_metadata", GetFileMetadataRequest())


def _marks() -> Iterator[Step]:
    right = {"ds": "a", "hr": "1"}
    asked = (
        ("served", "t", right),
        ("served", "t", {"ds": "b", "hr": "2"}),
        ("served", "t", {"hr": "1", "ds": "a"}),
        ("served", "t", {"ds": "a"}),
        ("served", "t", {"ds": "a", "x": "1"}),
        ("served", "t", {"ds": "a", "hr": "1", "x": "1"}),
        ("served", "t", {}),
        ("served", "flat", {}),
        ("served", "flat", {"ds": "a"}),
        ("served", "nosuch", right),
        ("nosuch", "t", right),
        ("SERVED", "T", right),
        (None, "t", right),
        ("served", None, right),
        ("served", "t", None),
    )
    for db_name, tbl_name, values in asked:
        yield call("isPartitionMarkedForEvent", db_name, tbl_name, values, LOAD_DONE)
        yield call("markPartitionForEvent", db_name, tbl_name, values, LOAD_DONE)
        yield call("isPartitionMarkedForEvent", db_name, tbl_name, values, LOAD_DONE)
    yield call("drop_table", "served", "t", True)
    yield call("create_table", table("served", "t", SOME_KEYS))
    yield call("append_partition", "served", "t", ["a", "1"])
    yield call("isPartitionMarkedForEvent", "served", "t", right, LOAD_DONE)


def _indexes() -> Iterator[Step]:
    def index(name: str, **fields: object) -> Index:
        places = ("a.Handler", "served", "flat", 0, 0, "idx_table", descriptor())
        changed = Index(name, *places, {"a": "b"}, True)
        for field, value in fields.items():
            setattr(changed, field, value)
        return changed

    index_table = table("served", "idx_table", tableType="INDEX_TABLE")
    yield call("add_index", index("idx"), index_table)
    for changed in (
        index("idx", parameters={"c": "d"}),
        index("idx", indexHandlerClass="b.Handler", deferredRebuild=False),
        index("renamed"),
        index("idx", parameters={}),
    ):
        yield call("alter_index", "served", "flat", "idx", changed)
        yield call("get_index_by_name", "served", "flat", "idx")
    for db_name, tbl_name, name in (
        ("served", "flat", "nosuch"),
        ("served", "nosuch", "idx"),
        ("nosuch", "flat", "idx"),
        ("SERVED", "FLAT", "IDX"),
    ):
        yield call("alter_index", db_name, tbl_name, name, index("idx", parameters={"e": "f"}))
    yield call("add_index", index("other", origTableName="nosuch"), index_table)
    yield call("add_index", index("other", dbName="nosuch"), index_table)
    yield call("add_index", index("other"), table("served", "idx_table", tableType="INDEX_TABLE"))
    yield call("get_index_names", "served", "flat", -1)
    yield call("get_index_names", "served", "flat", 1)
    for name in ("idx", "nosuch", "other"):
        yield call("drop_index_by_name", "served", "flat", name, True)
    yield call("get_indexes", "served", "flat", -1)
    # Nothing may follow about indexes: here the first one is taken.
    yield call("add_index", index("bare", indexTableName=None), None)
    yield call("add_index", index("named", indexTableName="named_table"), None)


def _expressions() -> Iterator[Step]:
    for tbl_name in ("t", "flat", "nosuch"):
        yield call("get_partitions_by_expr", PartitionsByExprRequest("served", tbl_name, JUNK))
    yield call("get_partitions_by_expr", PartitionsByExprRequest("served", "t", b""))
    yield call("get_partitions_by_expr", PartitionsByExprRequest("served", "t"))
    yield call("append_partition", "served", "t", ["b", "2"])
    yield call("append_partition", "served", "t", ["c", "3"])
    for expression in (EQUALS, IS_NOT_NULL, UPPER):
        for limit in (-1, 0, 2):
            yield call("get_partitions_by_expr", PartitionsByExprRequest("served", "t", expression, None, limit))
    yield call("get_partitions_by_expr", PartitionsByExprRequest("served", "nosuch", EQUALS))
    parts = RequestPartsSpec(exprs=[DropPartitionsExpr(EQUALS)])
    yield call("drop_partitions_req", DropPartitionsRequest("served", "t", parts, True, True))
