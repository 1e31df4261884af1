"""Appends to one table by many writers: none fails, and none is lost."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hms_gateway.iceberg.appends import REBASE, Together, append_of, with_manifests
from hms_gateway.iceberg.catalog import SentAppend
from hms_gateway.iceberg.commits import Committer
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.manifest_lists import block_of, list_of_blocks, read_manifests
from hms_gateway.iceberg.metastore import Name
from hms_gateway.metastore.ports.store import FileSystemAway
from hms_gateway.rpc.call import Call, Dialect, Waiting
from hms_gateway.rpc.repeatable import KeyReused
from hms_gateway.rpc.structs import ChangesRequest, LockComponent, LockLevel, LockRequest, LockType, UnlockRequest
from hms_gateway.runtime.call_keys import AlreadyConcluded, CallKey
from hms_gateway.runtime.presented import Actor, LockCaller
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import kind_of
from tests.support.patience import until

SET = {"action": "set-properties", "updates": {"a": "b"}}


def manifest(name, snapshot_id, sequence=1, **more):
    return {
        "manifest_path": f"{name}.avro",
        "manifest_length": 100,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": snapshot_id,
        "added_files_count": 1,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 10,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [
            {"contains_null": False, "contains_nan": None, "lower_bound": b"a", "upper_bound": b"b"},
        ],
        "key_metadata": None,
        **more,
    }


def written_manifests(entries, format_version, about):
    """A manifest list of one block."""
    return list_of_blocks([block_of(entries, format_version)], format_version, about)


class Writer:
    """Appends as a client that never reads the table again: from the state it knows."""

    def __init__(self, rest, table, version=2):
        self.rest = rest
        self.known = table["metadata"]
        self.version = version
        self.folder = Path(self.known["location"].removeprefix("file:")) / "metadata"

    def request(self, number, *manifests, operation="append", branch="main", **more):
        """The body of an append with these manifests, whose list is written; by default one of its own."""
        refs = self.known["refs"]
        required = refs.get(branch, {}).get("snapshot-id")
        # As Java's client begins a new branch.
        head = refs.get("main", {}).get("snapshot-id") if required is None else required
        sequence = self.known.get("last-sequence-number", 0) + 1
        snapshot = {
            "snapshot-id": number,
            "sequence-number": sequence,
            "timestamp-ms": self.known["last-updated-ms"] + 1,
            "manifest-list": f"file:{self.folder}/{number}.avro",
            "schema-id": 0,
            "summary": {"operation": operation, "added-records": "10", "added-data-files": "1", "total-records": "10"},
            **({} if head is None else {"parent-snapshot-id": head}),
            **more,
        }
        entries = manifests or (manifest(f"m{number}", number, sequence),)
        list_file = self.folder / f"{number}.avro"
        list_file.write_bytes(written_manifests(entries, self.version, snapshot))
        return {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": self.known["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": required},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {
                    "action": "set-snapshot-ref",
                    **refs.get(branch, {}),
                    "ref-name": branch,
                    "type": "branch",
                    "snapshot-id": number,
                },
            ],
        }

    def append(self, number, *manifests, **more):
        return self.rest.post("namespaces/sales/tables/orders", self.request(number, *manifests, **more))


@pytest.fixture
def table(rest):
    return rest.table(properties={REBASE: "true"})


def manifests_of(snapshot):
    return read_manifests(Path(snapshot["manifest-list"].removeprefix("file:")).read_bytes())


def test_a_late_append_is_put_behind_the_others(rest, table):
    late = Writer(rest, table)
    assert Writer(rest, table).append(1)[0] == 200
    status, found = late.append(2)
    assert status == 200
    first, second = found["metadata"]["snapshots"]
    assert (second["snapshot-id"], second["parent-snapshot-id"], second["sequence-number"]) == (2, 1, 2)
    assert second["summary"] == {
        "operation": "append", "added-records": "10", "added-data-files": "1", "total-records": "20"
    }  # fmt: skip
    assert manifests_of(first) == [manifest("m1", 1, 1)]
    assert manifests_of(second) == [manifest("m2", 2, 2), manifest("m1", 1, 1)]
    assert found["metadata"]["current-snapshot-id"] == 2
    assert rest.get("namespaces/sales/tables/orders")[1] == found


def test_every_append_of_many_writers_succeeds_once(rest, table):
    def write(writer_number):
        writer = Writer(rest.as_user("rosa"), table)
        return [writer.append(writer_number * 100 + each)[0] for each in range(1, 6)]

    with ThreadPoolExecutor(8) as threads:
        answers = [status for statuses in threads.map(write, range(1, 9)) for status in statuses]
    assert answers == [200] * 40
    found = rest.get("namespaces/sales/tables/orders")[1]["metadata"]
    numbers = {writer * 100 + each for writer in range(1, 9) for each in range(1, 6)}
    assert [one["sequence-number"] for one in found["snapshots"]] == list(range(1, 41))
    assert {one["snapshot-id"] for one in found["snapshots"]} == numbers
    newest = found["snapshots"][-1]
    assert {one["added_snapshot_id"] for one in manifests_of(newest)} == numbers
    assert newest["summary"]["total-records"] == "400"
    parents = [one.get("parent-snapshot-id") for one in found["snapshots"]]
    assert parents == [None, *(one["snapshot-id"] for one in found["snapshots"][:-1])]


def test_a_repeated_append_is_made_once(rest, table):
    writer = Writer(rest, table)
    body = writer.request(1)
    assert rest.post("namespaces/sales/tables/orders", body)[0] == 200
    assert Writer(rest, table).append(2)[0] == 200
    (writer.folder / "1.avro").unlink()
    status, found = rest.post("namespaces/sales/tables/orders", body)
    assert (status, [one["snapshot-id"] for one in found["metadata"]["snapshots"]]) == (200, [1, 2])


def test_a_keyed_append_is_answered_as_the_first_time(rest, table, anew):
    path, body = "namespaces/sales/tables/orders", Writer(rest, table).request(1)
    first = rest.post(path, body, key="k1")
    assert first[0] == 200
    assert Writer(rest, table).append(2)[0] == 200
    assert rest.commit("orders", {"action": "remove-snapshots", "snapshot-ids": [1]})[0] == 200
    after_a_restart = anew()
    assert after_a_restart.post(path, body, key="k1") == first
    with pytest.raises(KeyReused):
        after_a_restart.post(path, Writer(rest, table).request(3), key="k1")
    found = rest.get(path)[1]["metadata"]
    assert [one["snapshot-id"] for one in found["snapshots"]] == [2]


def test_appends_that_go_together_keep_their_own_keys(rest, table, metastore):
    def sent(number, key):
        body = Writer(rest, table).request(number)
        append = with_manifests(append_of(body["requirements"], body["updates"]), [manifest(f"m{number}", number)])
        return SentAppend(Call("rosa"), append, CallKey("rosa", key, "iceberg.updateTable", bytes([number])))

    catalog, name = metastore.iceberg()._catalog._catalog, Name("hive", "sales", "orders")
    batch = [sent(1, "k1"), sent(2, "k2")]
    results = catalog._append_all(name, batch)
    assert results[0] is results[1]
    assert [one.key.is_concluded for one in batch] == [True, True]
    assert [metastore.store.find("rosa", key).message_hash for key in ("k1", "k2")] == [b"\1", b"\2"]
    again = [sent(3, "k3"), sent(4, "k3"), sent(5, "k1"), sent(6, "k6")]
    results = catalog._append_all(name, again)
    assert [isinstance(one, AlreadyConcluded) for one in results] == [False, True, True, False]
    found = rest.get("namespaces/sales/tables/orders")[1]["metadata"]
    assert [one["snapshot-id"] for one in found["snapshots"]] == [1, 2, 3, 6]
    lists = {Path(one["manifest-list"]).name for one in found["snapshots"]}
    written = {one.name for one in Writer(rest, table).folder.glob("snap-*")}
    assert written <= lists


def test_without_the_property_a_late_append_is_a_conflict(rest):
    table = rest.table()
    late = Writer(rest, table)
    Writer(rest, table).append(1)
    assert kind_of(late.append(2)) == (409, "CommitFailedException")


@pytest.mark.parametrize("operation", ["overwrite", "delete", "replace"])
def test_what_is_no_append_is_a_conflict(rest, table, operation):
    late = Writer(rest, table)
    Writer(rest, table).append(1)
    assert kind_of(late.append(2, operation=operation)) == (409, "CommitFailedException")


@pytest.mark.parametrize("more", [{"existing_files_count": 3}, {"deleted_files_count": 1}, {"content": 1}])
def test_merged_manifests_are_a_conflict(rest, table, more):
    late = Writer(rest, table)
    Writer(rest, table).append(1)
    assert kind_of(late.append(2, manifest("merged", 2, 1, **more))) == (409, "CommitFailedException")


def test_an_append_whose_list_cannot_be_read_is_a_conflict(rest, table):
    late = Writer(rest, table)
    body = late.request(2)
    (late.folder / "2.avro").write_bytes(b"Obj\x01nothing")
    Writer(rest, table).append(1)
    assert kind_of(rest.post("namespaces/sales/tables/orders", body)) == (409, "CommitFailedException")


def test_an_append_behind_a_list_that_cannot_be_read_is_a_conflict(rest, table, metastore, monkeypatch):
    late = Writer(rest, table)
    Writer(rest, table).append(1)
    files = metastore.iceberg()._catalog._catalog._files._files
    read_file = files.read_file

    def away(location, bytes_max):
        if location.endswith("/1.avro"):
            raise FileSystemAway("bucket lake cannot be reached")
        return read_file(location, bytes_max)

    with monkeypatch.context() as patched:
        patched.setattr(files, "read_file", away)
        assert kind_of(late.append(4)) == (503, "ServiceUnavailableException")
    (late.folder / "1.avro").write_bytes(b"Obj\x01nothing")
    assert kind_of(late.append(2)) == (409, "CommitFailedException")
    (late.folder / "1.avro").unlink()
    assert kind_of(late.append(3)) == (409, "CommitFailedException")


@pytest.mark.parametrize("field", ["snapshot-id", "manifest-list", "timestamp-ms", "summary"])
@pytest.mark.parametrize("value", [None, 5.5, [], {"a": []}])
def test_an_append_with_odd_fields_is_refused(rest, table, field, value):
    late = Writer(rest, table)
    body = late.request(2)
    Writer(rest, table).append(1)
    body["updates"][0]["snapshot"][field] = value
    assert rest.post("namespaces/sales/tables/orders", body)[0] in (400, 409)


def test_lists_of_other_tables_are_not_read(rest, table):
    other = rest.table("other", properties={REBASE: "true"})
    late = Writer(rest, table)
    foreign = Writer(rest, other)
    body = late.request(2, manifest("m2", 2))
    (late.folder / "2.avro").rename(foreign.folder / "2.avro")
    body["updates"][0]["snapshot"]["manifest-list"] = f"file:{foreign.folder}/2.avro"
    Writer(rest, table).append(1)
    assert kind_of(rest.post("namespaces/sales/tables/orders", body)) == (409, "CommitFailedException")
    named = late.request(3, manifest("m3", 3))
    current = rest.get("namespaces/sales/tables/orders")[1]
    as_it_is = Writer(rest, current).request(4, manifest("m4", 4))
    as_it_is["updates"][0]["snapshot"]["manifest-list"] = f"file:{foreign.folder}/2.avro"
    assert rest.post("namespaces/sales/tables/orders", as_it_is)[0] == 200
    assert kind_of(rest.post("namespaces/sales/tables/orders", named)) == (409, "CommitFailedException")


def test_other_requirements_still_hold(rest, table):
    late = Writer(rest, table)
    body = late.request(2)
    body["requirements"].append({"type": "assert-current-schema-id", "current-schema-id": 4})
    assert kind_of(rest.post("namespaces/sales/tables/orders", body)) == (409, "CommitFailedException")
    assert [one.name for one in late.folder.glob("snap-*")] == []


def test_an_append_after_other_changes(rest, table):
    late = Writer(rest, table)
    Writer(rest, table).append(1)
    rest.commit("orders", SET)
    schema = {**table["metadata"]["schemas"][0], "fields": table["metadata"]["schemas"][0]["fields"][:1]}
    add = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
    assert rest.commit("orders", *add)[0] == 200
    status, found = late.append(2)
    assert (status, found["metadata"]["snapshots"][-1]["schema-id"]) == (200, 1)
    assert found["metadata"]["properties"]["a"] == "b"


def test_rows_of_version_three_are_numbered_anew(rest):
    table = rest.table(properties={REBASE: "true", "format-version": "3"})
    late = Writer(rest, table, version=3)
    rows = {"first-row-id": 0, "added-rows": 10}
    first = manifest("m1", 1, 1, first_row_id=0)
    assert Writer(rest, table, version=3).append(1, first, **rows)[0] == 200
    status, found = late.append(2, manifest("m2", 2, 1, first_row_id=0), **rows)
    assert status == 200
    newest = found["metadata"]["snapshots"][-1]
    assert (newest["first-row-id"], found["metadata"]["next-row-id"]) == (10, 20)
    assert [one["first_row_id"] for one in manifests_of(newest)] == [10, 0]


def test_rows_without_numbers_are_a_conflict_in_version_three(rest, table):
    """The client's next attempt numbers them."""
    before = Writer(rest, table)
    assert before.append(1)[0] == 200
    upgraded = rest.commit("orders", {"action": "upgrade-format-version", "format-version": 3})[1]
    writer, rows = Writer(rest, upgraded, version=3), {"first-row-id": 0, "added-rows": 20}
    assert writer.append(3, branch="audit", **rows)[0] == 200
    own, numbered = manifest("m4", 4, 2, first_row_id=0), manifest("m1", 1, 1, first_row_id=10)
    late = writer.request(4, own, numbered, **rows)
    assert kind_of(rest.post("namespaces/sales/tables/orders", late)) == (409, "CommitFailedException")
    current = Writer(rest, rest.get("namespaces/sales/tables/orders")[1], version=3)
    assert current.append(5, manifest("m5", 5, 3, first_row_id=20), numbered, **{**rows, "first-row-id": 20})[0] == 200
    assert kind_of(before.append(2)) == (409, "CommitFailedException")
    assert kind_of(writer.append(6, manifest("m6", 6, 2), numbered, **rows)) == (409, "CommitFailedException")
    for field, value in rows.items():
        answer = writer.append(7, manifest("m7", 7, 2, first_row_id=0), numbered, **{field: value})
        assert kind_of(answer) == (409, "CommitFailedException")
    status, found = rest.post("namespaces/sales/tables/orders", late)
    assert (status, found["metadata"]["next-row-id"]) == (200, 60)
    assert [one["first_row_id"] for one in manifests_of(found["metadata"]["snapshots"][-1])] == [40, 20, 10]


