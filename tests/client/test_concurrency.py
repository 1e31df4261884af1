"""Which locks a command needs, row by row of the table on Hive's page and beyond."""

import pytest

from hms_gateway.client.concurrency import (
    HIVE_CODE,
    HIVE_PAGE,
    Command,
    LockPlace,
    Mode,
    NeededLock,
    NotAKey,
    Operation,
    in_key_order,
    lock_components,
    needed_locks,
)
from hms_gateway.rpc.structs import LockLevel, LockType

S, X = Mode.SHARED, Mode.EXCLUSIVE
T1, P1, T2 = LockPlace("d", "t1"), LockPlace("d", "t1", ("p1",)), LockPlace("d", "t2")

# Each row of the table of Hive's page; what HIVE_CODE says is given where it differs, without the databases.
PAGE = {
    "select t1 partition p1": (Command(Operation.SELECT, reads=(P1,)), "S t1, S t1.p1", None),
    "insert into t2(p2) select t1 partition p1": (
        Command(Operation.INSERT, (LockPlace("d", "t2", ("p2",)),), (P1,)),
        "S t1, S t1.p1, S t2, X t2.p2",
        None,
    ),
    "insert into t2(p.q) select t1 partition p1": (
        Command(Operation.INSERT, (LockPlace("d", "t2", ("p", "q")),), (P1,)),
        "S t1, S t1.p1, S t2, S t2.p, X t2.p.q",
        None,
    ),
    "rename t1 to t2": (Command(Operation.RENAME_TABLE, (T1,)), "X t1", None),
    "add cols": (Command(Operation.ADD_COLUMNS, (T1,)), "X t1", None),
    "replace cols": (Command(Operation.REPLACE_COLUMNS, (T1,)), "X t1", None),
    "change cols": (Command(Operation.CHANGE_COLUMN, (T1,)), "X t1", None),
    "concatenate": (Command(Operation.CONCATENATE, (T1,)), "X t1", None),
    "add partition p1": (Command(Operation.ADD_PARTITION, (P1,)), "S t1, X t1.p1", "S t1"),
    "drop partition p1": (Command(Operation.DROP_PARTITION, (P1,)), "S t1, X t1.p1", None),
    "touch partition p1": (Command(Operation.TOUCH, (P1,)), "S t1, X t1.p1", ""),
    "set serdeproperties": (Command(Operation.SET_SERDE_PROPERTIES, (T1,)), "S t1", None),
    "set serializer": (Command(Operation.SET_SERDE, (T1,)), "S t1", "X t1"),
    "set file format": (Command(Operation.SET_FILE_FORMAT, (T1,)), "S t1", "X t1"),
    "set tblproperties": (Command(Operation.SET_TABLE_PROPERTIES, (T1,)), "X t1", "S t1"),
    "partition p1 concatenate": (Command(Operation.CONCATENATE, (P1,)), "S t1, X t1.p1", None),
    "drop table": (Command(Operation.DROP_TABLE, (T1,)), "X t1", None),
}

# What Hive's code does for others.
FURTHER = {
    "insert without partitions": (Command(Operation.INSERT, (T2,), (T1,)), "S t1, X t2"),
    "insert dynamically below p": (Command(Operation.INSERT, (LockPlace("d", "t2", ("p",)),)), "S t2, X t2.p"),
    "insert into what is read": (Command(Operation.INSERT, (T1,), (T1,)), "X t1"),
    "insert into a partition that is read": (Command(Operation.INSERT, (P1,), (P1, T1)), "S t1, X t1.p1"),
    "rename partition": (
        Command(Operation.RENAME_PARTITION, (P1, LockPlace("d", "t1", ("p2",)))),
        "S t1, X t1.p1, X t1.p2",
    ),
    "unset tblproperties": (Command(Operation.UNSET_TABLE_PROPERTIES, (T1,)), "X t1"),
    "set the file format of a partition": (Command(Operation.SET_FILE_FORMAT, (P1,)), "S t1, X t1.p1"),
    "archive": (Command(Operation.ARCHIVE, (P1,)), "S t1, X t1.p1"),
    "truncate": (Command(Operation.TRUNCATE, (T1,)), "X t1"),
    "set location": (Command(Operation.SET_LOCATION, (T1,)), "X t1"),
    "clustered by": (Command(Operation.SET_STORAGE, (T1,)), "X t1"),
    "partition column": (Command(Operation.PARTITION_COLUMN, (T1,)), "X t1"),
    "constraint": (Command(Operation.CONSTRAINT, (T1,)), "X t1"),
    "compact": (Command(Operation.COMPACT, (P1,)), ""),
    "create database": (Command(Operation.CREATE_DATABASE, (LockPlace("d"),)), ""),
    "lock shared": (Command(Operation.LOCK_SHARED, (P1,)), "S t1, S t1.p1"),
    "lock exclusive": (Command(Operation.LOCK_EXCLUSIVE, (T1,)), "X t1"),
}


def shown(locks):
    """Without the database, which all of these are in."""
    return ", ".join(f"{mode} {'.'.join(place.path[1:])}" for place, mode in locks if place.table_name is not None)


@pytest.mark.parametrize("row", PAGE.values(), ids=PAGE)
def test_every_row_of_the_page(row):
    command, expected, _ = row
    assert shown(needed_locks(command)) == expected
    assert all(place.table_name is not None for place, _ in needed_locks(command))


@pytest.mark.parametrize("row", PAGE.values(), ids=PAGE)
def test_what_hives_code_does_instead(row):
    command, expected, by_code = row
    assert shown(needed_locks(command, HIVE_CODE)) == (expected if by_code is None else by_code)


