"""Metadata of a table as a JSON value: new ones, requirements of a commit, updates (Iceberg table spec, REST OpenAPI).

A value that was read is never changed: commits share it. A draft copies what it changes.
"""

import re
import uuid
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final

from hms_gateway.iceberg.errors import bad_request, commit_failed, illegal, invalid
from hms_gateway.iceberg.json_values import (
    LONG_MAX,
    Json,
    integers,
    needed,
    objects,
    optional,
    read_by_name,
    small,
    text_map,
    texts,
)
from hms_gateway.iceberg.schemas import (
    NAME_CHARACTERS_MAX,
    PARTITION_ID_BEFORE_FIRST,
    FreshIds,
    check_schema,
    check_transformed,
    highest_id,
    ids_by_name,
    schema_key,
    spec_key,
    with_sources,
    without_nulls,
)

MAIN: Final = "main"
FORMAT_VERSION_MAX: Final = 3
FORMAT_VERSION: Final = "format-version"
_DEFAULT_FORMAT_VERSION: Final = 2
ROW_LINEAGE_SINCE: Final = 3
# Clocks of writers differ by as much.
_EARLIER_MS_MAX: Final = 60_000
_NO_SNAPSHOT: Final = -1
LAST_ADDED: Final = -1
_PREVIOUS_FILES: Final = "write.metadata.previous-versions-max"
_PREVIOUS_FILES_MAX: Final = 100
_UPDATES_MAX: Final = 10_000
_OPERATIONS: Final = ("append", "replace", "overwrite", "delete")
REF_BOUNDS: Final = ("max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep")


def current_snapshot(metadata: Json) -> Json | None:
    """The snapshot that the branch main is at."""
    current = metadata.get("current-snapshot-id")
    return with_id(metadata.get("snapshots") or (), "snapshot-id", current)


def current_schema(metadata: Json) -> Json:
    return with_id(metadata["schemas"], "schema-id", metadata["current-schema-id"]) or {"type": "struct", "fields": []}


@read_by_name()
def normalized(read: Any) -> Json:
    """Metadata as read from a file, with the lists of version 2. Raises IcebergError for what is no metadata."""
    if not isinstance(read, dict) or not isinstance(read.get(FORMAT_VERSION), int):
        raise invalid("the metadata file is not the metadata of a table")
    if not 1 <= read[FORMAT_VERSION] <= FORMAT_VERSION_MAX:
        text = (
            f"the metadata file has format version {read[FORMAT_VERSION]}, and {FORMAT_VERSION_MAX} is the newest known"
        )
        raise invalid(text)
    found = dict(read)
    if not found.get("schemas"):
        found["schemas"] = [{"schema-id": 0, **found.get("schema", {"type": "struct", "fields": []})}]
        found["current-schema-id"] = found["schemas"][0]["schema-id"]
    if not found.get("partition-specs"):
        fields = [
            {"field-id": PARTITION_ID_BEFORE_FIRST + number, **field}
            for number, field in enumerate(found.get("partition-spec") or (), 1)
        ]
        found["partition-specs"] = [{"spec-id": 0, "fields": fields}]
        found["default-spec-id"] = 0
    found.setdefault(
        "last-partition-id",
        max(_partition_ids(found["partition-specs"]), default=PARTITION_ID_BEFORE_FIRST),
    )
    if not found.get("sort-orders"):
        found["sort-orders"] = [{"order-id": 0, "fields": []}]
        found["default-sort-order-id"] = 0
    for name, empty in (
        ("properties", {}),
        ("refs", {}),
        ("snapshots", []),
        ("snapshot-log", []),
        ("metadata-log", []),
    ):
        if found.get(name) is None:
            found[name] = empty
    text_map(found, "properties")
    _check_numbered(needed(found, "refs", dict).values())
    _check_numbered(found["snapshots"])
    needed(found, "location", str)
    needed(found, "last-updated-ms", int)
    found.setdefault("last-sequence-number", 0)
    current = optional(found, "current-snapshot-id", int)
    found.setdefault("current-snapshot-id", _NO_SNAPSHOT)
    if current is not None and current != _NO_SNAPSHOT and MAIN not in found["refs"]:
        found["refs"] = {**found["refs"], MAIN: {"snapshot-id": current, "type": "branch"}}
    return found


