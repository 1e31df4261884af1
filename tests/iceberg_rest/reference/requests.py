"""The requests that Iceberg's own REST adapter and the gateway are both asked, in their order."""

from collections.abc import Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]

N1, N2 = "namespaces/n1", "namespaces/n2"
NO_UUID = "00000000-0000-0000-0000-000000000000"


class Step(NamedTuple):
    """A request by its name. `keep` names its answer.

    In path and body `$file:NAME`, `$uuid:NAME`, `$place:NAME` and `$folder:NAME` are the metadata file, the UUID, the
    location of a kept answer and the folder around it, `$now+N` is the time of the play in milliseconds.
    """

    name: str
    method: str
    path: str
    body: Json | None = None
    query: dict[str, str] | None = None
    keep: str | None = None


def field(number: int, name: str, kind: Any = "long", *, required: bool = False, **more: Any) -> Json:
    return {"id": number, "name": name, "required": required, "type": kind, **more}


def struct(*fields: Json) -> Json:
    return {"type": "struct", "fields": list(fields)}


def schema(*fields: Json, **more: Any) -> Json:
    return {"schema-id": 0, **struct(*fields), **more}


ID, NAME = field(1, "id", required=True), field(2, "name", "string", doc="of the customer")
PLAIN = schema(ID, NAME)
NESTED = schema(
    field(10, "m", {"type": "map", "key-id": 11, "key": "string", "value-id": 12, "value-required": False,
                    "value": struct(field(13, "deep", "int"), field(14, "deeper", "date"))}),
    field(20, "l", {"type": "list", "element-id": 21, "element-required": True, "element": "decimal(9, 2)"}),
    field(30, "s", struct(field(31, "a", "timestamptz"), field(32, "b", "fixed[4]"))),
    field(40, "key", "string", required=True),
    **{"identifier-field-ids": [40]},
)  # fmt: skip


def transform(source: int, text: str, name: str, **more: Any) -> Json:
    return {"source-id": source, "transform": text, "name": name, **more}


def order(source: int, text: str = "identity", direction: str = "asc", nulls: str = "nulls-first") -> Json:
    return {"source-id": source, "transform": text, "direction": direction, "null-order": nulls}


def snapshot(number: int, sequence: int, parent: int | None = None, **more: Any) -> Json:
    found = {
        "snapshot-id": number, "sequence-number": sequence, "timestamp-ms": f"$now+{number}",
        "manifest-list": f"file:/x/{number}.avro", "schema-id": 0,
        "summary": {"operation": "append", "total-records": "5"},
        **more,
    }  # fmt: skip
    return found if parent is None else {**found, "parent-snapshot-id": parent}


def update(action: str, **more: Any) -> Json:
    return {"action": action, **{key.replace("_", "-"): value for key, value in more.items()}}


def requirement(kind: str, **more: Any) -> Json:
    return {"type": kind, **{key.replace("_", "-"): value for key, value in more.items()}}


def ref(number: int, name: str = "main", kind: str = "branch", **more: Any) -> Json:
    return update("set-snapshot-ref", ref_name=name, type=kind, snapshot_id=number, **more)


def added(*args: Any, **more: Any) -> Json:
    return update("add-snapshot", snapshot=snapshot(*args, **more))


SET = update("set-properties", updates={"a": "b"})


def names(source: str, target: str, namespace: str = "n1", to: str = "n1") -> Json:
    return {
        "source": {"namespace": [namespace], "name": source},
        "destination": {"namespace": [to], "name": target},
    }


def version(number: int = 1, schema_id: int = 0, sql: str = "select 1", dialect: str = "spark", **more: Any) -> Json:
    return {
        "version-id": number, "timestamp-ms": f"$now+{number}", "schema-id": schema_id,
        "summary": {"engine-name": "spark"}, "default-namespace": ["n1"],
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}], **more,
    }  # fmt: skip


def view(name: str, **more: Any) -> Json:
    return {"name": name, "schema": PLAIN, "view-version": version(), "properties": {"c": "d"}, **more}


def statistics(number: int) -> Json:
    blob = {"type": "ndv", "snapshot-id": number, "sequence-number": 1, "fields": [1], "properties": {"ndv": "5"}}
    return {
        "snapshot-id": number, "statistics-path": "file:/x/s.puffin", "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 4, "blob-metadata": [blob],
    }  # fmt: skip