def test_version_one_has_no_sequence_numbers(rest):
    table = rest.table(properties={REBASE: "true", "format-version": "1"})
    late = Writer(rest, table, version=1)
    assert Writer(rest, table, version=1).append(1, manifest("m1", 1, 0), **{"sequence-number": 0})[0] == 200
    status, found = late.append(2, manifest("m2", 2, 0), **{"sequence-number": 0})
    assert status == 200
    newest = found["metadata"]["snapshots"][-1]
    assert newest["sequence-number"] == 0
    assert [one["sequence_number"] for one in manifests_of(newest)] == [0, 0]


@pytest.fixture
def sent(rest, metastore):
    """An append on its way to the table: the state of `writer`, whatever was committed since."""

    def make(writer, number, user="rosa", waited_seconds=0.0, locks=None, requirements=(), **more):
        body = writer.request(number, **more)
        append = append_of([*body["requirements"], *requirements], body["updates"])
        append = with_manifests(append, [manifest(f"m{number}", number)])
        call = Call(user, request_id=f"r{number}", waited_seconds=waited_seconds)
        return SentAppend(call, append, None, Committer(Actor(user, request_id=call.request_id), locks))

    return make


@pytest.fixture
def append_all(metastore):
    """Commits appends that wait together."""
    catalog = metastore.iceberg()._catalog._catalog
    return lambda *appends: catalog._append_all(Name("hive", "sales", "orders"), appends)


