"""Lists of write ids that are not true, or cost more than they say: others' answers stay right."""

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.runtime.settings import Settings
from tests.cache.replica import ON, Replica, Writer, in_loop

MARK = 2**62


@pytest.fixture
def metastore(tmp_path):
    built = build_metastore(Settings(data_dir=tmp_path, file_systems={"file": "ignore"}))
    yield built
    built.store.close()


@in_loop
async def test_who_claims_to_see_everything_does_not_keep_news_from_others(metastore):
    writer, replica = Writer(metastore), Replica(metastore)
    writer.create()
    _, table_id = writer.seen()
    everything = f"default.t:{MARK}:{MARK}::;id={table_id}"
    for _ in range(2):
        # Nobody can have seen that, so it is never answered from memory.
        assert not (await replica.get("get_partition_names", *ON, -1, sent=everything))[1]
    txn_id, _ = writer.begin()
    writer.add("1")
    writer.commit(txn_id)
    assert b"ds=1" in (await replica.get("get_partition_names", *ON, -1, sent=writer.header()))[0]


@pytest.mark.parametrize("ids", ["1-1000000", f"1-{MARK}", ",".join(["1-9000"] * 5_000)])
def test_a_short_text_does_not_become_a_million_ids(metastore, ids):
    replica = Replica(metastore)
    sent = f"default.t:{MARK}:1:{ids}:;id=1"
    assert replica.cache.reading(("tjson", "2.3", "get_table", b""), metastore.codecs.tjson, sent.encode()) is None