def commit(name: str, table: str, *updates: Json, requirements: Any = (), keep: str | None = None) -> Step:
    body = {"requirements": list(requirements), "updates": list(updates)}
    return Step(name, "POST", f"{N1}/tables/{table}", body, keep=keep)


def steps() -> Iterator[Step]:
    """All requests. A later one may need what an earlier one has made."""
    yield Step("config", "GET", "config")
    yield Step("token", "POST", "oauth/tokens")
    yield from _namespaces()
    yield from _new_tables()
    yield from _requirements()
    yield from _schemas_specs_orders()
    yield from _snapshots()
    yield from _other_updates()
    yield from _created_by_commit()
    yield from _names_and_files()
    yield from _views()
    yield from _ends()


def _namespaces() -> Iterator[Step]:
    yield Step("make n1", "POST", "namespaces", {"namespace": ["n1"], "properties": {"a": "1"}})
    yield Step("make n2", "POST", "namespaces", {"namespace": ["n2"]})
    yield Step("make n1 again", "POST", "namespaces", {"namespace": ["n1"]})
    yield Step("make without a name", "POST", "namespaces", {})
    yield Step("make with an empty name", "POST", "namespaces", {"namespace": []})
    yield Step("make with odd properties", "POST", "namespaces", {"namespace": ["n7"], "properties": {"a": {}}})
    yield Step("make a nested one below none", "POST", "namespaces", {"namespace": ["n9", "b"]})
    yield Step("load n1", "GET", N1)
    yield Step("load a missing namespace", "GET", "namespaces/gone")
    yield Step("n1 exists", "HEAD", N1)
    yield Step("a missing namespace does not exist", "HEAD", "namespaces/gone")
    yield Step("list below n1", "GET", "namespaces", query={"parent": "n1"})
    yield Step("list below none", "GET", "namespaces", query={"parent": "gone"})
    yield Step("change properties", "POST", f"{N1}/properties", {"removals": ["a", "zz"], "updates": {"b": "2"}})
    yield Step("change nothing", "POST", f"{N1}/properties", {})
    yield Step("set and remove a key", "POST", f"{N1}/properties", {"removals": ["b"], "updates": {"b": "3"}})
    yield Step("change odd properties", "POST", f"{N1}/properties", {"updates": {"b": 5}})
    yield Step("change a missing namespace", "POST", "namespaces/gone/properties", {"removals": ["b"]})
    yield Step("a method that is not there", "PUT", "namespaces")
    yield Step("a route that is not there", "GET", "nonsense")


def _new_tables() -> Iterator[Step]:
    tables = f"{N1}/tables"
    yield Step("list no tables", "GET", tables)
    yield Step("list tables of no namespace", "GET", "namespaces/gone/tables")
    yield Step("make t1", "POST", tables, {"name": "t1", "schema": PLAIN, "properties": {"p": "q"}}, keep="t1")
    yield Step("make t2", "POST", tables, {"name": "t2", "schema": PLAIN})
    yield Step("make t1 again", "POST", tables, {"name": "t1", "schema": PLAIN})
    yield Step("make in no namespace", "POST", "namespaces/gone/tables", {"name": "t1", "schema": PLAIN})
    parts = {"spec-id": 0, "fields": [transform(40, "bucket[4]", "b"), transform(31, "day", "d")]}
    sorted_by = {"order-id": 1, "fields": [order(40), order(31, "hour", "desc", "nulls-last")]}
    body = {"name": "nested", "schema": NESTED, "partition-spec": parts, "write-order": sorted_by}
    yield Step("make a nested one", "POST", tables, body)
    for version_number in ("1", "3", "9", "x"):
        properties = {"format-version": version_number}
        body = {"name": f"v{version_number}", "schema": PLAIN, "properties": properties}
        yield Step(f"make with format version {version_number}", "POST", tables, body)
    yield Step("stage", "POST", tables, {"name": "staged", "schema": PLAIN, "stage-create": True})
    yield Step("a staged one is not there", "GET", f"{tables}/staged")
    yield Step("stage t1", "POST", tables, {"name": "t1", "schema": PLAIN, "stage-create": True})
    yield Step("make without a schema", "POST", tables, {"name": "t6"})
    yield Step("make without a table's name", "POST", tables, {"schema": PLAIN})
    odd = schema(field(1, "a", "varchar"))
    yield Step("make with an unknown type", "POST", tables, {"name": "t6", "schema": odd})
    twice = schema(field(1, "a"), field(2, "a"))
    yield Step("make with a name twice", "POST", tables, {"name": "t6", "schema": twice})
    wrong = {"spec-id": 0, "fields": [transform(99, "identity", "x")]}
    yield Step(
        "make with a spec of no column", "POST", tables, {"name": "t6", "schema": PLAIN, "partition-spec": wrong}
    )
    identifying = schema(field(1, "a"), **{"identifier-field-ids": [1]})
    yield Step("make with an optional identifier", "POST", tables, {"name": "t6", "schema": identifying})
    new_types = schema(field(1, "a", "timestamp_ns"))
    yield Step("make with a type of version 3", "POST", tables, {"name": "t6", "schema": new_types})
    yield Step("list tables", "GET", tables)
    yield Step("load t1", "GET", f"{tables}/t1")
    yield Step("load a missing table", "GET", f"{tables}/gone")
    yield Step("load of a missing namespace", "GET", "namespaces/gone/tables/t1")
    yield Step("t1 exists", "HEAD", f"{tables}/t1")
    yield Step("a missing table does not exist", "HEAD", f"{tables}/gone")