def test_version_one_takes_appends_that_wait_together(rest, sent, append_all):
    writer = Writer(rest, rest.table(properties={REBASE: "true", "format-version": "1"}), version=1)
    results = append_all(*(sent(writer, each, **{"sequence-number": 0}) for each in (1, 2, 3)))
    assert [one["snapshot-id"] for one in results[2].value["snapshots"]] == [1, 2, 3]


@pytest.fixture
def ask(metastore):
    """Calls of the metastore by an administrator."""
    return Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, "admin").ask


def refusing(schema_id):
    return [{"type": "assert-current-schema-id", "current-schema-id": schema_id}]


def test_every_change_is_of_the_user_whose_appends_it_has(rest, table, sent, append_all, ask):
    writer = Writer(rest, table)
    refused = sent(writer, 1, "ann", requirements=refusing(4)), sent(writer, 2, "bob", requirements=refusing(4))
    good = sent(writer, 3, "bob"), sent(writer, 4, "eva"), sent(writer, 5, "bob")
    results = append_all(*refused, *good)
    assert [isinstance(one, IcebergError) for one in results] == [True, True, False, False, False]
    assert results[2] is results[4]
    found = rest.get("namespaces/sales/tables/orders")[1]["metadata"]
    assert [one["snapshot-id"] for one in found["snapshots"]] == [3, 5, 4]
    changes = {user: ask("list_changes", ChangesRequest(user=user)) for user in ("ann", "bob", "eva")}
    noted = {user: [(one.event_type, one.request_id) for one in of] for user, of in changes.items()}
    assert noted == {"ann": [], "bob": [("ALTER_TABLE", "r3")], "eva": [("ALTER_TABLE", "r4")]}