@pytest.mark.parametrize("row", FURTHER.values(), ids=FURTHER)
@pytest.mark.parametrize("rules", [HIVE_PAGE, HIVE_CODE])
def test_what_the_page_does_not_list(row, rules):
    command, expected = row
    assert shown(needed_locks(command, rules)) == expected


def test_databases():
    database = LockPlace("d")
    create = Command(Operation.CREATE_TABLE, (T1,), (LockPlace("e", "t"),))
    assert needed_locks(create) == [NeededLock(database, S), NeededLock(LockPlace("e", "t"), S)]
    assert needed_locks(Command(Operation.DROP_DATABASE, (database,))) == [NeededLock(database, X)]
    assert needed_locks(Command(Operation.LOCK_SHARED, (database,))) == [NeededLock(database, S)]
    by_code = needed_locks(Command(Operation.DROP_TABLE, (T1,)), HIVE_CODE)
    assert by_code == [NeededLock(database, S), NeededLock(T1, X)]


def test_every_operation_has_a_rule():
    assert set(HIVE_PAGE) == set(HIVE_CODE) == set(Operation)


def test_locks_are_taken_in_the_order_of_names_whatever_the_order_of_the_command():
    places = [
        LockPlace("b", "t"),
        LockPlace("a", "u", ("y",)),
        LockPlace("a", "t", ("x", "z")),
        LockPlace("a", "t!"),
        LockPlace("a", "t"),
    ]
    commands = [Command(Operation.SELECT, reads=tuple(order)) for order in (places, reversed(places))]
    first, second = (needed_locks(command) for command in commands)
    assert first == second
    assert [place.path for place, _ in first] == sorted(place.path for place, _ in first)
    assert [str(place) for place, _ in first] == ["a.t", "a.t.x", "a.t.x.z", "a.t!", "a.u", "a.u.y", "b.t"]


def test_parents_are_locked_whenever_a_partition_is():
    deep = LockPlace("d", "t", ("a=1", "b=2", "c=3"))
    for operation in (Operation.DROP_PARTITION, Operation.LOCK_SHARED, Operation.INSERT):
        locks = dict(needed_locks(Command(operation, (deep,))))
        assert [locks[parent] for parent in deep.parents()] == [S, S, S]


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        (("ds=1", "hr=2"), ("ds=1", "hr=2")),
        (("hr=2", "DS=1"), ("DS=1", "hr=2")),
        (("ds=1",), ("ds=1",)),
        (("hr=2",), ()),
        (("mi=3", "ds=1"), ("ds=1",)),
        (("p1", "q"), ("p1", "q")),
        ((), ()),
    ],
)
def test_partitions_are_named_in_the_order_of_the_tables_keys(partition, expected):
    command = Command(Operation.DROP_PARTITION, (LockPlace("d", "t", partition),), (LockPlace("d", "t", partition),))
    ordered = in_key_order(command, lambda table: dict.fromkeys(["ds", "hr", "mi"], "string"))
    assert ordered.places == ordered.reads == (LockPlace("d", "t", expected),)
    assert ordered.operation is Operation.DROP_PARTITION
    assert in_key_order(command, lambda table: None) == command


def test_only_tables_of_described_partitions_are_asked_for():
    places = (LockPlace("d"), LockPlace("d", "t"), LockPlace("d", "t", ("p",)), LockPlace("d", "u", ("ds=1",)))
    asked = []
    in_key_order(Command(Operation.LOCK_SHARED, places), asked.append)
    assert asked == [LockPlace("d", "u")]


@pytest.mark.parametrize(("keys", "text"), [(["ds"], "which has ds"), ([], "which has none")])
def test_what_is_no_partition_key_is_refused(keys, text):
    with pytest.raises(NotAKey, match=f"^sd is not a partition key of d.t, {text}$"):
        in_key_order(
            Command(Operation.TRUNCATE, (LockPlace("d", "t", ("sd=1",)),)), lambda table: dict.fromkeys(keys, "string")
        )


def components(*locks):
    return [
        (part.type, part.level, part.dbname, part.tablename, part.partitionname)
        for part in lock_components([NeededLock(*lock) for lock in locks])
    ]


def test_a_request_leaves_out_what_the_metastore_knows_by_itself():
    prefix, deep = LockPlace("d", "t2", ("p",)), LockPlace("d", "t2", ("p", "q"))
    assert components((LockPlace("d"), S), (T1, S), (P1, S), (T2, S), (prefix, S), (deep, X)) == [
        (LockType.SHARED_READ, LockLevel.PARTITION, "d", "t1", "p1"),
        (LockType.SHARED_READ, LockLevel.PARTITION, "d", "t2", "p"),
        (LockType.EXCLUSIVE, LockLevel.PARTITION, "d", "t2", "p/q"),
    ]


def test_a_request_keeps_what_is_locked_for_itself():
    assert components((T1, S), (T2, X), (LockPlace("e"), S)) == [
        (LockType.SHARED_READ, LockLevel.TABLE, "d", "t1", None),
        (LockType.EXCLUSIVE, LockLevel.TABLE, "d", "t2", None),
        (LockType.SHARED_READ, LockLevel.DB, "e", None, None),
    ]
    assert components((T1, X), (P1, X)) == [
        (LockType.EXCLUSIVE, LockLevel.TABLE, "d", "t1", None),
        (LockType.EXCLUSIVE, LockLevel.PARTITION, "d", "t1", "p1"),
    ]