def _requirements() -> Iterator[Step]:
    held = [
        requirement("assert-table-uuid", uuid="$uuid:t1"),
        requirement("assert-ref-snapshot-id", ref="main", snapshot_id=None),
        requirement("assert-last-assigned-field-id", last_assigned_field_id=2),
        requirement("assert-current-schema-id", current_schema_id=0),
        requirement("assert-last-assigned-partition-id", last_assigned_partition_id=999),
        requirement("assert-default-spec-id", default_spec_id=0),
        requirement("assert-default-sort-order-id", default_sort_order_id=0),
    ]
    yield commit("all requirements hold", "t1", SET, requirements=held)
    yield commit("all requirements hold, and nothing changes", "t1", requirements=held)
    failing = [
        requirement("assert-create"),
        requirement("assert-table-uuid", uuid=NO_UUID),
        requirement("assert-ref-snapshot-id", ref="main", snapshot_id=12),
        requirement("assert-last-assigned-field-id", last_assigned_field_id=77),
        requirement("assert-current-schema-id", current_schema_id=77),
        requirement("assert-last-assigned-partition-id", last_assigned_partition_id=77),
        requirement("assert-default-spec-id", default_spec_id=77),
        requirement("assert-default-sort-order-id", default_sort_order_id=77),
        requirement("assert-view-uuid", uuid=NO_UUID),
        requirement("nonsense"),
        requirement("assert-current-schema-id"),
        {},
    ]
    for one in failing:
        name = f"fails: {one.get('type', 'no type')}{'' if len(one) != 1 else ' without a value'}"
        yield commit(name, "t1", SET, requirements=[one])
    yield commit("a requirement of a missing table", "gone", SET, requirements=[held[0]])
    yield commit("a change of a missing table", "gone", SET)