def _check_numbered(of: Iterable[Json]) -> None:
    """Raises, as `read_by_name` expects, for a snapshot or a reference without the number of a snapshot."""
    for each in of:
        hash(each["snapshot-id"])


def _partition_ids(specs: Iterable[Json]) -> Iterable[int]:
    return (field["field-id"] for spec in specs for field in spec["fields"])


def with_id(of: Sequence[Json], field: str, wanted: object) -> Json | None:
    """The one whose field has the wanted number, None where there is none."""
    # Mostly the newest is wanted.
    return next((each for each in reversed(of) if each.get(field) == wanted), None)


def check_requirements(base: Json | None, requirements: Sequence[Json]) -> None:
    """Raises IcebergError for the first requirement that the table does not meet; without a base there is no table."""
    for requirement in requirements:
        kind = needed(requirement, "type", str)
        check = _REQUIREMENTS.get(kind)
        if check is None:
            raise bad_request(f"requirements: {kind} is not known")
        if base is not None and ("view-uuid" in base) != (kind == "assert-view-uuid"):
            raise invalid(f"requirements: {kind} is not about {'views' if 'view-uuid' in base else 'tables'}")
        if base is None and kind != "assert-create":
            raise commit_failed(f"Requirement failed: the table does not exist ({kind})")
        check(base or {}, requirement)


def _assert_create(base: Json, _: Json) -> None:
    if base:
        raise commit_failed("Requirement failed: table already exists")


def _assert_uuid(base: Json, requirement: Json) -> None:
    expected = needed(requirement, "uuid", str)
    if expected.lower() != str(base.get("table-uuid", base.get("view-uuid", ""))).lower():
        text = f"expected {base.get('table-uuid', base.get('view-uuid'))} != {expected}"
        raise commit_failed(f"Requirement failed: UUID does not match: {text}")


def _assert_ref(base: Json, requirement: Json) -> None:
    name, expected = needed(requirement, "ref", str), optional(requirement, "snapshot-id", int)
    ref = base["refs"].get(name)
    if ref is None:
        if expected is not None:
            raise commit_failed(f"Requirement failed: branch or tag {name} is missing, expected {expected}")
    elif expected is None:
        raise commit_failed(f"Requirement failed: {ref['type']} {name} was created concurrently")
    elif ref["snapshot-id"] != expected:
        text = f"{ref['type']} {name} has changed: expected id {expected} != {ref['snapshot-id']}"
        raise commit_failed(f"Requirement failed: {text}")


def _assert_number(what: str, field: str, sent: str) -> Callable[[Json, Json], None]:
    def check(base: Json, requirement: Json) -> None:
        expected = needed(requirement, sent, int)
        if base.get(field) != expected:
            raise commit_failed(f"Requirement failed: {what} changed: expected id {expected} != {base.get(field)}")

    return check


_REQUIREMENTS: Final[dict[str, Callable[[Json, Json], None]]] = {
    "assert-create": _assert_create,
    "assert-table-uuid": _assert_uuid,
    "assert-view-uuid": _assert_uuid,
    "assert-ref-snapshot-id": _assert_ref,
    "assert-last-assigned-field-id": _assert_number(
        "last assigned field id", "last-column-id", "last-assigned-field-id"
    ),
    "assert-current-schema-id": _assert_number("current schema", "current-schema-id", "current-schema-id"),
    "assert-last-assigned-partition-id": _assert_number(
        "last assigned partition id", "last-partition-id", "last-assigned-partition-id"
    ),
    "assert-default-spec-id": _assert_number("default partition spec", "default-spec-id", "default-spec-id"),
    "assert-default-sort-order-id": _assert_number(
        "default sort order", "default-sort-order-id", "default-sort-order-id"
    ),
}