@pytest.mark.parametrize("users", [("ann", "ann"), ("ann", "bob")])
@pytest.mark.parametrize("waited", [(10.0, 0.0), (0.0, 10.0)])
def test_every_append_waits_ten_seconds_for_a_lock(rest, table, sent, append_all, ask, users, waited):
    writer = Writer(rest, table)
    made = sent(writer, 1)
    append_all(made)
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "sales", "orders")
    lock = ask("lock", LockRequest([component], user="pia", hostname="h"))
    state = rest.get("namespaces/sales/tables/orders")
    both = [sent(writer, each, user, seconds) for each, user, seconds in zip((2, 3), users, waited, strict=True)]
    refused = sent(writer, 4, users[0], requirements=refusing(4))
    *results, again, failure = append_all(*both, made, refused)
    expected = {10.0: IcebergError, 0.0: Waiting}
    assert [type(one) for one in results] == [expected[seconds] for seconds in waited]
    assert "lock" in str(results[waited.index(10.0)])
    # What was made before is told so, and a requirement that fails now is no matter of locks.
    assert again.value == state[1]["metadata"]
    assert "schema" in str(failure)
    assert rest.get("namespaces/sales/tables/orders") == state
    ask("unlock", UnlockRequest(lock.lockid))
    assert not any(isinstance(one, Exception) for one in append_all(*both))