def _schemas_specs_orders() -> Iterator[Step]:
    wider = schema(ID, NAME, field(9, "new", "int"))
    add = update("add-schema", schema=wider, last_column_id=9)
    yield commit("add and use a schema", "t1", add, update("set-current-schema", schema_id=-1))
    yield commit("add the same schema again", "t1", add)
    yield commit("add a schema without its last column", "t1", update("add-schema", schema=schema(ID, field(12, "z"))))
    yield commit("a last column below the table's", "t1", update("add-schema", schema=PLAIN, last_column_id=1))
    yield commit("use the last added of none", "t1", update("set-current-schema", schema_id=-1))
    yield commit("use a missing schema", "t1", update("set-current-schema", schema_id=77))
    yield commit("add a schema with an odd type", "t1", update("add-schema", schema=schema(field(1, "id", "nothing"))))
    yield commit("remove the schema in use", "t1", update("remove-schemas", schema_ids=[1]))
    yield commit("remove a schema", "t1", update("remove-schemas", schema_ids=[2]))
    yield commit("remove a missing schema", "t1", update("remove-schemas", schema_ids=[55]))
    spec = {"spec-id": 0, "fields": [transform(2, "truncate[3]", "tr"), transform(1, "bucket[8]", "bu")]}
    yield commit("add and use a spec", "t1", update("add-spec", spec=spec), update("set-default-spec", spec_id=-1))
    yield commit("add the same spec again", "t1", update("add-spec", spec=spec))
    more = {"spec-id": 0, "fields": [transform(1, "bucket[8]", "bu"), transform(2, "identity", "i")]}
    yield commit(
        "add a spec that has a field of another", "t2", update("add-spec", spec=spec), update("add-spec", spec=more)
    )
    odd = {"spec-id": 0, "fields": [transform(2, "half", "h")]}
    yield commit("add a spec with an odd transform", "t2", update("add-spec", spec=odd))
    absent = {"spec-id": 0, "fields": [transform(88, "identity", "h")]}
    yield commit("add a spec of no column", "t1", update("add-spec", spec=absent))
    yield commit("use a missing spec", "t1", update("set-default-spec", spec_id=77))
    yield commit("use the last added spec of none", "t1", update("set-default-spec", spec_id=-1))
    yield commit("remove the spec in use", "t1", update("remove-partition-specs", spec_ids=[1]))
    yield commit("remove a spec", "t1", update("remove-partition-specs", spec_ids=[0]))
    sort = {"order-id": 1, "fields": [order(1, direction="desc", nulls="nulls-last")]}
    use = update("set-default-sort-order", sort_order_id=-1)
    yield commit("add and use a sort order", "t1", update("add-sort-order", sort_order=sort), use)
    yield commit("add the same sort order again", "t1", update("add-sort-order", sort_order=sort))
    yield commit("use no sort order", "t1", update("set-default-sort-order", sort_order_id=0))
    yield commit("use a missing sort order", "t1", update("set-default-sort-order", sort_order_id=77))
    odd = {"order-id": 1, "fields": [order(1, direction="sideways")]}
    yield commit("add an odd sort order", "t1", update("add-sort-order", sort_order=odd))
    absent = {"order-id": 1, "fields": [order(88)]}
    yield commit("add a sort order of no column", "t1", update("add-sort-order", sort_order=absent))


def _snapshots() -> Iterator[Step]:
    yield commit("a first snapshot", "t1", added(100, 1), ref(100))
    yield commit("the same snapshot again", "t1", added(100, 2), ref(100))
    yield commit("an old sequence number", "t1", added(101, 1, 100))
    yield commit("a second snapshot", "t1", added(102, 2, 100), ref(102))
    at_last = requirement("assert-ref-snapshot-id", ref="main", snapshot_id=102)
    yield commit("the branch is at its snapshot", "t1", SET, requirements=[at_last])
    at_first = requirement("assert-ref-snapshot-id", ref="main", snapshot_id=100)
    yield commit("the branch has moved", "t1", added(103, 3, 102), ref(103), requirements=[at_first])
    exists = requirement("assert-ref-snapshot-id", ref="main", snapshot_id=None)
    yield commit("the branch was to be new", "t1", SET, requirements=[exists])
    yield commit("a tag", "t1", ref(100, "tag1", "tag", max_ref_age_ms=5))
    kept = {"min_snapshots_to_keep": 3, "max_snapshot_age_ms": 7, "max_ref_age_ms": 9}
    yield commit("a branch with bounds", "t1", ref(102, "b1", **kept))
    yield commit("the same branch again", "t1", ref(102, "b1", **kept))
    yield commit("a tag with a branch's bounds", "t1", ref(100, "tag2", "tag", min_snapshots_to_keep=3))
    yield commit("a branch of no snapshot", "t1", ref(999, "b2"))
    yield commit("a ref of no kind", "t1", ref(100, "b2", "leaf"))
    yield commit("main as a tag", "t2", added(1, 1), ref(1), ref(1, "main", "tag"))
    yield Step("load all snapshots", "GET", f"{N1}/tables/t1")
    yield Step("load snapshots of refs", "GET", f"{N1}/tables/t1", query={"snapshots": "refs"})
    yield commit("a snapshot on a branch", "t1", added(104, 3, 102), ref(104, "b1"))
    yield commit("passed within a commit", "t1", added(105, 4, 102), ref(105), added(106, 5, 105), ref(106))
    yield commit("back to an older snapshot", "t1", ref(102))
    yield commit("with null as its summary", "t2", added(107, 2, summary=None))
    yield commit("with an odd operation", "t2", added(108, 1, summary={"operation": "merge"}))
    yield commit("without a manifest list", "t1", added(109, 8, 102, **{"manifest-list": None}))
    yield commit("set statistics", "t1", update("set-statistics", snapshot_id=102, statistics=statistics(102)))
    yield commit("remove statistics", "t1", update("remove-statistics", snapshot_id=102))
    parts = {"snapshot-id": 102, "statistics-path": "file:/x/p.parquet", "file-size-in-bytes": 7}
    yield commit("set statistics of partitions", "t1", update("set-partition-statistics", partition_statistics=parts))
    yield commit("remove statistics of partitions", "t1", update("remove-partition-statistics", snapshot_id=102))
    yield commit("remove a tag", "t1", update("remove-snapshot-ref", ref_name="tag1"))
    yield commit("remove a missing ref", "t1", update("remove-snapshot-ref", ref_name="gone"))
    yield commit("remove snapshots", "t1", update("remove-snapshots", snapshot_ids=[105, 106]))
    yield commit("remove a snapshot before others", "t1", update("remove-snapshots", snapshot_ids=[100]))
    yield commit("remove a missing snapshot", "t1", update("remove-snapshots", snapshot_ids=[555]))
    yield commit("remove main", "t1", update("remove-snapshot-ref", ref_name="main"))
    of_three = {"first-row-id": 0, "added-rows": 10}
    yield commit("rows of version 3", "v3", added(1, 1, **of_three), ref(1))
    yield commit("rows that are taken", "v3", added(2, 2, 1, **of_three), ref(2))
    yield commit("rows behind them", "v3", added(2, 2, 1, **{"first-row-id": 10, "added-rows": 5}), ref(2))
    yield commit("without rows", "v3", added(3, 3, 2), ref(3))
    first = {key: value for key, value in snapshot(1, 0).items() if key != "sequence-number"}
    yield commit("a snapshot of version 1", "v1", update("add-snapshot", snapshot=first), ref(1))


