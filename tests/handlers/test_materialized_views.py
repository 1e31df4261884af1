"""Materialized views over transactional tables, as a client of Hive 4 keeps and asks about them."""

import pytest

from hms_gateway.rpc.structs import (
    AddDynamicPartitions_v4,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    CompactionRequest,
    CompactionType,
    CreationMetadata,
    DataOperationType,
    GetTableRequest,
    GetTablesRequest,
    GetValidWriteIdsRequest,
    Materialization,
    MetaException,
    NotificationEventRequest,
    OpenTxnRequest,
    SourceTable,
    Table,
    UpdateTransactionalStatsRequest,
)
from hms_gateway.txn.rules.write_ids import ValidIds, ValidWriteIds, valid_txn_write_ids_text, valid_txns_text
from tests.handlers.peers import Peer
from tests.support.catalog import columns, new_table

FRESH = Materialization(False, False)
CHANGED = Materialization(True, False)
COMPACTED = Materialization(False, True)
UNKNOWN = Materialization(True, True)


class Engine:
    """A query engine with the tables `a` and `b` and a view of both."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        for name in ("a", "b"):
            peer.ask("create_table", new_table(name, keys=columns("ds string")))
        self.metadata = CreationMetadata("hive", "default", "v", {"default.a", "default.b"}, self.seen())
        peer.ask("create_table", view("v", creationMetadata=self.metadata))

    def valid_txns(self) -> str:
        found = self.peer.ask("get_open_txns")
        return valid_txns_text(ValidIds(found.txn_high_water_mark, tuple(found.open_txns)))

    def seen(self) -> str:
        """The write ids a query sees now, as it notes them with the view it builds."""
        request = GetValidWriteIdsRequest(["default.a", "default.b"], self.valid_txns())
        answer = self.peer.ask("get_valid_write_ids", request).tblValidWriteIds
        lists = [
            ValidWriteIds(one.fullTableName, ValidIds(one.writeIdHighWaterMark, tuple(one.invalidWriteIds)))
            for one in answer
        ]
        return valid_txn_write_ids_text(0, lists)

    def begin(self, table: str, operation: DataOperationType) -> int:
        txn: int = self.peer.ask("open_txns", OpenTxnRequest(1, "ann", "host")).txn_ids[0]
        allocated = self.peer.ask("allocate_table_write_ids", AllocateTableWriteIdsRequest("default", table, [txn]))
        write_id = allocated.txnToWriteIds[0].writeId
        request = AddDynamicPartitions_v4(txn, write_id, "default", table, ["ds=1"], operation)
        self.peer.ask("add_dynamic_partitions", request)
        return txn

    def commit(self, txn: int) -> None:
        self.peer.ask("commit_txn", CommitTxnRequest(txn))

    def change(self, table: str, operation: DataOperationType) -> None:
        self.commit(self.begin(table, operation))

    def compact(self, table: str) -> None:
        """As the worker does that a query engine runs, once nobody reads the old files any more."""
        self.peer.ask("compact2", CompactionRequest("default", table, "ds=1", CompactionType.MAJOR))
        info = self.peer.ask("find_next_compact", "worker").ci
        info.highestWriteId = (
            self.peer.ask("get_valid_write_ids", GetValidWriteIdsRequest([f"default.{table}"], self.valid_txns()))
            .tblValidWriteIds[0]
            .writeIdHighWaterMark
        )
        self.peer.ask("update_compactor_state", info, 0)
        self.peer.ask("mark_compacted", info)
        self.peer.ask("mark_cleaned", info)

    def invalidation(self) -> Materialization:
        found: Materialization = self.peer.ask(
            "get_materialization_invalidation_info", self.metadata, self.valid_txns()
        )
        return found

    def rebuild(self) -> None:
        self.metadata = CreationMetadata("hive", "default", "v", {"default.a", "default.b"}, self.seen(), 99)
        self.peer.ask("update_creation_metadata", "hive", "default", "v", self.metadata)

    def table(self, name: str) -> Table:
        found: Table = self.peer.ask("get_table_req", GetTableRequest("default", name, catName="hive")).table
        return found

    def counts(self) -> dict[str | None, tuple[int | None, int | None, int | None]]:
        metadata = self.table("v").creationMetadata
        assert metadata is not None
        return {
            one.table.tableName: (one.insertedCount, one.updatedCount, one.deletedCount)
            for one in metadata.sourceTables or ()
            if one.table is not None
        }


def view(name: str, **fields: object) -> Table:
    fields = {"table_type": "MATERIALIZED_VIEW", "rewriteEnabled": True, **fields}
    return new_table(name, viewOriginalText="SELECT 1", **fields)  # type: ignore[arg-type]


@pytest.fixture
def engine(newer: Peer) -> Engine:
    return Engine(newer)


def test_a_view_is_fresh_until_something_else_than_an_insertion_commits(engine: Engine) -> None:
    assert engine.invalidation() == FRESH
    engine.change("a", DataOperationType.INSERT)
    assert engine.invalidation() == FRESH
    deleting = engine.begin("b", DataOperationType.DELETE)
    assert engine.invalidation() == UNKNOWN, "an open write id that the view does not know"
    engine.commit(deleting)
    assert engine.invalidation() == CHANGED
    engine.rebuild()
    assert engine.invalidation() == FRESH
    engine.change("a", DataOperationType.UPDATE)
    assert engine.invalidation() == CHANGED


def test_what_a_reader_does_not_see_has_not_happened(engine: Engine) -> None:
    before = engine.valid_txns()
    engine.change("a", DataOperationType.UPDATE)
    asked = engine.peer.ask("get_materialization_invalidation_info", engine.metadata, before)
    assert asked == FRESH
    assert engine.invalidation() == CHANGED


def test_a_compaction_of_what_the_view_has_not_seen_hides_what_it_was(engine: Engine) -> None:
    engine.change("a", DataOperationType.INSERT)
    engine.rebuild()
    engine.compact("a")
    assert engine.invalidation() == FRESH, "the view has seen all that was compacted"
    engine.change("a", DataOperationType.DELETE)
    engine.compact("a")
    assert engine.invalidation() == COMPACTED


def test_what_the_lists_do_not_tell_is_unknown(engine: Engine) -> None:
    def ask(tables: set[str], seen: str | None, valid: str | None = None) -> Materialization:
        metadata = CreationMetadata("hive", "default", "v", tables, seen)
        found: Materialization = engine.peer.ask("get_materialization_invalidation_info", metadata, valid)
        return found

    assert ask({"default.other"}, engine.seen()) == UNKNOWN
    assert ask(set(), engine.seen()) == UNKNOWN
    assert ask({"hive.default.a"}, engine.seen()) == FRESH
    for seen, valid in ((None, None), ("what", None), (engine.seen(), "what")):
        with pytest.raises(MetaException):
            ask({"default.a"}, seen, valid)


def test_creation_metadata_come_back_with_the_tables_themselves(engine: Engine) -> None:
    engine.rebuild()
    metadata = engine.table("v").creationMetadata
    assert metadata is not None
    assert (metadata.tablesUsed, metadata.materializationTime) == ({"default.a", "default.b"}, 99)
    sources = metadata.sourceTables
    assert [one.table.tableName for one in sources or ()] == ["a", "b"]
    assert sources is not None
    assert sources[0].table.id == engine.table("a").id
    for name in ("a", "nowhere"):
        with pytest.raises(MetaException, match=f"There is no materialized view default.{name}"):
            engine.peer.ask("update_creation_metadata", "hive", "default", name, engine.metadata)


def test_changes_are_counted_for_the_views_of_a_table(engine: Engine) -> None:
    assert engine.counts() == {"a": (0, 0, 0), "b": (0, 0, 0)}
    for counts in ((1, 2, 3), (10, 0, 0)):
        request = UpdateTransactionalStatsRequest(engine.table("a").id, *counts)
        engine.peer.ask("update_transaction_statistics", request)
    assert engine.counts() == {"a": (11, 2, 3), "b": (0, 0, 0)}
    events = engine.peer.ask("get_next_notification", NotificationEventRequest(0)).events
    assert [(one.eventType, one.tableName) for one in events[-2:]] == [("ALTER_TABLE", "v")] * 2
    engine.rebuild()
    assert engine.counts() == {"a": (0, 0, 0), "b": (0, 0, 0)}
    engine.peer.ask("update_transaction_statistics", UpdateTransactionalStatsRequest(12345, 1, 1, 1))
    with pytest.raises(MetaException):
        engine.peer.ask("update_transaction_statistics", UpdateTransactionalStatsRequest(1, -1, 0, 0))


def test_counts_may_come_with_the_metadata(engine: Engine) -> None:
    metadata = CreationMetadata("hive", "default", "w", {"default.b"})
    metadata.sourceTables = [SourceTable(engine.table("a"), 1, 2, 3)]
    engine.peer.ask("create_table", view("w", creationMetadata=metadata))
    found = engine.table("w").creationMetadata
    assert found is not None
    assert [(one.table.tableName, one.deletedCount) for one in found.sourceTables or ()] == [("a", 3), ("b", 0)]


def test_metadata_outlast_alterations_and_renames(engine: Engine) -> None:
    renamed = engine.table("v")
    renamed.tableName, renamed.creationMetadata = "w", None
    engine.peer.ask("alter_table", "default", "v", renamed)
    metadata = engine.table("w").creationMetadata
    assert metadata is not None
    assert (metadata.tblName, metadata.tablesUsed) == ("w", {"default.a", "default.b"})
    engine.peer.ask("drop_table", "default", "a", False)
    left = engine.table("w").creationMetadata
    assert left is not None
    assert [one.table.tableName for one in left.sourceTables or ()] == ["b"]


def test_only_views_that_may_replace_queries_are_listed(engine: Engine, older: Peer) -> None:
    engine.peer.ask("create_table", view("off", rewriteEnabled=False))
    engine.peer.ask("create_table", new_table("plain", rewriteEnabled=True))
    assert engine.peer.ask("get_materialized_views_for_rewriting", "@hive#DEFAULT") == ["v"]
    assert engine.peer.ask("get_materialized_views_for_rewriting", "nowhere") == []
    [found] = engine.peer.ask("get_all_materialized_view_objects_for_rewriting")
    assert (found.tableName, len(found.creationMetadata.sourceTables)) == ("v", 2)
    [listed] = engine.peer.ask("get_table_objects_by_name_req", GetTablesRequest("default", ["v"])).tables
    assert len(listed.creationMetadata.sourceTables) == 2
    assert older.ask("get_table", "default", "v").creationMetadata.sourceTables is None


def test_a_view_was_built_when_it_was_made_unless_its_client_says_otherwise(engine: Engine) -> None:
    def built() -> int:
        metadata = engine.table("v").creationMetadata
        assert metadata is not None
        assert metadata.materializationTime is not None
        return metadata.materializationTime

    assert built() > 1_600_000_000_000
    engine.rebuild()
    assert built() == 99


def test_an_answer_with_other_tables_inside_is_not_kept(engine: Engine) -> None:
    """It changes with them, and nobody would notice."""
    for method, arguments in (
        ("get_table", ("default", "v")),
        ("get_table_req", (GetTableRequest("default", "v"),)),
        ("get_table_objects_by_name", ("default", ["a", "v"])),
    ):
        reply = engine.peer.reply(method, *arguments)
        assert (reply.outcome, reply.arguments) == ("ok", None)
    assert engine.peer.reply("get_table", "default", "a").arguments is not None
