"""Metadata of a view as a JSON value: new ones and updates (Iceberg view spec)."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from hms_gateway.iceberg.errors import illegal, invalid
from hms_gateway.iceberg.json_values import Json, needed, objects, optional, read_by_name, small, text_map, texts
from hms_gateway.iceberg.metadata import LAST_ADDED, Draft, check_requirements, few, next_number
from hms_gateway.iceberg.schemas import check_schema, without_nulls

_UPDATES_MAX: Final = 1_000
_HISTORY: Final = "version.history.num-entries"
_HISTORY_ENTRIES: Final = 10
# Views have the types of all versions of the table format.
_TYPES_OF: Final = 3


@read_by_name()
def normalized_view(read: Any) -> Json:
    """Metadata as read from a file. Raises IcebergError for what is no metadata of a view."""
    if not isinstance(read, dict) or "view-uuid" not in read or not isinstance(read.get("versions"), list):
        raise invalid("the metadata file is not the metadata of a view")
    if read.get("format-version") != 1:
        raise invalid(f"the metadata file has format version {read.get('format-version')}; views have 1")
    text_map(read, "properties")
    needed(read, "location", str)
    return {**read, "properties": read.get("properties") or {}, "version-log": read.get("version-log") or []}


@read_by_name()
def new_view(request: Json, location: str, now_ms: int) -> Json:
    """Metadata of the view that a create request describes. Raises IcebergError."""
    draft = ViewDraft(None, now_ms)
    version = needed(request, "view-version", dict)
    draft.apply({"action": "add-schema", "schema": needed(request, "schema", dict)})
    draft.apply({"action": "add-view-version", "view-version": {**version, "schema-id": LAST_ADDED}})
    draft.apply({"action": "set-current-view-version", "view-version-id": LAST_ADDED})
    draft.apply({"action": "set-location", "location": location})
    draft.apply({"action": "set-properties", "updates": text_map(request, "properties")})
    return draft.built()


@read_by_name()
def replaced_view(base: Json, requirements: Sequence[Json], updates: Sequence[Json], now_ms: int) -> Json:
    """The metadata after a commit. Raises IcebergError."""
    check_requirements({**base, "refs": {}}, requirements)
    draft = ViewDraft(base, now_ms)
    for update in few(updates, _UPDATES_MAX):
        draft.apply(update)
    return draft.built()


class ViewDraft(Draft):
    """That of a view."""

    def __init__(self, base: Json | None, now_ms: int) -> None:
        super().__init__("view", _empty(), base, now_ms)
        self._last_version: int | None = None

    def built(self) -> Json:
        new = self._new
        if not new["location"] or new["current-version-id"] is None:
            raise invalid("the view has no location or no current version")
        current = new["current-version-id"]
        if self._base is None or self._base["current-version-id"] != current:
            entry = {"timestamp-ms": self._now_ms, "version-id": current}
            new["version-log"] = [*new["version-log"], entry]
        text = new["properties"].get(_HISTORY, "")
        count = max(1, int(text)) if text.isdecimal() and len(text) < 10 else _HISTORY_ENTRIES
        kept = {one["version-id"] for one in new["versions"][-count:]} | {current}
        new["versions"] = [one for one in new["versions"] if one["version-id"] in kept]
        log: list[Json] = []
        for entry in new["version-log"]:
            if entry["version-id"] in kept:
                log.append(entry)
            else:
                log.clear()
        new["version-log"] = log
        return new

    def _upgrade_format_version(self, update: Json) -> None:
        if needed(update, "format-version", int) != 1:
            raise illegal("upgrade-format-version: views have format version 1")

    def _add_schema(self, update: Json) -> None:
        schema = needed(update, "schema", dict)
        check_schema(schema, _TYPES_OF)
        self._known_schema(schema)

    def _add_version(self, update: Json) -> None:
        version = needed(update, "view-version", dict)
        schema_id = small(version, "schema-id", LAST_ADDED)
        if schema_id == LAST_ADDED:
            if self._last_schema is None:
                raise invalid("add-view-version: schema-id is -1, and no schema was added before")
            schema_id = self._last_schema
        if all(one["schema-id"] != schema_id for one in self._new["schemas"]):
            raise illegal(f"add-view-version: there is no schema {schema_id}")
        _check_representations(version)
        text_map(version, "summary")
        needed(version, "default-namespace", list)
        texts(version, "default-namespace")
        optional(version, "default-catalog", str)
        optional(version, "timestamp-ms", int)
        version = {"timestamp-ms": self._now_ms, **without_nulls(version), "schema-id": schema_id}
        known = next((one for one in self._new["versions"] if _essence(one) == _essence(version)), None)
        if known is None:
            number = next_number(self._new["versions"], "version-id", 1)
            known = {**version, "version-id": number}
            self._new["versions"] = [*self._new["versions"], known]
        self._last_version = known["version-id"]

    def _set_current_version(self, update: Json) -> None:
        number = self._number(update, "view-version-id", self._last_version)
        if all(one["version-id"] != number for one in self._new["versions"]):
            raise illegal(f"set-current-view-version: there is no version {number}")
        self._new["current-version-id"] = number

    _updates: ClassVar[Mapping[str, Callable[[Any, Json], None]]] = {
        **Draft._updates,
        "upgrade-format-version": _upgrade_format_version,
        "add-schema": _add_schema,
        "add-view-version": _add_version,
        "set-current-view-version": _set_current_version,
    }


def _check_representations(version: Json) -> None:
    dialects = set()
    for each in objects(version, "representations"):
        if needed(each, "type", str) != "sql":
            raise invalid("add-view-version: a representation is of type sql")
        needed(each, "sql", str)
        dialect = needed(each, "dialect", str).lower()
        if dialect in dialects:
            raise illegal(f"Invalid view version: Cannot add multiple queries for dialect {dialect}")
        dialects.add(dialect)


def _essence(version: Json) -> Json:
    return {
        key: each for key, each in version.items() if key not in ("version-id", "timestamp-ms") and each is not None
    }


def _empty() -> Json:
    return {
        "view-uuid": str(uuid.uuid4()),
        "format-version": 1,
        "location": None,
        "schemas": [],
        "current-version-id": None,
        "versions": [],
        "version-log": [],
        "properties": {},
    }