def _other_updates() -> Iterator[Step]:
    yield commit("remove properties", "t1", update("remove-properties", removals=["a", "gone"]))
    yield commit("odd properties", "t2", update("set-properties", updates={"a": 5}))
    yield commit("the same uuid", "t1", update("assign-uuid", uuid="$uuid:t1"))
    yield commit("another uuid", "t2", update("assign-uuid", uuid=NO_UUID))
    yield commit("a lower format version", "t1", update("upgrade-format-version", format_version=1))
    yield commit("an unknown format version", "t1", update("upgrade-format-version", format_version=9))
    yield commit("the same format version", "t1", update("upgrade-format-version", format_version=2))
    yield commit("a higher format version", "v1", update("upgrade-format-version", format_version=2))
    yield commit("to version 3", "v1", update("upgrade-format-version", format_version=3))
    key = {"key-id": "k1", "encrypted-key-metadata": "YWJj", "encrypted-by-id": "k0", "properties": {"a": "b"}}
    yield commit("add an encryption key", "v3", update("add-encryption-key", encryption_key=key))
    yield commit("remove an encryption key", "v3", update("remove-encryption-key", key_id="k1"))
    yield commit("the same location", "t1", update("set-location", location="$place:t1"))
    yield commit("an unknown update", "t1", update("nonsense"))
    yield commit("an update without an action", "t1", {})
    yield Step("no updates", "POST", f"{N1}/tables/t1", {"requirements": []})
    yield Step("no requirements", "POST", f"{N1}/tables/t1", {"updates": []})
    yield Step("metrics", "POST", f"{N1}/tables/t1/metrics", {
        "report-type": "scan-report", "table-name": "t1", "snapshot-id": 1, "filter": True, "schema-id": 0,
        "projected-field-ids": [], "projected-field-names": [], "metrics": {},
    })  # fmt: skip
    yield Step("odd metrics", "POST", f"{N1}/tables/t1/metrics", {})