@read_by_name()
def new_table(request: Json, location: str, now_ms: int) -> Json:
    """Metadata of the table that a create request describes, with ids from 1 on. Raises IcebergError."""
    properties = text_map(request, "properties")
    version = _format_version(properties.pop(FORMAT_VERSION, str(_DEFAULT_FORMAT_VERSION)))
    draft = TableDraft(None, now_ms)
    draft.apply({"action": "upgrade-format-version", FORMAT_VERSION: version})
    schema = needed(request, "schema", dict)
    check_schema(schema, version)
    fresh = FreshIds()
    draft.apply({"action": "add-schema", "schema": fresh.schema(schema)})
    draft.apply({"action": "set-current-schema", "schema-id": LAST_ADDED})
    spec = optional(request, "partition-spec", dict) or {"fields": []}
    # Ids of partition fields are the server's.
    fields = [{**with_sources(field, fresh.of), "field-id": None} for field in objects(spec, "fields")]
    draft.apply({"action": "add-spec", "spec": {"fields": fields}})
    draft.apply({"action": "set-default-spec", "spec-id": LAST_ADDED})
    order = optional(request, "write-order", dict) or {"fields": []}
    fields = [with_sources(field, fresh.of) for field in objects(order, "fields")]
    draft.apply({"action": "add-sort-order", "sort-order": {"fields": fields}})
    draft.apply({"action": "set-default-sort-order", "sort-order-id": LAST_ADDED})
    draft.apply({"action": "set-location", "location": location})
    draft.apply({"action": "set-properties", "updates": properties})
    return draft.built(None)


