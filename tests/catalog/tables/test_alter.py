"""alter_table on the real store and real directories, item by item of semantics §2.7."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import NewPartition, OutcomeUnknown, Selection, StoredTable
from hms_gateway.rpc.structs import (
    Database,
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PrincipalType,
    SkewedInfo,
    StorageDescriptor,
    Table,
    ThriftException,
)
from tests.support.catalog import NOW, Catalog, columns, new_table, transactional_table

T = TableName("default", "t")
EXTERNAL = {"EXTERNAL": "TRUE"}
LEAVE_STATISTICS = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def changed(table: Table, **fields: Any) -> Table:
    """A copy; `cols`, `location` and the like reach into the storage descriptor."""
    of_descriptor = set(StorageDescriptor.__struct_fields__) - {"parameters"}
    sd_fields = {name: fields.pop(name) for name in list(fields) if name in of_descriptor}
    return msgspec.structs.replace(table, sd=msgspec.structs.replace(table.sd, **sd_fields), **fields)


def add_partitions(catalog: Catalog, name: TableName, *values: str, location: str | None = None) -> None:
    """Partitions of a table with one key, made past the service."""

    def work(tx: Any) -> None:
        stored: StoredTable = name.load(tx)
        key = stored.key_names[0]
        new = []
        for value in values:
            place = location or f"{stored.table.sd.location}/{key}={value}"
            sd = msgspec.structs.replace(stored.table.sd, location=place)
            partition = Partition([value], stored.table.dbName, stored.table.tableName, NOW, 0, sd, {})
            new.append(NewPartition(f"{key}={value}", partition))
        tx.insert_partitions(stored, new)

    catalog.store.write(work)


def partitions(catalog: Catalog, name: TableName) -> list[Partition]:
    return catalog.store.read(
        lambda snapshot: [found.partition for found in snapshot.partitions(name.load(snapshot), Selection())]
    )


def test_everything_but_the_creation_time_changes(catalog: Catalog) -> None:
    catalog.tables.create(new_table(parameters={"old": "1"}, ownerType=PrincipalType.ROLE))
    catalog.clock.advance(10)
    new = new_table(
        "T",
        cols=columns("A bigint", "b string", "C double"),
        parameters={"new": "2"},
        retention=5,
        lastAccessTime=6,
        viewOriginalText="o",
        viewExpandedText="e",
        rewriteEnabled=True,
        createTime=1,
    )
    catalog.alterations.alter(T, msgspec.structs.replace(new, owner="somebody"), LEAVE_STATISTICS)
    stored = catalog.tables.get(T)
    assert stored.createTime == NOW
    assert stored.parameters == {"new": "2", "transient_lastDdlTime": str(NOW + 10)}
    assert [column.name for column in stored.sd.cols] == ["a", "b", "c"]
    assert (stored.owner, stored.retention, stored.lastAccessTime, stored.rewriteEnabled) == ("somebody", 5, 6, True)
    assert (stored.viewOriginalText, stored.viewExpandedText) == ("o", "e")
    assert stored.ownerType == PrincipalType.ROLE
    assert stored.sd.location == f"{catalog.root}/t"


def test_what_was_read_can_be_sent_back(catalog: Catalog) -> None:
    catalog.tables.create(new_table(keys=columns("p int"), parameters={"a": "b"}))
    before = catalog.tables.get(T)
    catalog.alterations.alter(T, before)
    assert catalog.tables.get(T) == before


def test_a_ddl_time_that_is_sent_stays(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    catalog.alterations.alter(T, new_table(parameters={"transient_lastDdlTime": "5"}))
    assert catalog.tables.get(T).parameters["transient_lastDdlTime"] == "5"


def test_absent_collections_are_empty_ones(catalog: Catalog) -> None:
    catalog.tables.create(changed(new_table(), bucketCols=["a"], numBuckets=3))
    catalog.alterations.alter(T, new_table())
    assert catalog.tables.get(T).sd.bucketCols == []


@pytest.mark.parametrize(
    ("new", "kind", "text"),
    [
        (new_table("a-b"), InvalidOperationException, "a-b is not a valid object name"),
        (new_table(cols=columns("a xyz")), InvalidOperationException, "Invalid column type: xyz"),
        (
            new_table(cols=columns("x string", "y int")),
            InvalidOperationException,
            "The following columns have types incompatible with the existing columns in their respective positions"
            " :\ny",
        ),
        (
            new_table(cols=columns("x boolean", "y int", "z int")),
            InvalidOperationException,
            "The following columns have types incompatible with the existing columns in their respective positions"
            " :\nx,y",
        ),
        (new_table(keys=columns("p int")), InvalidOperationException, "partition keys can not be changed."),
        (changed(new_table(), serdeInfo=None), MetaException, "Invalid SerDeInfo object"),
        (
            new_table(db_name="nope"),
            InvalidOperationException,
            "Unable to change partition or table. Check metastore logs for detailed stack.Database nope doesn't exist.",
        ),
        (
            new_table(db_name="a\0b"),
            InvalidOperationException,
            "Unable to change partition or table. Check metastore logs for detailed stack.Database a\0b doesn't exist.",
        ),
        (
            new_table(parameters={"transactional": "maybe"}),
            MetaException,
            "TBLPROPERTIES with 'transactional'='true' cannot be unset: default.t",
        ),
        (
            new_table(parameters={"transactional": "true"}),
            MetaException,
            "The table must be stored using an ACID compliant format (such as ORC): default.t",
        ),
        (
            msgspec.structs.replace(new_table(parameters={"transactional": "maybe"}), sd=None),
            MetaException,
            "TBLPROPERTIES with 'transactional'='true' cannot be unset: default.t",
        ),
        (msgspec.structs.replace(new_table(), sd=None), MetaException, "storage descriptor must not be null"),
    ],
)
def test_what_is_refused(catalog: Catalog, new: Table, kind: type[ThriftException], text: str) -> None:
    catalog.tables.create(new_table())
    before = catalog.tables.get(T)
    assert refusal(lambda: catalog.alterations.alter(T, new)) == kind(text)
    assert catalog.tables.get(T) == before
    assert catalog.last_event()[0] == "CREATE_TABLE"


@pytest.mark.parametrize(
    "new",
    [
        None,
        new_table(None),
        msgspec.structs.replace(new_table(), sd=None),
        changed(new_table(), cols=None),
        new_table(location="file:/a/../b"),
        new_table(location="x://h/a"),
        msgspec.structs.replace(new_table(), owner="a\0b"),
        changed(new_table("u"), location=None),
    ],
)
def test_what_cannot_be_is_a_meta_exception(catalog: Catalog, new: Table | None) -> None:
    catalog.tables.create(new_table())
    assert isinstance(refusal(lambda: catalog.alterations.alter(T, new)), MetaException)
    assert (catalog.warehouse / "t").is_dir()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (TableName("default", "Nope"), "default.Nope table not found"),
        (TableName("Nope", "t"), "Nope.t table not found"),
    ],
)
def test_a_missing_table_is_an_invalid_operation(catalog: Catalog, name: TableName, text: str) -> None:
    error = refusal(lambda: catalog.alterations.alter(name, new_table()))
    assert error == InvalidOperationException(text)


def test_columns_may_be_dropped_added_and_widened(catalog: Catalog) -> None:
    catalog.tables.create(new_table(cols=columns("a int", "b decimal(10,2)", "c date")))
    catalog.alterations.alter(T, new_table(cols=columns("a string", "b decimal(4,1)")))
    catalog.alterations.alter(T, new_table(cols=columns("a string", "b double", "new map<int,int>")))
    assert [column.type for column in catalog.tables.get(T).sd.cols] == ["string", "double", "map<int,int>"]


def test_any_change_of_types_may_be_allowed(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    lax = catalog.with_settings(refuses_incompatible_column_changes=False)
    lax.alterations.alter(T, new_table(cols=columns("a boolean", "b int")))
    assert [column.type for column in catalog.tables.get(T).sd.cols] == ["boolean", "int"]


@pytest.mark.parametrize(
    ("parameters", "serde"),
    [
        ({"table_type": "ICEBERG"}, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
        ({"table_type": "iceberg"}, None),
        ({}, "org.example.Own"),
    ],
)
def test_tables_that_are_read_by_other_metadata_may_change_their_columns(
    catalog: Catalog, parameters: dict[str, str], serde: str | None
) -> None:
    """What Java Iceberg does for ADD COLUMN … AFTER, and for a column dropped in the middle."""
    own = catalog.with_settings(column_change_serdes=("org.example.Own",))
    table = new_table(parameters=parameters)
    assert table.sd is not None
    assert table.sd.serdeInfo is not None
    table.sd.serdeInfo.serializationLib = serde
    own.tables.create(table)
    for columns_after in (columns("a int", "new map<int,int>", "b string"), columns("b string"), columns("b boolean")):
        after = new_table(cols=columns_after, parameters=parameters)
        assert after.sd is not None
        after.sd.serdeInfo = table.sd.serdeInfo
        own.alterations.alter(T, after)
    assert [column.type for column in own.tables.get(T).sd.cols] == ["boolean"]


def test_a_table_does_not_become_one_of_iceberg_to_change_its_columns(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    after = new_table(cols=columns("a boolean"), parameters={"table_type": "ICEBERG"})
    assert isinstance(refusal(lambda: catalog.alterations.alter(T, after)), InvalidOperationException)


def test_a_view_may_change_its_columns_as_it_likes(catalog: Catalog) -> None:
    catalog.tables.create(new_table(table_type="VIRTUAL_VIEW"))
    catalog.alterations.alter(T, new_table(table_type="VIRTUAL_VIEW", cols=columns("a boolean", "b int")))
    stored = catalog.tables.get(T)
    assert [column.type for column in stored.sd.cols] == ["boolean", "int"]
    assert stored.sd.location is None
    assert "numFiles" not in stored.parameters


@pytest.mark.parametrize("keys", [[], ["q int"], ["p int", "q int"]])
def test_partition_keys_keep_their_names_and_order(catalog: Catalog, keys: list[str]) -> None:
    catalog.tables.create(new_table(keys=columns("p string")))
    error = refusal(lambda: catalog.alterations.alter(T, new_table(keys=columns(*keys))))
    assert error == InvalidOperationException("partition keys can not be changed.")


def test_partition_keys_may_change_type_and_comment(catalog: Catalog) -> None:
    catalog.tables.create(new_table(keys=columns("p string")))
    catalog.alterations.alter(T, new_table(keys=[FieldSchema("P", "int", "c")]))
    assert catalog.tables.get(T).partitionKeys == [FieldSchema("p", "int", "c")]


def test_altering_is_an_event_with_both_states(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    catalog.alterations.alter(T, new_table("U", location=""))
    kind, db_name, table_name, message = catalog.last_event()
    assert (kind, db_name, table_name) == ("ALTER_TABLE", "default", "u")
    assert list(message) == [
        "server", "servicePrincipal", "db", "table", "tableType", "tableObjBeforeJson", "tableObjAfterJson",
        "timestamp", "isTruncateOp",
    ]  # fmt: skip
    assert message["table"] == "t"
    assert message["tableObjBeforeJson"].startswith('{"1":{"str":"t"}')
    assert message["tableObjAfterJson"].startswith('{"1":{"str":"u"}')


@pytest.mark.parametrize("sends_location", [True, False])
def test_a_rename_moves_the_directory(catalog: Catalog, sends_location: bool) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table())
    (catalog.warehouse / "t/file").write_text("x")
    location = f"{catalog.root}/t" if sends_location else ""
    catalog.alterations.alter(T, new_table("U", "D", location=location))
    stored = catalog.tables.get(TableName("d", "u"))
    assert stored.sd.location == f"{catalog.root}/d.db/u"
    assert (catalog.warehouse / "d.db/u/file").read_text() == "x"
    assert not (catalog.warehouse / "t").exists()
    assert refusal(lambda: catalog.tables.get(T)) == NoSuchObjectException("default.t table not found")
    assert "numFiles" not in stored.parameters
    assert catalog.store.read(lambda snapshot: snapshot.pending_moves()) == []


def test_a_rename_takes_partitions_along(catalog: Catalog, tmp_path: Path) -> None:
    catalog.tables.create(new_table(keys=columns("p string")))
    catalog.tables.create(new_table("t2"))
    add_partitions(catalog, T, "1", "2")
    add_partitions(catalog, T, "3", location=f"{catalog.root}/t/elsewhere")
    add_partitions(catalog, T, "4", location=f"{catalog.root}/t2/p=4")
    catalog.alterations.alter(T, new_table("u", location="", keys=columns("p string")))
    moved = partitions(catalog, TableName("default", "u"))
    assert [(partition.tableName, partition.sd.location) for partition in moved] == [
        ("u", f"{catalog.root}/u/p=1"),
        ("u", f"{catalog.root}/u/p=2"),
        ("u", f"{catalog.root}/u/elsewhere"),
        ("u", f"{catalog.root}/t2/p=4"),
    ]  # fmt: skip


def test_a_rename_that_only_changes_case_is_none(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    catalog.alterations.alter(TableName("DEFAULT", "T"), new_table("T", "Default"))
    assert catalog.tables.names("default") == ["t"]
    assert catalog.tables.get(T).sd.location == f"{catalog.root}/t"


@pytest.mark.parametrize(
    ("old", "sent"),
    [
        ({"parameters": EXTERNAL, "table_type": "EXTERNAL_TABLE"}, None),
        ({"location": "{tmp}/own"}, "{tmp}/own"),
        ({}, "{tmp}/other"),
        ({"location": "hdfs://nn/warehouse/t"}, "hdfs://nn/warehouse/t"),
    ],
)
def test_a_rename_that_leaves_the_directory(
    catalog: Catalog, tmp_path: Path, old: dict[str, Any], sent: str | None
) -> None:
    if "location" in old:
        old = {**old, "location": old["location"].format(tmp=f"file:{tmp_path}")}
    catalog.tables.create(new_table(**old))
    before = catalog.tables.get(T).sd.location
    sent = before if sent is None else sent.format(tmp=f"file:{tmp_path}")
    catalog.alterations.alter(T, new_table("u", location=sent, parameters=old.get("parameters")))
    assert catalog.tables.get(TableName("default", "u")).sd.location == sent
    assert before.startswith("hdfs:") or catalog.path(before).is_dir()


def test_a_rename_that_leaves_the_directory_counts_its_files(catalog: Catalog) -> None:
    catalog.tables.create(new_table(parameters=EXTERNAL, table_type="EXTERNAL_TABLE"))
    location = catalog.tables.get(T).sd.location
    catalog.alterations.alter(T, new_table("u", location=location, parameters=EXTERNAL))
    parameters = catalog.tables.get(TableName("default", "u")).parameters
    assert (parameters["numFiles"], parameters["totalSize"]) == ("0", "0")


def test_a_renamed_view_has_no_directory(catalog: Catalog) -> None:
    catalog.tables.create(new_table(table_type="VIRTUAL_VIEW"))
    catalog.alterations.alter(T, new_table("u", table_type="VIRTUAL_VIEW"))
    assert catalog.tables.get(TableName("default", "u")).sd.location is None


def test_a_directory_that_is_not_there_is_renamed_in_the_catalog_only(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    (catalog.warehouse / "t").rmdir()
    catalog.alterations.alter(T, new_table("u", location=""))
    assert catalog.tables.get(TableName("default", "u")).sd.location == f"{catalog.root}/u"


def test_a_place_that_is_taken_stops_a_rename(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    (catalog.warehouse / "u").mkdir()
    error = refusal(lambda: catalog.alterations.alter(T, new_table("u", location="")))
    assert error == InvalidOperationException(
        f"New location for this table default.u already exists : {catalog.root}/u"
    )
    assert catalog.tables.names("default") == ["t"]


def test_a_name_that_is_taken_stops_a_rename(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    catalog.tables.create(new_table("u"))
    error = refusal(lambda: catalog.alterations.alter(T, new_table("U", location="")))
    assert error == InvalidOperationException("new table default.u already exists")
    assert (catalog.warehouse / "t").is_dir()


def test_another_file_system_stops_a_rename(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d", locationUri="memory:/d"))
    catalog.tables.create(new_table())
    error = refusal(lambda: catalog.alterations.alter(T, new_table("u", "d", location="")))
    assert error == InvalidOperationException(
        f"table new location memory:/d/u is on a different file system than the old location {catalog.root}/t."
        " This operation is not supported"
    )


def test_a_move_that_fails_says_why(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d"))
    catalog.tables.create(new_table())
    (catalog.warehouse / "d.db").rmdir()
    (catalog.warehouse / "d.db").write_text("a file in the way")
    error = refusal(lambda: catalog.alterations.alter(T, new_table("u", "d", location="")))
    assert isinstance(error, InvalidOperationException)
    assert error.message is not None
    assert error.message.startswith("Alter Table operation for default.t failed to move data due to: '")
    assert error.message.endswith("' See hive log file for details.")
    assert (catalog.warehouse / "t").is_dir()
    assert catalog.store.read(lambda snapshot: snapshot.pending_moves()) == []


def test_a_change_that_cannot_be_stored_moves_the_directory_back(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    unstorable = msgspec.structs.replace(new_table("u", location=""), owner="a\0b")
    assert isinstance(refusal(lambda: catalog.alterations.alter(T, unstorable)), MetaException)
    assert (catalog.warehouse / "t").is_dir()
    assert not (catalog.warehouse / "u").exists()
    assert catalog.store.read(lambda snapshot: snapshot.pending_moves()) == []


def test_a_move_that_a_crash_interrupted_is_taken_back(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    table_id = catalog.store.read(T.load).table_id
    source, target = f"{catalog.root}/t", f"{catalog.root}/u"
    catalog.store.write(lambda tx: tx.insert_pending_move(table_id, source, target))
    catalog.files.move_directory(source, target)
    assert catalog.alterations.recover_pending_moves() == 1
    assert (catalog.warehouse / "t").is_dir()
    assert not (catalog.warehouse / "u").exists()
    assert catalog.alterations.recover_pending_moves() == 0


def test_a_move_that_was_only_announced_is_forgotten(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    table_id = catalog.store.read(T.load).table_id
    catalog.store.write(lambda tx: tx.insert_pending_move(table_id, f"{catalog.root}/t", f"{catalog.root}/u"))
    assert catalog.alterations.recover_pending_moves() == 1
    assert (catalog.warehouse / "t").is_dir()


class LosesAnswers:
    """The real store, whose connection breaks at the unit of work that settles a move: after its commit, or before."""

    def __init__(self, catalog: Catalog, *, commits: bool) -> None:
        self._store = catalog.store
        self._commits = commits
        self.read = catalog.store.read

    def write(self, work: Callable[[Any], Any]) -> Any:
        had_pending = bool(self._store.read(lambda snapshot: snapshot.pending_moves()))

        def observed(tx: Any) -> tuple[Any, bool]:
            result = work(tx)
            settles = had_pending and not tx.pending_moves() and tx.table("default", "u") is not None
            if settles and not self._commits:
                raise OutcomeUnknown("the connection was lost")
            return result, settles

        result, settles = self._store.write(observed)
        if settles:
            raise OutcomeUnknown("the connection was lost")
        return result


def test_a_rename_whose_answer_was_lost_after_the_commit_succeeded(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    catalog.with_store(LosesAnswers(catalog, commits=True)).alterations.alter(T, new_table("u", location=""))
    assert catalog.tables.get(TableName("default", "u")).sd.location == f"{catalog.root}/u"
    assert (catalog.warehouse / "u").is_dir()


def test_a_rename_whose_answer_was_lost_before_the_commit_is_undone(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    unlucky = catalog.with_store(LosesAnswers(catalog, commits=False))
    with pytest.raises(OutcomeUnknown):
        unlucky.alterations.alter(T, new_table("u", location=""))
    assert catalog.tables.names("default") == ["t"]
    assert (catalog.warehouse / "t").is_dir()
    assert catalog.store.read(lambda snapshot: snapshot.pending_moves()) == []


def test_a_directory_that_somebody_else_moves_is_not_missing(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    table_id = catalog.store.read(T.load).table_id
    source, target = f"{catalog.root}/t", f"{catalog.root}/u"
    catalog.store.write(lambda tx: tx.insert_pending_move(table_id, source, target))
    catalog.files.move_directory(source, target)
    error = refusal(lambda: catalog.alterations.alter(T, new_table("v", location="")))
    assert error == MetaException("table default.t is being changed by too many others at once, try again")
    assert catalog.tables.names("default") == ["t"]


def test_a_drop_finds_the_directory_that_is_being_moved(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    table_id = catalog.store.read(T.load).table_id
    source, target = f"{catalog.root}/t", f"{catalog.root}/u"
    catalog.store.write(lambda tx: tx.insert_pending_move(table_id, source, target))
    catalog.files.move_directory(source, target)
    catalog.tables.drop(T, True)
    assert list(catalog.warehouse.iterdir()) == []
    assert catalog.alterations.recover_pending_moves() == 0


def test_a_drop_does_not_follow_a_move_to_the_place_of_another_table(catalog: Catalog) -> None:
    """Such as one that a gateway of an earlier version has stored while the directory was moved."""
    for name in ("t", "u"):
        catalog.tables.create(new_table(name))
    table_id = catalog.store.read(T.load).table_id
    source, target = f"{catalog.root}/t", f"{catalog.root}/u"
    catalog.store.write(lambda tx: tx.insert_pending_move(table_id, source, target))
    catalog.tables.drop(T, True)
    assert [one.name for one in catalog.warehouse.iterdir()] == ["u"]


def new_columns(catalog: Catalog, name: TableName) -> list[list[str]]:
    return [[column.name for column in partition.sd.cols] for partition in partitions(catalog, name)]


@pytest.mark.parametrize(
    ("options", "cascades"),
    [
        ({}, False),
        ({"cascade": True}, True),
        ({"environment": EnvironmentContext({"CASCADE": "true"})}, True),
        ({"environment": EnvironmentContext({"CASCADE": "TRUE"})}, False),
        ({"environment": EnvironmentContext({"CASCADE": "false"})}, False),
    ],
)
def test_new_columns_reach_partitions_only_with_cascade(
    catalog: Catalog, options: dict[str, Any], cascades: bool
) -> None:
    catalog.tables.create(new_table(keys=columns("p string")))
    add_partitions(catalog, T, "1", "2")
    new = new_table(cols=columns("a int", "b string", "c int"), keys=columns("p string"))
    catalog.alterations.alter(T, new, **options)
    expected = ["a", "b", "c"] if cascades else ["a", "b"]
    assert new_columns(catalog, T) == [expected, expected]


def test_columns_that_are_not_changed_are_not_written_into_partitions(catalog: Catalog) -> None:
    catalog.tables.create(new_table(keys=columns("p string")))
    add_partitions(catalog, T, "1")
    catalog.alterations.alter(T, new_table(cols=columns("a int"), keys=columns("p string")))
    catalog.alterations.alter(T, new_table(cols=columns("a int"), keys=columns("p string")), cascade=True)
    assert new_columns(catalog, T) == [["a", "b"]]


def write_files(catalog: Catalog, folder: str, **sizes: int) -> None:
    for name, size in sizes.items():
        (catalog.warehouse / folder / name).write_bytes(b"x" * size)


def test_files_are_counted_and_column_accuracy_is_lost(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    write_files(catalog, "t", a=3, b=4)
    catalog.alterations.alter(T, new_table(parameters={"COLUMN_STATS_ACCURATE": "true", "numFiles": "99"}))
    parameters = catalog.tables.get(T).parameters
    assert (parameters["numFiles"], parameters["totalSize"]) == ("2", "7")
    assert "COLUMN_STATS_ACCURATE" not in parameters


def test_an_empty_table_counts_zero(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    catalog.alterations.alter(T, new_table())
    parameters = catalog.tables.get(T).parameters
    assert (parameters["numFiles"], parameters["totalSize"]) == ("0", "0")


@pytest.mark.parametrize(
    ("old", "new", "environment"),
    [
        ({}, {}, LEAVE_STATISTICS),
        ({}, {"parameters": {"DO_NOT_UPDATE_STATS": "true"}}, None),
        ({"keys": columns("p int")}, {"keys": columns("p int")}, None),
        ({"table_type": "VIRTUAL_VIEW"}, {"table_type": "VIRTUAL_VIEW"}, None),
        ({"location": "hdfs://nn/t"}, {"location": "hdfs://nn/t"}, None),
    ],
)
def test_files_are_not_counted(
    catalog: Catalog, old: dict[str, Any], new: dict[str, Any], environment: EnvironmentContext | None
) -> None:
    catalog.tables.create(new_table(**old))
    catalog.alterations.alter(T, new_table(**new), environment)
    assert catalog.tables.get(T).parameters == {"transient_lastDdlTime": str(NOW)}


@pytest.mark.parametrize(
    "changes",
    [{"tableName": None}, {"tableName": None, "dbName": None}, {"tableName": "a b"}, {"dbName": "no"}, {"sd": None}],
)
def test_the_transactional_rules_come_before_names_and_descriptor(catalog: Catalog, changes: dict[str, Any]) -> None:
    catalog.tables.create(transactional_table())
    bad = msgspec.structs.replace(new_table(parameters={"a": "b"}), **changes)
    error = refusal(lambda: catalog.alterations.alter(T, bad))
    assert isinstance(error, MetaException)
    assert str(error.message).startswith("TBLPROPERTIES with 'transactional'='true' cannot be unset: ")


def test_a_table_becomes_transactional_whatever_its_files_are_called(catalog: Catalog) -> None:
    plain = transactional_table()
    plain.parameters = {}
    catalog.tables.create(plain)
    write_files(catalog, "t", data=3)
    catalog.alterations.alter(T, transactional_table())
    assert catalog.tables.get(T).parameters["transactional"] == "true"


def test_a_table_becomes_insert_only_and_plain_again(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    insert_only = {"transactional": "true", "transactional_properties": "insert_only"}
    catalog.alterations.alter(T, new_table(parameters=insert_only))
    assert insert_only.items() <= catalog.tables.get(T).parameters.items()
    catalog.alterations.alter(T, new_table(parameters={"transactional": "false"}))
    assert not catalog.tables.get(T).parameters.keys() & insert_only.keys()


@pytest.mark.parametrize("name", [None, "a b", "a\0b"])
def test_a_table_that_is_missing_comes_before_the_names(catalog: Catalog, name: Any) -> None:
    error = refusal(lambda: catalog.alterations.alter(TableName("default", "missing"), new_table(name)))
    assert error == InvalidOperationException("default.missing table not found")


TRUE_IN_CAPITALS = EnvironmentContext({"DO_NOT_UPDATE_STATS": "TRUE"})


@pytest.mark.parametrize(
    ("changed", "environment", "left", "is_counted"),
    [
        ({"value": "true"}, None, None, False),
        ({"value": "TRUE"}, None, None, False),
        ({"value": "false"}, None, None, True),
        ({"value": "true"}, LEAVE_STATISTICS, "true", False),
        ({"value": "false"}, LEAVE_STATISTICS, "false", False),
        ({"value": "false"}, TRUE_IN_CAPITALS, None, True),
        ({"value": "true", "keys": columns("p int")}, None, "true", False),
        ({"value": "false", "keys": columns("p int")}, LEAVE_STATISTICS, "false", False),
        ({"value": "true", "table_type": "VIRTUAL_VIEW"}, None, "true", False),
        ({"value": "true", "table_type": "VIRTUAL_VIEW"}, LEAVE_STATISTICS, "true", False),
    ],
)
def test_the_mark_that_keeps_statistics_is_taken_where_files_would_be_counted(
    catalog: Catalog,
    changed: dict[str, Any],
    environment: EnvironmentContext | None,
    left: str | None,
    is_counted: bool,
) -> None:
    kind = dict(changed)
    mark = {"DO_NOT_UPDATE_STATS": kind.pop("value")}
    catalog.tables.create(new_table(**kind))
    catalog.alterations.alter(T, new_table(parameters=mark, **kind), environment)
    parameters = catalog.tables.get(T).parameters
    assert parameters.get("DO_NOT_UPDATE_STATS") == left
    assert ("numFiles" in parameters) is is_counted


def test_the_mark_that_keeps_statistics_stays_with_a_directory_that_moves(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    location = catalog.tables.get(T).sd.location
    catalog.alterations.alter(T, new_table("u", location=location, parameters={"DO_NOT_UPDATE_STATS": "true"}))
    assert catalog.tables.get(TableName("default", "u")).parameters["DO_NOT_UPDATE_STATS"] == "true"


def test_a_new_location_is_normalised_counted_and_not_made(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new/file").write_bytes(b"12")
    catalog.tables.create(new_table())
    catalog.alterations.alter(T, new_table(location=f"file://{tmp_path}//new/"))
    stored = catalog.tables.get(T)
    assert stored.sd.location == f"file:{tmp_path}/new"
    assert (stored.parameters["numFiles"], stored.parameters["totalSize"]) == ("1", "2")
    assert (catalog.warehouse / "t").is_dir()
    catalog.alterations.alter(T, new_table(location=f"file:{tmp_path}/later"))
    assert not (tmp_path / "later").exists()


@pytest.mark.parametrize("location", [None, ""])
def test_a_location_that_is_not_sent_stays(catalog: Catalog, location: str | None) -> None:
    catalog.tables.create(new_table())
    catalog.alterations.alter(T, new_table(location=location))
    assert catalog.tables.get(T).sd.location == f"{catalog.root}/t"


def test_the_type_follows_the_parameter(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    catalog.alterations.alter(T, new_table(parameters=EXTERNAL))
    assert catalog.tables.get(T).tableType == "EXTERNAL_TABLE"
    catalog.alterations.alter(T, new_table(table_type="EXTERNAL_TABLE"))
    assert catalog.tables.get(T).tableType == "MANAGED_TABLE"


def test_json_clients_do_not_wipe_skewed_locations(catalog: Catalog) -> None:
    skewed = SkewedInfo(["a"], [["1"]], {("1",): "file:/x/a=1"})
    catalog.tables.create(changed(new_table(), skewedInfo=skewed, storedAsSubDirectories=True))
    catalog.alterations.alter(T, changed(new_table(), skewedInfo=SkewedInfo(["a"], [["1"]], {})))
    assert catalog.tables.get(T).sd.skewedInfo == skewed
    moved = SkewedInfo(["a"], [["1"]], {("1",): "file:/y"})
    catalog.alterations.alter(T, changed(new_table(), skewedInfo=moved))
    assert catalog.tables.get(T).sd.skewedInfo == moved
    other = SkewedInfo(["a"], [["2"]], {})
    catalog.alterations.alter(T, changed(new_table(), skewedInfo=other))
    assert catalog.tables.get(T).sd.skewedInfo == other
    catalog.alterations.alter(T, new_table())
    assert catalog.tables.get(T).sd.skewedInfo == SkewedInfo([], [], {})


def test_a_rename_on_an_ignored_file_system_leaves_location_and_statistics(catalog: Catalog) -> None:
    catalog.databases.create(Database(name="d", locationUri="hdfs://node:8020/d.db"))
    statistics = {"numFiles": "3", "totalSize": "9", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    catalog.tables.create(new_table("t", "d", parameters=statistics))
    before = catalog.tables.get(TableName("d", "t"))
    assert before.sd.location == "hdfs://node:8020/d.db/t"
    catalog.alterations.alter(TableName("d", "t"), msgspec.structs.replace(before, tableName="renamed"))
    after = catalog.tables.get(TableName("d", "renamed"))
    assert after.sd.location == before.sd.location
    assert {name: after.parameters[name] for name in statistics} == statistics


def expecting(key: str, value: str | None) -> EnvironmentContext:
    properties = {"DO_NOT_UPDATE_STATS": "true", "expected_parameter_key": key}
    if value is not None:
        properties["expected_parameter_value"] = value
    return EnvironmentContext(properties)


def test_compare_and_swap(catalog: Catalog) -> None:
    catalog.tables.create(new_table(parameters={"metadata_location": "v1"}))
    catalog.alterations.alter(
        T, new_table(parameters={"metadata_location": "v2"}), expecting("metadata_location", "v1")
    )
    stale = new_table(parameters={"metadata_location": "v3"})
    assert refusal(lambda: catalog.alterations.alter(T, stale, expecting("metadata_location", "v1"))) == MetaException(
        "The table has been modified. The parameter value for key 'metadata_location' is 'v2'."
        " The expected was value was 'v1'"
    )
    assert catalog.tables.get(T).parameters["metadata_location"] == "v2"
    catalog.alterations.alter_as_newer(T, stale, expectedParameterKey="metadata_location", expectedParameterValue="v2")
    assert catalog.tables.get(T).parameters["metadata_location"] == "v3"


def test_compare_and_swap_does_not_unset(catalog: Catalog) -> None:
    catalog.tables.create(new_table(parameters={"k": "v"}))
    error = refusal(lambda: catalog.alterations.alter(T, new_table(), expecting("k", "v")))
    assert error == MetaException("New value for expected key k is not set")


@pytest.mark.parametrize("parameters", [{}, {"k": "other"}])
def test_a_key_without_an_expected_value_is_not_compared(catalog: Catalog, parameters: dict[str, str]) -> None:
    catalog.tables.create(new_table(parameters={"k": "v"}))
    catalog.alterations.alter(T, new_table(parameters=parameters), expecting("k", None))
    assert catalog.tables.get(T).parameters.get("k") == parameters.get("k")


def test_one_of_many_wins_compare_and_swap(catalog: Catalog) -> None:
    catalog.tables.create(new_table(parameters={"version": "0"}))

    def commit(number: int) -> bool:
        try:
            catalog.alterations.alter(T, new_table(parameters={"version": f"1-{number}"}), expecting("version", "0"))
        except MetaException:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(commit, range(16))).count(True) == 1


def test_one_of_many_renames_and_the_directory_follows(catalog: Catalog) -> None:
    catalog.tables.create(new_table())
    (catalog.warehouse / "t/file").write_text("x")

    def rename(number: int) -> bool:
        try:
            catalog.alterations.alter(T, new_table(f"u{number}", location=""))
        except (InvalidOperationException, MetaException):
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(rename, range(8))).count(True) == 1
    (name,) = catalog.tables.names("default")
    assert sorted(path.name for path in catalog.warehouse.iterdir()) == [name]
    assert (catalog.warehouse / name / "file").read_text() == "x"
    assert catalog.tables.get(TableName("default", name)).sd.location == f"{catalog.root}/{name}"
    assert catalog.store.read(lambda snapshot: snapshot.pending_moves()) == []