def test_locks_stop_the_appends_of_others_only(rest, table, sent, append_all, ask):
    component = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, "sales", "orders")
    ask("lock", LockRequest([component], user="pia", hostname="h"))
    users = ("ann", "admin", "ann")
    callers = [LockCaller(user, "", 300_000) for user in users]
    appends = zip((1, 2, 3), users, callers, strict=True)
    results = append_all(*(sent(Writer(rest, table), each, user, locks=caller) for each, user, caller in appends))
    assert [isinstance(one, Waiting) for one in results] == [True, False, True]


def set_ref(name, number, kind="branch", **more):
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": number, **more}


def test_a_new_branch_keeps_what_it_begins_with(rest, table):
    found = Writer(rest, table).append(1)[1]
    writer = Writer(rest, found)
    both = manifest("m2", 2, 2), manifest("m1", 1, 1)
    body = writer.request(2, *both, branch="audit")
    late = writer.request(3, manifest("m3", 3, 2), both[1], branch="audit")
    status, made = rest.post("namespaces/sales/tables/orders", body)
    assert (status, made["metadata"]["refs"]["audit"]["snapshot-id"]) == (200, 2)
    assert manifests_of(made["metadata"]["snapshots"][1]) == list(both)
    status, made = rest.post("namespaces/sales/tables/orders", late)
    assert (status, made["metadata"]["snapshots"][2]["parent-snapshot-id"]) == (200, 2)
    assert [one["added_snapshot_id"] for one in manifests_of(made["metadata"]["snapshots"][2])] == [3, 2, 1]