def _format_version(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise bad_request(f"properties.{FORMAT_VERSION} must be a number")
    return int(text)


class Draft:
    """The metadata of a commit, from a base or from nothing. Raises IcebergError for an update that does not apply."""

    def __init__(self, kind: str, empty: Json, base: Json | None, now_ms: int) -> None:
        """`kind` is the word for what it describes, `empty` what it begins with where there is no base."""
        self._kind = kind
        self._base = base
        self._now_ms = now_ms
        self._new: Json = dict(base) if base is not None else empty
        self._last_schema: int | None = None
        self._keys: dict[int, tuple[Json, Hashable]] = {}
        self.is_changed = base is None

    def apply(self, update: Json) -> None:
        action = needed(update, "action", str)
        change = self._updates.get(action)
        if change is None:
            raise bad_request(f"updates: {action} is not known for a {self._kind}")
        change(self, update)

    def _set(self, field: str, value: Any) -> None:
        if isinstance(value, (int, str)) and self._new.get(field) == value:
            return
        self._new[field] = value
        self.is_changed = True

    def _same(self, of: Iterable[Json], one: Json, key_of: Callable[[Json], Hashable]) -> Json | None:
        """The first that has the key of `one`. A commit may add many, so keys are made once."""
        key = key_of(one)
        for each in of:
            if id(each) not in self._keys:
                # With the value, whose id is no other's as long as it is kept.
                self._keys[id(each)] = (each, key_of(each))
            if self._keys[id(each)][1] == key:
                return each
        return None

    def _assign_uuid(self, update: Json) -> None:
        text, field = needed(update, "uuid", str), f"{self._kind}-uuid"
        try:
            assigned = str(uuid.UUID(text))
        except ValueError:
            raise bad_request(f"uuid: {text[:80]} is no UUID") from None
        if self._base is not None and assigned != self._new.get(field):
            raise illegal(f"assign-uuid: the UUID of a {self._kind} cannot be changed")
        self._set(field, assigned)

    def _known_schema(self, schema: Json) -> Json:
        """The schema with its number, which is that of an equal one that is there."""
        known = self._same(self._new["schemas"], schema, schema_key)
        if known is None:
            number = next_number(self._new["schemas"], "schema-id", 0)
            known = {**without_nulls(schema), "type": "struct", "schema-id": number}
            self._set("schemas", [*self._new["schemas"], known])
        self._last_schema = known["schema-id"]
        return known

    def _number(self, update: Json, field: str, last: int | None) -> int:
        number = needed(update, field, int)
        if number != LAST_ADDED:
            return number
        if last is None:
            raise invalid(f"{update['action']}: {field} is -1, and nothing was added before")
        return last

    def _set_location(self, update: Json) -> None:
        self._set("location", needed(update, "location", str))

    def _set_properties(self, update: Json) -> None:
        self._set("properties", {**self._new["properties"], **text_map(update, "updates")})

    def _remove_properties(self, update: Json) -> None:
        gone = set(texts(update, "removals"))
        self._set("properties", {key: value for key, value in self._new["properties"].items() if key not in gone})

    _updates: ClassVar[Mapping[str, Callable[[Any, Json], None]]] = {
        "assign-uuid": _assign_uuid,
        "set-location": _set_location,
        "set-properties": _set_properties,
        "remove-properties": _remove_properties,
    }


class TableDraft(Draft):
    """That of a table."""

    def __init__(self, base: Json | None, now_ms: int) -> None:
        super().__init__("table", _empty(), base, now_ms)
        self._columns: tuple[Json, Container[int], Mapping[str, int]] | None = None
        self._updated_ms: int | None = None
        self._last_spec: int | None = None
        self._last_order: int | None = None
        self._added: set[int] = set()
        self._once_current: set[int] = set()
        self._removed: set[int] = set()

    def built(self, base_location: str | None) -> Json:
        """The metadata to write. `base_location` is the file of the base, which becomes part of the log."""
        new = self._new
        if new["location"] is None:
            raise invalid("the table has no location")
        if not new["schemas"]:
            raise invalid("the table has no schema")
        if not new["partition-specs"]:
            self.apply({"action": "add-spec", "spec": {"fields": []}})
            self.apply({"action": "set-default-spec", "spec-id": LAST_ADDED})
        if not new["sort-orders"]:
            self.apply({"action": "add-sort-order", "sort-order": {"fields": []}})
            self.apply({"action": "set-default-sort-order", "sort-order-id": LAST_ADDED})
        if new["default-spec-id"] is None or with_id(new["partition-specs"], "spec-id", new["default-spec-id"]) is None:
            raise invalid("the table has no default partition spec")
        if with_id(new["schemas"], "schema-id", new["current-schema-id"]) is None:
            raise invalid("the table has no current schema")
        self._check_partition_names()
        self._settle_log()
        if self._base is not None and base_location is not None:
            new = with_log(new, self._base, base_location)
        # Java's readers refuse a table that was changed before its newest snapshot or its file before, which another
        # clock may have made.
        newest_ms = max((entry["timestamp-ms"] for entry in new["snapshot-log"]), default=0)
        newest_ms = max(newest_ms, 0 if self._base is None else self._base["last-updated-ms"])
        new["last-updated-ms"] = max(self._now_ms if self._updated_ms is None else self._updated_ms, newest_ms)
        if new["current-snapshot-id"] in (None, _NO_SNAPSHOT):
            new["current-snapshot-id"] = None if new[FORMAT_VERSION] >= ROW_LINEAGE_SINCE else _NO_SNAPSHOT
        if new[FORMAT_VERSION] == 1:
            new["schema"] = current_schema(new)
            spec = with_id(new["partition-specs"], "spec-id", new["default-spec-id"])
            new["partition-spec"] = [] if spec is None else spec["fields"]
            new.pop("last-sequence-number", None)
        else:
            new.pop("schema", None)
            new.pop("partition-spec", None)
        return new

    def _check_partition_names(self) -> None:
        """Raises IcebergError for a field of a spec with the name of another column, which Java's readers refuse."""
        new, before = self._new, self._base or {}
        specs = new["partition-specs"]
        # A table that another writer has left so can be changed otherwise.
        if new["current-schema-id"] == before.get("current-schema-id") and specs is before.get("partition-specs"):
            return
        _, numbers = self._current_columns()
        for field in (field for spec in specs for field in spec["fields"]):
            if numbers.get(field["name"], field.get("source-id")) != field.get("source-id"):
                raise invalid(f"partition-specs: {field['name']} is the name of another column")

    def _settle_log(self) -> None:
        """Leave out snapshots that were current within this commit only, and all before one that was removed."""
        new = self._new
        kept: list[Json] = []
        known = {one["snapshot-id"] for one in new["snapshots"]} if self._removed else None
        passed = (self._once_current & self._added) - {new["current-snapshot-id"]}
        for entry in new["snapshot-log"]:
            if known is not None and entry["snapshot-id"] not in known:
                kept.clear()
            elif entry["snapshot-id"] not in passed:
                kept.append(entry)
        new["snapshot-log"] = kept

    def _upgrade_format_version(self, update: Json) -> None:
        version, current = needed(update, FORMAT_VERSION, int), self._new[FORMAT_VERSION]
        if not 1 <= version <= FORMAT_VERSION_MAX:
            text = f"format version {version} is not supported; {FORMAT_VERSION_MAX} is the newest"
            raise illegal(f"upgrade-format-version: {text}")
        if self._base is not None and version < current:
            raise illegal(f"upgrade-format-version: a table of version {current} cannot go back to {version}")
        if version != current:
            self._set(FORMAT_VERSION, version)
            if version >= ROW_LINEAGE_SINCE:
                self._new.setdefault("next-row-id", 0)

    def _add_schema(self, update: Json) -> None:
        schema = needed(update, "schema", dict)
        check_schema(schema, self._new[FORMAT_VERSION])
        # Java's clients send the highest id of the schema, which is below the table's after the drop of a column.
        last = 0 if update.get("last-column-id") is None else small(update, "last-column-id")
        known = self._known_schema(schema)
        self._set("last-column-id", max(self._new["last-column-id"], highest_id(known), last))

    def _set_current_schema(self, update: Json) -> None:
        number = self._number(update, "schema-id", self._last_schema)
        if with_id(self._new["schemas"], "schema-id", number) is None:
            raise illegal(f"set-current-schema: there is no schema {number}")
        self._set("current-schema-id", number)

    def _current_columns(self) -> tuple[Container[int], Mapping[str, int]]:
        """Ids of the columns of the current schema, and ids by names. A commit may ask for each of its updates."""
        schema = current_schema(self._new)
        if self._columns is None or self._columns[0] is not schema:
            ids = check_schema(schema, self._new[FORMAT_VERSION])
            self._columns = schema, ids, ids_by_name(schema)
        return self._columns[1:]

    def _add_spec(self, update: Json) -> None:
        spec = needed(update, "spec", dict)
        fields = [{**field, "name": needed(field, "name", str)} for field in objects(spec, "fields")]
        check_transformed(fields, "add-spec", self._current_columns()[0])
        names = [field["name"] for field in fields]
        if len(set(names)) < len(names):
            raise invalid("add-spec: two fields have the same name")
        for field in fields:
            if len(field["name"]) > NAME_CHARACTERS_MAX:
                raise invalid(f"add-spec: the name of a field is longer than {NAME_CHARACTERS_MAX} characters")
        specs = self._new["partition-specs"]
        known = self._same(specs, {"fields": fields}, lambda one: spec_key(one["fields"]))
        if known is None:
            last = self._new["last-partition-id"]
            numbered = []
            for field in fields:
                number = None if field.get("field-id") is None else small(field, "field-id")
                if number is None:
                    number = self._known_partition_id(field)
                if number is None:
                    number = last = last + 1
                last = max(last, number)
                numbered.append({**without_nulls(field), "field-id": number})
            if len({field["field-id"] for field in numbered}) < len(numbered):
                raise invalid("add-spec: two fields have the same field-id")
            known = {"spec-id": next_number(specs, "spec-id", 0), "fields": numbered}
            self._set("partition-specs", [*specs, known])
            self._set("last-partition-id", last)
        self._last_spec = known["spec-id"]

    def _known_partition_id(self, field: Json) -> int | None:
        """That of the same field in an earlier spec."""
        before = (one for spec in self._new["partition-specs"] for one in spec["fields"])
        found = self._same(before, field, lambda one: spec_key([one]))
        return None if found is None else found["field-id"]

    def _set_default_spec(self, update: Json) -> None:
        number = self._number(update, "spec-id", self._last_spec)
        if with_id(self._new["partition-specs"], "spec-id", number) is None:
            raise invalid(f"set-default-spec: there is no spec {number}")
        self._set("default-spec-id", number)

    def _add_sort_order(self, update: Json) -> None:
        order = needed(update, "sort-order", dict)
        fields = objects(order, "fields")
        check_transformed(fields, "add-sort-order", self._current_columns()[0])
        for field in fields:
            if needed(field, "direction", str) not in ("asc", "desc"):
                raise invalid("add-sort-order: direction is asc or desc")
            if needed(field, "null-order", str) not in ("nulls-first", "nulls-last"):
                raise invalid("add-sort-order: null-order is nulls-first or nulls-last")
        orders = self._new["sort-orders"]
        fields = without_nulls(fields)
        known = next((one for one in orders if one["fields"] == fields), None)
        if known is None:
            # The order without fields is number 0.
            number = next_number(orders, "order-id", 1) if fields else 0
            known = {"order-id": number, "fields": fields}
            self._set("sort-orders", [*orders, known])
        self._last_order = known["order-id"]

    def _set_default_sort_order(self, update: Json) -> None:
        number = self._number(update, "sort-order-id", self._last_order)
        if with_id(self._new["sort-orders"], "order-id", number) is None:
            raise invalid(f"set-default-sort-order: there is no sort order {number}")
        self._set("default-sort-order-id", number)

    def _add_snapshot(self, update: Json) -> None:
        snapshot = needed(update, "snapshot", dict)
        number, at_ms = needed(snapshot, "snapshot-id", int), needed(snapshot, "timestamp-ms", int)
        new = self._new
        for field in ("parent-snapshot-id", "schema-id", "sequence-number", "first-row-id", "added-rows"):
            optional(snapshot, field, int)
        for field in ("manifest-list", "key-id"):
            optional(snapshot, field, str)
        text_map(snapshot, "summary")
        if snapshot.get("summary") is not None and snapshot["summary"].get("operation") not in _OPERATIONS:
            raise invalid(f"add-snapshot: the operation of a summary is one of {', '.join(_OPERATIONS)}")
        if not new["schemas"]:
            raise invalid("add-snapshot: the table has no schema yet")
        if with_id(new["snapshots"], "snapshot-id", number) is not None:
            raise invalid(f"add-snapshot: Snapshot already exists for id: {number}")
        if new[FORMAT_VERSION] > 1:
            sequence = needed(snapshot, "sequence-number", int)
            needed(snapshot, "manifest-list", str)
            if sequence <= new["last-sequence-number"] and snapshot.get("parent-snapshot-id") is not None:
                # The client read the table before another commit.
                text = f"Cannot add snapshot with sequence number {sequence} older than last sequence number"
                raise commit_failed(f"{text} {new['last-sequence-number']}")
            new["last-sequence-number"] = max(sequence, new["last-sequence-number"])
        log = new["snapshot-log"]
        if log and at_ms < log[-1]["timestamp-ms"] - _EARLIER_MS_MAX:
            raise invalid(f"add-snapshot: timestamp-ms {at_ms} is before that of the newest snapshot in the log")
        if new[FORMAT_VERSION] >= ROW_LINEAGE_SINCE:
            first, added = needed(snapshot, "first-row-id", int), needed(snapshot, "added-rows", int)
            if not 0 <= added <= LONG_MAX - new["next-row-id"]:
                raise invalid(f"add-snapshot: added-rows {added} is no number of rows")
            if first < new["next-row-id"]:
                text = f"first-row-id is behind table next-row-id: {first} < {new['next-row-id']}"
                raise commit_failed(f"Cannot add a snapshot, {text}")
            new["next-row-id"] += added
        self._set("snapshots", [*new["snapshots"], without_nulls(snapshot)])
        self._added.add(number)
        self._updated_ms = at_ms

    def _set_snapshot_ref(self, update: Json) -> None:
        name, number = needed(update, "ref-name", str), needed(update, "snapshot-id", int)
        kind = needed(update, "type", str)
        if kind not in ("branch", "tag") or (name == MAIN and kind != "branch"):
            raise invalid(f"set-snapshot-ref: {name} cannot be a {kind}")
        snapshot = with_id(self._new["snapshots"], "snapshot-id", number)
        if snapshot is None:
            raise invalid(f"Cannot set {name} to unknown snapshot: {number}")
        ref: Json = {"snapshot-id": number, "type": kind}
        for field in REF_BOUNDS:
            value = optional(update, field, int)
            if value is None:
                continue
            if value < 1 or (kind == "tag" and field != "max-ref-age-ms"):
                raise illegal(f"set-snapshot-ref: {field} {value} is nothing that a {kind} can have")
            ref[field] = value if field != "min-snapshots-to-keep" else small(update, field)
        if self._new["refs"].get(name) == ref:
            return
        if number in self._added:
            self._updated_ms = snapshot["timestamp-ms"]
        if name == MAIN:
            self._once_current.add(number)
            self._updated_ms = self._now_ms if self._updated_ms is None else self._updated_ms
            entry = {"timestamp-ms": self._updated_ms, "snapshot-id": number}
            self._set("snapshot-log", [*self._new["snapshot-log"], entry])
            self._set("current-snapshot-id", number)
        self._set("refs", {**self._new["refs"], name: ref})

    def _remove_snapshots(self, update: Json) -> None:
        gone = {one["snapshot-id"] for one in self._new["snapshots"]}.intersection(integers(update, "snapshot-ids"))
        if not gone:
            return
        self._set("snapshots", [one for one in self._new["snapshots"] if one["snapshot-id"] not in gone])
        self._removed |= gone
        for field in ("statistics", "partition-statistics"):
            if self._new.get(field):
                self._set(field, [one for one in self._new[field] if one["snapshot-id"] not in gone])
        for name in [name for name, ref in self._new["refs"].items() if ref["snapshot-id"] in gone]:
            self._remove_ref(name)

    def _remove_snapshot_ref(self, update: Json) -> None:
        self._remove_ref(needed(update, "ref-name", str))

    def _remove_ref(self, name: str) -> None:
        if name not in self._new["refs"]:
            return
        self._set("refs", {other: ref for other, ref in self._new["refs"].items() if other != name})
        if name == MAIN:
            self._set("current-snapshot-id", _NO_SNAPSHOT)

    def _set_statistics(self, update: Json) -> None:
        statistics = needed(update, "statistics", dict)
        needed(statistics, "file-footer-size-in-bytes", int)
        needed(statistics, "blob-metadata", list)
        for blob in objects(statistics, "blob-metadata"):
            needed(blob, "type", str)
            for field in ("snapshot-id", "sequence-number"):
                needed(blob, field, int)
            integers(blob, "fields")
            text_map(blob, "properties")
        self._replace_of_snapshot("statistics", statistics)

    def _set_partition_statistics(self, update: Json) -> None:
        self._replace_of_snapshot("partition-statistics", needed(update, "partition-statistics", dict))

    def _remove_statistics(self, update: Json) -> None:
        self._remove_of_snapshot("statistics", needed(update, "snapshot-id", int))

    def _remove_partition_statistics(self, update: Json) -> None:
        self._remove_of_snapshot("partition-statistics", needed(update, "snapshot-id", int))

    def _replace_of_snapshot(self, field: str, given: Json) -> None:
        needed(given, "statistics-path", str)
        needed(given, "file-size-in-bytes", int)
        self._remove_of_snapshot(field, needed(given, "snapshot-id", int))
        self._set(field, [*(self._new.get(field) or ()), without_nulls(given)])

    def _remove_of_snapshot(self, field: str, number: int) -> None:
        self._set(field, [one for one in self._new.get(field) or () if one["snapshot-id"] != number])

    def _remove_specs(self, update: Json) -> None:
        self._remove_numbered(update, "partition-specs", "spec-id", self._new["default-spec-id"])

    def _remove_schemas(self, update: Json) -> None:
        self._remove_numbered(update, "schemas", "schema-id", self._new["current-schema-id"])

    def _remove_numbered(self, update: Json, field: str, number: str, current: int) -> None:
        gone = set(integers(update, f"{number}s"))
        if current in gone:
            raise illegal(f"{update['action']}: {number} {current} is in use")
        self._set(field, [one for one in self._new[field] if one[number] not in gone])

    def _add_encryption_key(self, update: Json) -> None:
        key = needed(update, "encryption-key", dict)
        needed(key, "encrypted-key-metadata", str)
        optional(key, "encrypted-by-id", str)
        text_map(key, "properties")
        self._without_key(needed(key, "key-id", str))
        self._set("encryption-keys", [*self._new["encryption-keys"], without_nulls(key)])

    def _remove_encryption_key(self, update: Json) -> None:
        self._without_key(needed(update, "key-id", str))

    def _without_key(self, key_id: str) -> None:
        self._set("encryption-keys", [one for one in self._new.get("encryption-keys") or () if one["key-id"] != key_id])

    _updates: ClassVar[Mapping[str, Callable[[Any, Json], None]]] = {
        **Draft._updates,
        "upgrade-format-version": _upgrade_format_version,
        "add-schema": _add_schema,
        "set-current-schema": _set_current_schema,
        "add-spec": _add_spec,
        "set-default-spec": _set_default_spec,
        "add-sort-order": _add_sort_order,
        "set-default-sort-order": _set_default_sort_order,
        "add-snapshot": _add_snapshot,
        "set-snapshot-ref": _set_snapshot_ref,
        "remove-snapshots": _remove_snapshots,
        "remove-snapshot-ref": _remove_snapshot_ref,
        "set-statistics": _set_statistics,
        "remove-statistics": _remove_statistics,
        "set-partition-statistics": _set_partition_statistics,
        "remove-partition-statistics": _remove_partition_statistics,
        "remove-partition-specs": _remove_specs,
        "remove-schemas": _remove_schemas,
        "add-encryption-key": _add_encryption_key,
        "remove-encryption-key": _remove_encryption_key,
    }


def _empty() -> Json:
    return {
        FORMAT_VERSION: _DEFAULT_FORMAT_VERSION,
        "table-uuid": str(uuid.uuid4()),
        "location": None,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "current-schema-id": None,
        "schemas": [],
        "default-spec-id": None,
        "partition-specs": [],
        "last-partition-id": PARTITION_ID_BEFORE_FIRST,
        "default-sort-order-id": 0,
        "sort-orders": [],
        "properties": {},
        "current-snapshot-id": _NO_SNAPSHOT,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def next_number(of: Sequence[Json], field: str, first: int) -> int:
    return max((one[field] + 1 for one in of), default=first)


def _logged(base: Json, location: str) -> Json:
    return {"timestamp-ms": base["last-updated-ms"], "metadata-file": location}


def with_log(new: Json, base: Json, base_location: str) -> Json:
    """Metadata with the file of its base in the log of earlier files."""
    log = [*new["metadata-log"], _logged(base, base_location)]
    return {**new, "metadata-log": log[-_kept_files(new["properties"]) :]}


def _kept_files(properties: dict[str, str]) -> int:
    """Entries of the log of earlier files, as the table's property says."""
    text = properties.get(_PREVIOUS_FILES, "")
    return max(1, int(text)) if text.isdecimal() and len(text) < 10 else _PREVIOUS_FILES_MAX


@read_by_name()
def committed(
    base: Json | None,
    requirements: Sequence[Json],
    updates: Sequence[Json],
    now_ms: int,
    base_location: str | None,
) -> Json | None:
    """The metadata after a commit, None where the updates change nothing.

    Raises IcebergError: 409 for a requirement that is not met, 400 for an update that does not apply.
    """
    check_requirements(base, requirements)
    draft = TableDraft(base, now_ms)
    for update in few(list(_merged(updates)), _UPDATES_MAX):
        draft.apply(update)
    return draft.built(base_location) if draft.is_changed else None


def few(updates: Sequence[Json], count_max: int) -> Sequence[Json]:
    """The updates of a commit. Raises IcebergError for more than so many: the time grows with the square."""
    if len(updates) > count_max:
        raise bad_request(
            f"updates has {len(updates)} updates of one object, more than {count_max}; send several commits"
        )
    return updates


def _merged(updates: Sequence[Json]) -> Iterator[Json]:
    """The updates, with those in a row that remove snapshots as one: Java's older clients send one for each."""
    for is_removal, group in groupby(updates, lambda update: update.get("action") == "remove-snapshots"):
        if is_removal:
            yield {
                "action": "remove-snapshots",
                "snapshot-ids": [one for update in group for one in integers(update, "snapshot-ids")],
            }
        else:
            yield from group