def _created_by_commit() -> Iterator[Step]:
    def updates(table: str) -> list[Json]:
        return [
            update("assign-uuid", uuid=f"{table[-1] * 8}-1111-1111-1111-111111111111"),
            update("upgrade-format-version", format_version=2),
            update("add-schema", schema=PLAIN, last_column_id=2),
            update("set-current-schema", schema_id=-1),
            update("add-spec", spec={"spec-id": 0, "fields": []}),
            update("set-default-spec", spec_id=-1),
            update("add-sort-order", sort_order={"order-id": 0, "fields": []}),
            update("set-default-sort-order", sort_order_id=-1),
            update("set-location", location=f"$folder:t1/{table}"),
            update("set-properties", updates={"made": "by commit"}),
        ]

    create = [requirement("assert-create")]
    yield commit("create by a commit", "c1", *updates("c1"), requirements=create)
    yield commit("create again by a commit", "c1", *updates("c1"), requirements=create)
    yield commit("create with a snapshot", "c2", *updates("c2"), added(1, 1), ref(1), requirements=create)
    without = [each for each in updates("c3") if each["action"] not in ("add-schema", "set-current-schema")]
    yield commit("create without a schema", "c3", *without, requirements=create)
    gone = {"requirements": create, "updates": updates("c4")}
    yield Step("create in no namespace by a commit", "POST", "namespaces/gone/tables/c4", gone)

    def change(name: str, *requirements: Json, namespace: str = "n1") -> Json:
        identifier = {"namespace": [namespace], "name": name}
        return {"identifier": identifier, "requirements": list(requirements), "updates": [SET]}

    path, fails = "transactions/commit", requirement("assert-current-schema-id", current_schema_id=77)
    yield Step("change two tables", "POST", path, {"table-changes": [change("c1"), change("c2")]})
    yield Step("change two, one fails", "POST", path, {"table-changes": [change("c1"), change("c2", fails)]})
    yield Step("change two, one is missing", "POST", path, {"table-changes": [change("c1"), change("gone")]})
    yield Step("change none", "POST", path, {"table-changes": []})
    yield Step("change nothing at all", "POST", path, {})
    yield Step("load a changed one", "GET", f"{N1}/tables/c2")


def _names_and_files() -> Iterator[Step]:
    yield Step("rename", "POST", "tables/rename", names("c2", "r1"))
    yield Step("the old name is free", "HEAD", f"{N1}/tables/c2")
    yield Step("rename a missing table", "POST", "tables/rename", names("gone", "r2"))
    yield Step("rename onto another", "POST", "tables/rename", names("r1", "t1"))
    yield Step("rename into no namespace", "POST", "tables/rename", names("r1", "r1", to="gone"))
    yield Step("rename into another namespace", "POST", "tables/rename", names("r1", "r1", to="n2"))
    yield Step("rename without a name", "POST", "tables/rename", {"source": {"namespace": ["n1"], "name": "t1"}})
    yield Step("load the renamed", "GET", f"{N2}/tables/r1", keep="r1")
    register = f"{N2}/register"
    yield Step("register a name that is taken", "POST", register, {"name": "r1", "metadata-location": "$file:r1"})
    yield Step("register without a file", "POST", register, {"name": "r2"})
    missing = {"name": "r2", "metadata-location": "$place:r1/metadata/00000-x.metadata.json"}
    yield Step("register a missing file", "POST", register, missing)
    yield Step("drop", "DELETE", f"{N2}/tables/r1")
    yield Step("drop again", "DELETE", f"{N2}/tables/r1")
    yield Step("register", "POST", register, {"name": "r2", "metadata-location": "$file:r1"})
    yield Step("register in no namespace", "POST", "namespaces/gone/register", {
        "name": "r2", "metadata-location": "$file:r1"})  # fmt: skip
    again = {"name": "r2", "metadata-location": "$file:r1", "overwrite": True}
    yield Step("register again", "POST", register, again)
    yield Step("unregister", "POST", f"{N2}/tables/r2/unregister")
    yield Step("unregister a missing table", "POST", f"{N2}/tables/r2/unregister")
    yield Step("drop and purge", "DELETE", f"{N1}/tables/c1", query={"purgeRequested": "true"})


