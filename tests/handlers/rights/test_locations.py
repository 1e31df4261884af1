"""Locations that calls name: an object's own place, what a rule gives, and nothing else."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    AlterDatabaseRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    CreateDatabaseRequest,
    CreateTableRequest,
    Database,
    FieldSchema,
    Index,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    RenamePartitionRequest,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.runtime.settings import Settings
from tests.handlers.rights.test_authorizer import Everybody
from tests.support.catalog import place_empty_database

RULES = """
[[rule]]
groups = ["team"]
locations = ["s3://bucket/team/", "file:/data/team/*"]
"""
REFUSED = "MetaException: Permission denied: user {} may not use location {}"
SALES = "file:/w/sales.db"
PARTED = f"{SALES}/parted"


def descriptor(location: str | None) -> StorageDescriptor:
    return StorageDescriptor(cols=[FieldSchema("a", "int")], serdeInfo=SerDeInfo(parameters={}), location=location)


def table(name: str, location: str | None, owner: str = "alice", **more: Any) -> Table:
    database, _, plain = name.partition(".")
    keys = more.pop("keys", [])
    sd = descriptor(location)
    return Table(tableName=plain, dbName=database, owner=owner, sd=sd, partitionKeys=keys, parameters={}, **more)


def partition(value: str, location: str | None, **parameters: str) -> Partition:
    return Partition([value], "sales", "parted", sd=descriptor(location), parameters=parameters)


def everybody_at(folder: Path, **settings: Any) -> Everybody:
    place_empty_database(folder / DATABASE_FILE)
    (folder / "rules.toml").write_text(RULES)
    return Everybody(
        build_metastore(
            Settings(
                data_dir=folder,
                file_systems={"file": "ignore"},
                warehouse_dir="file:/w",
                administrators=["root"],
                authorization="grants",
                authorization_rules_file=folder / "rules.toml",
                **settings,
            )
        )
    )


@pytest.fixture(scope="module")
def everybody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everybody]:
    made = everybody_at(tmp_path_factory.mktemp("locations"))
    with contextlib.closing(made.metastore.store):
        for name in ("sales", "hr"):
            assert made.ask("root", "create_database", Database(name=name, ownerName="root")) is None
        assert made.grant("root", "create", "sales") is True
        assert made.grant("root", "create", "", "dave") is True
        keys = [FieldSchema("ds", "string")]
        for one in (
            table("hr.people", "file:/w/hr.db/people", "root"),
            table("sales.bobs", "file:/w/sales.db/mine-bobs", "bob"),
            table("sales.deep", "file:/w/sales.db/mine-deep/er", "bob"),
            table("sales.odd", "file:/far/odd"),
            table("sales.parted", PARTED, keys=keys),
        ):
            assert made.ask("root", "create_table", one) is None
        assert made.ask("root", "add_partition", partition("far", "file:/far/p")).values == ["far"]
        yield made


def made(everybody: Everybody, who: str, name: str, location: str) -> bool:
    """Whether the table could be made there; it is gone afterwards. A refusal has one text."""
    answer = everybody.ask(who, "create_table", table(name, location))
    if answer is None:
        assert everybody.ask("root", "drop_table", *name.split("."), False) is None
        return True
    assert answer == REFUSED.format(who.partition(":")[0], location)
    return False


@pytest.mark.parametrize(
    "location",
    [
        "file:/w/sales.db/mine",
        "file:///w/sales.db/mine/",
        "/w/sales.db/mine",
        "FILE:/w/sales.db/mine",
        "file:/w//sales.db/./mine",
        "file:/w/sales.db/Mine",
        "file:/w/sales.db/mine-__PLACEHOLDER__",
        "file:/w/sales.db/mine-6f1c/data",
        "file:/w/sales.db/mine/v=a%2Fb",
    ],
)
def test_a_table_lies_at_its_own_place(everybody: Everybody, location: str) -> None:
    assert made(everybody, "alice", "sales.mine", location)


def before_the_next_write(everybody: Everybody, monkeypatch: pytest.MonkeyPatch, *call: Any) -> None:
    """Make a call of the administrator behind all checks of the next changing call, and before its unit of work."""
    store, waiting = everybody.metastore.store, [call]
    write = store.write

    def delayed(unit: Any) -> Any:
        if waiting:
            with ThreadPoolExecutor(1) as another:
                assert another.submit(everybody.ask, "root", *waiting.pop()).result() is None
        return write(unit)

    monkeypatch.setattr(store, "write", delayed)


@pytest.mark.parametrize("below", ["", "/deep"])
@pytest.mark.parametrize(
    ("before", "given", "place"),
    [
        (None, f"{SALES}/mine-1", f"{SALES}/mine-1"),
        (None, None, f"{SALES}/mine"),
        ("mine", f"{SALES}/mine-1", f"{SALES}/mine-1"),
        ("other", f"{SALES}/other", f"{SALES}/mine"),
    ],
)
def test_a_place_is_still_free_in_the_unit_of_work(
    everybody: Everybody, monkeypatch: pytest.MonkeyPatch, before: str | None, given: str | None, place: str, below: str
) -> None:
    """Bob's table comes to the place after it was found free; a drop of the one would delete the other's data."""
    if before is not None:
        assert everybody.ask("alice", "create_table", table(f"sales.{before}", None)) is None
    how = ["create_table"] if before is None else ["alter_table", "sales", before]
    before_the_next_write(everybody, monkeypatch, "create_table", table("sales.bob", f"{place}{below}", "bob"))
    try:
        assert everybody.ask("alice", *how, table("sales.mine", given)) == REFUSED.format("alice", place)
        assert everybody.ask("root", "get_table", "sales", "bob").sd.location == f"{place}{below}"
        names = everybody.ask("root", "get_all_tables", "sales")
        assert [name for name in names if name in ("mine", "other")] == [before] * (before is not None)
    finally:
        for name in ("mine", "other", "bob"):
            everybody.ask("root", "drop_table", "sales", name, False)


@pytest.mark.parametrize(
    "location",
    [
        # where the database, others or nothing yet lies
        *("file:/w", "file:/", "file:/w/sales.db", "file:/w/sales.db/"),
        *("file:/w/sales.db/orders", "file:/w/sales.db/raw/mine", "file:/w/sales.db/mine2", "file:/w/sales.db2/mine"),
        *("file:/w/hr.db/people", "file:/w/hr.db/nothing", "file:/w/nowhere.db/mine", "/w/hr.db/people"),
        # at, below and above what another user has there
        *("file:/w/sales.db/mine-bobs", "file:/w/sales.db/mine-bobs/x", "file:/w/sales.db/mine-deep"),
        # other spellings and other file systems
        *("file:/w/sales.db/mine/../orders", "file:/w/sales.db/mine/..", "file:/w/sales.db/mine/%2e%2E/orders"),
        *("file:/w/sales.db/mine/%252e%252e/orders", "file:/w/sales.db/mine-%2F..%2Forders", "mine", "file:mine"),
        *("s3://w/sales.db/mine", "file://host/w/sales.db/mine", "local:/w/sales.db/mine", "file:"),
    ],
)
def test_other_places_are_refused_in_one_text(everybody: Everybody, location: str) -> None:
    assert not made(everybody, "alice", "sales.mine", location)


@pytest.mark.parametrize(
    ("location", "is_own"),
    [
        ("file:/w/mine", True),
        ("file:/w/mine-1", True),
        ("file:/w/mine-1.db", False),
        ("file:/w/mine-1.db/x", False),
        ("file:/w/hr.db/mine", False),
        ("file:/w/sales.db/parted", False),
    ],
)
def test_in_the_default_database_directories_of_databases_are_kept_out(
    everybody: Everybody, location: str, is_own: bool
) -> None:
    assert made(everybody, "cleo", "default.mine", location) is is_own


@pytest.mark.parametrize(
    ("location", "is_given"),
    [
        *(("s3://bucket/team", True), ("s3://bucket/team/a/b", True), ("S3://bucket//team/a", True)),
        *(("s3://bucket/teams", False), ("s3://bucket2/team/a", False), ("s3a://bucket/team/a", True)),
        *(("s3://bucket/team/../x", False), ("s3://bucket/team/%2e%2e/x", False), ("s3://bucket", False)),
        *(("file:/data/team/a", True), ("/data/team/a", True), ("file:/data/team", False), ("file:/data", False)),
    ],
)
def test_rules_give_locations(everybody: Everybody, location: str, is_given: bool) -> None:
    assert made(everybody, "cleo:team", "default.mine", location) is is_given
    assert not made(everybody, "cleo", "default.mine", location)


def test_a_place_in_a_bucket_is_the_same_by_each_of_its_schemes(everybody: Everybody) -> None:
    assert everybody.ask("root", "create_database", Database(name="pond", locationUri="s3a://bucket/pond")) is None
    assert everybody.grant("root", "create", "pond") is True
    bobs = table("pond.bobs", "s3n://bucket/pond/mine-bobs", "bob")
    assert everybody.ask("root", "create_table", bobs) is None
    for scheme in ("s3", "s3a", "s3n"):
        assert not made(everybody, "alice", "pond.mine", f"{scheme}://bucket/pond")
        assert not made(everybody, "alice", "pond.mine", f"{scheme}://bucket/pond/mine-bobs/x")
        assert made(everybody, "alice", "pond.mine", f"{scheme}://bucket/pond/mine")


def test_administrators_name_any(everybody: Everybody) -> None:
    assert made(everybody, "root", "sales.mine", "file:/w/hr.db/people")


@pytest.mark.parametrize(
    ("location", "managed", "is_own"),
    [
        *((None, None, True), ("file:/w/lake.db", None, True), ("FILE:/w/lake.db/", None, True)),
        *(("file:/w", None, False), ("file:/w/hr.db", None, False), ("file:/w/lake.db/../hr.db", None, False)),
        *(("file:/w/lake.db/x", None, False), (None, "file:/w/hr.db", False), (None, "file:/w/lake.db", True)),
    ],
)
def test_databases(everybody: Everybody, location: str | None, managed: str | None, is_own: bool) -> None:
    database = Database(name="lake", locationUri=location, managedLocationUri=managed)
    answer = everybody.ask("dave", "create_database", database)
    if not is_own:
        assert answer == REFUSED.format("dave", location or managed)
        return
    assert answer is None
    moved = Database(name="lake", ownerName="dave", ownerType=1, locationUri="file:/w/hr.db")
    assert everybody.ask("dave", "alter_database", "@hive#lake", moved) == REFUSED.format("dave", "file:/w/hr.db")
    stays = Database(name="lake", ownerName="dave", ownerType=1, locationUri="file:/w/lake.db")
    assert everybody.ask("dave", "alter_database", "@hive#lake", stays) is None
    assert everybody.ask("dave", "drop_database", "lake", False, False) is None


def test_an_altered_table_stays_where_it_is_or_goes_to_a_place_of_its_own(everybody: Everybody) -> None:
    def altered(name: str, new: Table) -> Any:
        return everybody.ask("alice", "alter_table", "sales", name, new)

    assert altered("odd", table("sales.odd", "file:/far/odd")) is None
    for location in ("file:/far", "file:/far/odd/x", "file:/w/hr.db/people", "file:/w/sales.db/parted"):
        assert altered("odd", table("sales.odd", location)) == REFUSED.format("alice", location)
    # A table of the name is there, but its location is not to be found out by naming it.
    assert not made(everybody, "alice", "sales.bobs", "file:/w/sales.db/mine-bobs")
    assert altered("odd", table("sales.even", "file:/far/odd")) is None
    assert altered("even", table("sales.even", "file:/w/sales.db/even-2")) is None
    assert altered("even", table("sales.odd", "file:/w/sales.db/odd")) is None
    assert everybody.ask("alice", "get_table", "sales", "odd").sd.location == "file:/w/sales.db/odd"
    assert everybody.ask("root", "alter_table", "sales", "odd", table("sales.odd", "file:/far/odd")) is None


def shared(location: str, relative: str, **parameters: str) -> PartitionSpec:
    bare = PartitionWithoutSD(["n"], relativePath=relative, parameters=parameters)
    return PartitionSpec(
        "sales", "parted", PARTED, sharedSDPartitionSpec=PartitionSpecWithSharedSD([bare], descriptor(location))
    )


def listed(location: str, root: str = PARTED) -> PartitionSpec:
    one = PartitionListComposingSpec(partitions=[partition("n", location)])
    return PartitionSpec("sales", "parted", root, partitionList=one)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("location", "is_own"),
    [
        *((f"{PARTED}/ds=n", True), (PARTED, True), (f"{PARTED}/ds=a%2Fb", True), ("/w/sales.db/parted/x", True)),
        *((f"{PARTED}/../orders", False), (f"{PARTED}/%2e%2e/orders", False), (f"{PARTED}2/x", False)),
        *(("file:/w/hr.db/people", False), ("file:/far/p", False), ("file:/w/sales.db", False)),
    ],
)
def test_partitions_lie_in_the_directory_of_their_table(everybody: Everybody, location: str, is_own: bool) -> None:
    new, there = partition("n", location), partition("far", location)
    there.parameters = {}
    request = AddPartitionsRequest("sales", "parted", [new], False)
    calls: list[tuple[Any, ...]] = [
        ("add_partition", new),
        ("add_partition_with_environment_context", new, None),
        ("add_partitions", [new]),
        ("add_partitions_req", request),
        ("add_partitions_pspec", [listed(location)]),
        ("add_partitions_pspec", [shared(location, "")]),
        ("add_partitions_pspec", [shared(location, "/")]) if not is_own else ("add_partition", new),
    ]
    for name, *values in calls:
        answer = everybody.ask("alice", name, *values)
        if is_own:
            assert not isinstance(answer, str), answer
            assert everybody.ask("alice", "drop_partition", "sales", "parted", ["n"], False) is True
        else:
            assert answer == REFUSED.format("alice", location)
    if is_own or location == "file:/far/p":
        return
    for name, *values in [
        ("alter_partition", "sales", "parted", there),
        ("alter_partition_with_environment_context", "sales", "parted", there, None),
        ("alter_partitions", "sales", "parted", [there]),
        ("alter_partitions_with_environment_context", "sales", "parted", [there], None),
        ("rename_partition", "sales", "parted", ["far"], there),
    ]:
        assert everybody.ask("alice", name, *values) == REFUSED.format("alice", location)


@pytest.mark.parametrize(
    ("spec", "location"),
    [
        (listed(f"{PARTED}/n", "file:/w/hr.db"), "file:/w/hr.db"),
        (shared("file:/w/sales.db", "/orders/n"), "file:/w/sales.db/orders/n"),
        (shared(PARTED, "../orders/n"), f"{PARTED}/../orders/n"),
        (shared(PARTED, "n", original_location="file:/w/hr.db"), "file:/w/hr.db"),
    ],
)
def test_partition_specs_are_checked_in_every_shape(everybody: Everybody, spec: PartitionSpec, location: str) -> None:
    assert everybody.ask("alice", "add_partitions_pspec", [spec]) == REFUSED.format("alice", location)


def test_a_partition_elsewhere_stays_there(everybody: Everybody) -> None:
    stays = partition("far", "file:/far/p", note="x")
    assert everybody.ask("alice", "alter_partition", "sales", "parted", stays) is None
    renamed = partition("further", "file:/far/p")
    for old, new in ((["far"], renamed), (["further"], stays)):
        assert everybody.ask("alice", "rename_partition", "sales", "parted", old, new) is None
    other = partition("other", "file:/far/p")
    assert everybody.ask("alice", "add_partition", other) == REFUSED.format("alice", "file:/far/p")


def test_what_a_drop_of_an_archived_partition_deletes_is_a_location(everybody: Everybody) -> None:
    archived = partition("n", f"{PARTED}/n", is_archived="true", original_location="file:/w/hr.db/people")
    assert everybody.ask("alice", "add_partition", archived) == REFUSED.format("alice", "file:/w/hr.db/people")


def test_the_table_of_an_index_is_checked(everybody: Everybody) -> None:
    index = Index("i", "handler", "sales", "parted", indexTableName="entries", sd=descriptor(None))
    place = "file:/w/hr.db/people"
    answer = everybody.ask("alice", "add_index", index, table("sales.entries", place))
    assert answer == REFUSED.format("alice", place)


def test_open_lets_calls_name_any(tmp_path: Path) -> None:
    everybody = everybody_at(tmp_path, authorization_locations="open")
    with contextlib.closing(everybody.metastore.store):
        assert made(everybody, "alice", "default.mine", "file:/w/hr.db/people")


FOREIGN = "file:/w/hr.db/people"


@pytest.mark.parametrize(
    ("who", "name", "values"),
    [
        ("dave", "create_database_req", [CreateDatabaseRequest("pond", locationUri=FOREIGN)]),
        ("alice", "create_table_req", [CreateTableRequest(table("sales.mine", FOREIGN))]),
        ("alice", "create_table_with_constraints", [table("sales.mine", FOREIGN), [], [], [], [], [], []]),
        ("alice", "create_table_with_environment_context", [table("sales.mine", FOREIGN), None]),
        ("alice", "alter_table_req", [AlterTableRequest("hive", "sales", "odd", table("sales.odd", FOREIGN))]),
        ("alice", "alter_table_with_cascade", ["sales", "odd", table("sales.odd", FOREIGN), False]),
        ("alice", "alter_table_with_environment_context", ["sales", "odd", table("sales.odd", FOREIGN), None]),
        (
            "alice",
            "alter_partitions_req",
            [AlterPartitionsRequest(dbName="sales", tableName="parted", partitions=[partition("far", FOREIGN)])],
        ),
        (
            "alice",
            "rename_partition_req",
            [
                RenamePartitionRequest(
                    dbName="sales", tableName="parted", partVals=["far"], newPart=partition("far", FOREIGN)
                )
            ],
        ),
    ],
)
def test_other_methods_that_name_locations(everybody: Everybody, who: str, name: str, values: list[Any]) -> None:
    assert everybody.ask(who, name, *values) == REFUSED.format(who, FOREIGN)


def test_the_owner_of_a_database_moves_it_to_no_other_place(everybody: Everybody) -> None:
    owned = Database(name="lake", ownerName="dave", ownerType=1)
    assert everybody.ask("dave", "create_database", owned) is None
    moved = Database(name="lake", ownerName="dave", ownerType=1, locationUri=FOREIGN)
    answer = everybody.ask("dave", "alter_database_req", AlterDatabaseRequest("lake", moved))
    assert answer == REFUSED.format("dave", FOREIGN)
    assert everybody.ask("dave", "drop_database", "lake", False, False) is None
