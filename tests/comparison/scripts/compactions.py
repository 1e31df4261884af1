"""The compaction queue as clients see it: asked for, asked for again, shown, and gone with what it is about."""

from collections.abc import Iterator

from hms_gateway.rpc.structs import CompactionRequest, ShowCompactRequest
from tests.comparison.objects import SOME_KEYS, database, descriptor, table
from tests.comparison.servers import Step, call

MINOR, MAJOR = 1, 2
ORC = {
    "inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
    "numBuckets": 2,
    "bucketCols": ["id"],
}


def steps() -> Iterator[Step]:
    yield call("create_database", database("packed"))
    yield call("create_table", table("packed", "t", SOME_KEYS))
    yield call("append_partition", "packed", "t", ["a", "1"])
    yield call("show_compact", ShowCompactRequest())
    for request in (
        CompactionRequest("packed", "t", None, MAJOR),
        CompactionRequest("packed", "t", None, MINOR),
        CompactionRequest("packed", "t", "ds=a/hr=1", MINOR, "ann"),
        CompactionRequest("packed", "t", "ds=a/hr=1", MINOR, "ben"),
        CompactionRequest("packed", "t", "ds=nosuch/hr=1", MAJOR, None, {"a": "b"}),
        CompactionRequest("packed", "nosuch", None, MAJOR),
        CompactionRequest("packed_nowhere", "t", None, MAJOR),
    ):
        yield call("compact2", request)
        yield call("show_compact", ShowCompactRequest())
    yield call("compact", CompactionRequest("packed", "t", None, MAJOR))
    yield call("compact", CompactionRequest("packed", "other", None, MINOR))
    for method in ("compact", "compact2"):
        for incomplete in (
            CompactionRequest(None, "t", None, MAJOR),
            CompactionRequest("packed", None, None, MAJOR),
            CompactionRequest("packed", "t", None, None),
            CompactionRequest("packed", "t", None, 99),
            None,
        ):
            yield call(method, incomplete)
    yield call("show_compact", None)
    yield call("show_compact", ShowCompactRequest())
    acid = table("packed", "acid", SOME_KEYS, parameters={"transactional": "true"}, sd=descriptor(**ORC))
    yield call("create_table", acid)
    yield call("append_partition", "packed", "acid", ["a", "1"])
    yield call("compact2", CompactionRequest("packed", "acid", "ds=a/hr=1", MAJOR))
    yield call("compact2", CompactionRequest("packed", "acid", None, MAJOR))
    yield call("drop_partition", "packed", "acid", ["a", "1"], True)
    yield call("show_compact", ShowCompactRequest())
    yield call("drop_table", "packed", "acid", True)
    yield call("show_compact", ShowCompactRequest())
    yield call("drop_partition", "packed", "t", ["a", "1"], True)
    yield call("show_compact", ShowCompactRequest())
    yield call("drop_table", "packed", "t", True)
    yield call("show_compact", ShowCompactRequest())
    yield call("drop_database", "packed", True, True)
    yield call("show_compact", ShowCompactRequest())
    yield call("create_database", database("packed_nowhere"))
    yield call("drop_database", "packed_nowhere", True, True)
    yield call("show_compact", ShowCompactRequest())