@pytest.mark.parametrize("is_together", [False, True])
@pytest.mark.parametrize(
    ("branch", "before", "change"),
    [
        ("audit", SET, set_ref("audit", 1, "tag")),
        ("audit", set_ref("audit", 1), {"action": "remove-snapshot-ref", "ref-name": "audit"}),
        ("main", set_ref("audit", 1), {"action": "remove-snapshot-ref", "ref-name": "main"}),
    ],
    ids=["tag", "dropped", "main dropped"],
)
def test_an_append_to_a_branch_that_is_none_now(rest, table, sent, append_all, branch, before, change, is_together):
    """Neither is the branch made anew without what it had, nor is a tag moved."""
    assert Writer(rest, table).append(1)[0] == 200
    writer = Writer(rest, rest.commit("orders", before)[1])
    waiting, body = sent(writer, 2, branch=branch), writer.request(2, branch=branch)
    state = rest.commit("orders", change)[1]
    if is_together:
        (failure,) = append_all(waiting)
        assert (failure.status, failure.kind) == (409, "CommitFailedException")
    else:
        assert kind_of(rest.post("namespaces/sales/tables/orders", body)) == (409, "CommitFailedException")
    assert rest.get("namespaces/sales/tables/orders")[1] == state


def test_a_late_append_keeps_the_bounds_of_its_branch(rest, table):
    found = Writer(rest, table).append(1)[1]
    late = Writer(rest, found)
    bounds = {"min-snapshots-to-keep": 5, "max-ref-age-ms": 1000}
    assert rest.commit("orders", set_ref("main", 1, **bounds))[0] == 200
    refs = late.append(2)[1]["metadata"]["refs"]
    assert refs == {"main": {"snapshot-id": 2, "type": "branch", **bounds}}


def test_totals_that_the_parent_does_not_know_stay_unknown(rest, table):
    late = Writer(rest, table)
    assert Writer(rest, table).append(1, summary={"operation": "append"})[0] == 200
    summary = late.append(2)[1]["metadata"]["snapshots"][-1]["summary"]
    assert "total-records" not in summary


def test_an_append_to_a_table_that_was_dropped(rest, table):
    body = Writer(rest, table).request(1)
    rest.send("DELETE", "namespaces/sales/tables/orders")
    assert kind_of(rest.post("namespaces/sales/tables/orders", body)) == (404, "NoSuchTableException")


def test_only_a_snapshot_and_its_branch_are_an_append():
    snapshot = {"snapshot-id": 1, "manifest-list": "x", "summary": {"operation": "append"}}
    add = {"action": "add-snapshot", "snapshot": snapshot}
    branch = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}
    assert append_of([], [add, branch]) is not None
    assert append_of([], [add, branch, SET]) is None
    assert append_of([], [add]) is None
    assert append_of([], [add, {**branch, "type": "tag"}]) is None
    assert append_of([], [add, {**branch, "snapshot-id": 2}]) is None


def test_a_member_with_odd_numbers_fails_alone(rest, table, metastore):
    catalog = metastore.iceberg()._catalog._catalog
    name = Name("hive", "sales", "orders")
    appends = []
    for number in range(1, 6):
        body = Writer(rest, table).request(number)
        snapshot = body["updates"][0]["snapshot"]
        if number == 2:
            snapshot["summary"]["added-records"] = "many"
        if number == 3:
            snapshot["timestamp-ms"] = "today"
        own = [manifest(f"m{number}", number, 1, **({"manifest_length": "long"} if number == 4 else {}))]
        append = append_of(body["requirements"], body["updates"])
        appends.append(SentAppend(Call("rosa"), with_manifests(append, own), None))
    results = catalog._append_all(name, appends)
    assert [isinstance(one, IcebergError) for one in results] == [False, True, True, True, False]
    found = rest.get("namespaces/sales/tables/orders")[1]["metadata"]
    assert [one["snapshot-id"] for one in found["snapshots"]] == [1, 5]


def test_those_that_wait_go_together():
    began, may_end = threading.Event(), threading.Event()
    batches = []

    def carry_out(key, batch):
        batches.append(sorted(batch))
        if batch == [0]:
            began.set()
            may_end.wait()
        return [ValueError("three") if each == 3 else each * 10 for each in batch]

    together = Together(carry_out)
    with ThreadPoolExecutor(5) as threads:
        first = threads.submit(together.result, "t", 0)
        began.wait()
        others = [threads.submit(together.result, "t", each) for each in range(1, 5)]
        until(lambda: len(together._waiting["t"]) == 4)
        may_end.set()
        assert first.result() == 0
        assert [one.result() for one in others if one is not others[2]] == [10, 20, 40]
        with pytest.raises(ValueError, match="three"):
            others[2].result()
    assert batches == [[0], [1, 2, 3, 4]]
    assert together._waiting == {}