def _views() -> Iterator[Step]:
    views = f"{N1}/views"
    yield Step("list no views", "GET", views)
    yield Step("list views of no namespace", "GET", "namespaces/gone/views")
    yield Step("make w1", "POST", views, view("w1"), keep="w1")
    yield Step("make w1 again", "POST", views, view("w1"))
    yield Step("make a view in no namespace", "POST", "namespaces/gone/views", view("w1"))
    yield Step("make a view with a table's name", "POST", views, view("t1"))
    yield Step("make a table with a view's name", "POST", f"{N1}/tables", {"name": "w1", "schema": PLAIN})
    yield Step("make a view without a version", "POST", views, {"name": "w2", "schema": PLAIN, "properties": {}})
    yield Step("make a view without a schema", "POST", views, {"name": "w2", "view-version": version()})
    twice = version(representations=[{"type": "sql", "sql": "select 1", "dialect": each} for each in ("hive", "HIVE")])
    yield Step("make a view with a dialect twice", "POST", views, view("w2", **{"view-version": twice}))
    yield Step("list views", "GET", views)
    yield Step("load w1", "GET", f"{views}/w1")
    yield Step("load a missing view", "GET", f"{views}/gone")
    yield Step("load a view as a table", "GET", f"{N1}/tables/w1")
    yield Step("load a table as a view", "GET", f"{views}/t1")
    yield Step("w1 exists", "HEAD", f"{views}/w1")
    yield Step("a missing view does not exist", "HEAD", f"{views}/gone")

    def replace(name: str, *updates: Json, requirements: Any = (), of: str = "w1") -> Step:
        return Step(name, "POST", f"{views}/{of}", {"requirements": list(requirements), "updates": list(updates)})

    add, use = (
        update("add-view-version", view_version=version(2, -1, "select 2")),
        update("set-current-view-version", view_version_id=-1),
    )
    yield replace("a new version", update("add-schema", schema=schema(ID)), add, use)
    yield Step("make w3", "POST", views, view("w3"))
    yield replace("the same version again", update("add-view-version", view_version=version(2, 0)), use, of="w3")
    yield replace("a version of no schema", update("add-view-version", view_version=version(3, 77)), use)
    yield replace("a version that was not added", use)
    yield replace("a missing version", update("set-current-view-version", view_version_id=77))
    yield replace("the first version", update("set-current-view-version", view_version_id=1))
    holds, fails = (requirement("assert-view-uuid", uuid=each) for each in ("$uuid:w1", NO_UUID))
    yield replace("its uuid", update("set-properties", updates={"k": "v"}), requirements=[holds])
    yield replace("not its uuid", SET, requirements=[fails])
    yield replace(
        "a requirement of tables", SET, requirements=[requirement("assert-default-spec-id", default_spec_id=0)]
    )
    yield replace("properties of a view", SET, update("remove-properties", removals=["c"]))
    yield replace("another uuid of a view", update("assign-uuid", uuid=NO_UUID))
    yield replace("an unknown update of a view", update("nonsense"))
    yield replace("an update of tables", ref(1))
    yield replace("a format version of views", update("upgrade-format-version", format_version=2))
    yield replace("a change of a missing view", SET, of="gone")
    yield replace("a change of a table as a view", SET, of="t1")
    yield Step("rename a view", "POST", "views/rename", names("w1", "w2"))
    yield Step("rename a missing view", "POST", "views/rename", names("gone", "w3"))
    yield Step("rename a view onto a table", "POST", "views/rename", names("w2", "t1"))
    yield Step("rename a view into no namespace", "POST", "views/rename", names("w2", "w2", to="gone"))
    yield Step("load the renamed view", "GET", f"{views}/w2", keep="w2")
    yield Step("drop a view", "DELETE", f"{views}/w2")
    yield Step("drop a missing view", "DELETE", f"{views}/w2")
    file = {"name": "w4", "metadata-location": "$file:w2"}
    yield Step("register a view", "POST", f"{N1}/register-view", file)
    yield Step("register a view again", "POST", f"{N1}/register-view", file)
    yield Step(
        "register a table as a view", "POST", f"{N1}/register-view", {"name": "w5", "metadata-location": "$file:r1"}
    )


def _ends() -> Iterator[Step]:
    yield Step("a page of tables", "GET", f"{N1}/tables", query={"pageToken": "", "pageSize": "2"})
    yield Step("a page of namespaces", "GET", "namespaces", query={"pageToken": "", "pageSize": "1"})
    yield Step("a page of no size", "GET", f"{N1}/tables", query={"pageToken": "", "pageSize": "0"})
    yield Step("drop a namespace with tables", "DELETE", N1)
    yield Step("make a namespace to drop", "POST", "namespaces", {"namespace": ["n8"]})
    yield Step("drop a namespace", "DELETE", "namespaces/n8")
    yield Step("it is gone", "GET", "namespaces/n8")
    yield Step("drop a missing namespace", "DELETE", "namespaces/gone")
