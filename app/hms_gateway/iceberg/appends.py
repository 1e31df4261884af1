"""Appends that always succeed: what another commit was faster than is put behind it, and waiting ones go together.

An append names the files that it adds in manifests of its own. So its snapshot can be made anew on a newer state of the
table: the manifests of that state and its own, the next sequence number, the same id. This is what Iceberg's Java
client does when it tries again, without reading and sending anything again.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, Generic, TypeVar

import msgspec

from hms_gateway.iceberg.errors import IcebergError, commit_failed, invalid
from hms_gateway.iceberg.files import MetadataFiles, is_own, list_location
from hms_gateway.iceberg.json_values import Json, count, needed, read_by_name
from hms_gateway.iceberg.manifest_lists import Manifest, block_of, list_of_blocks
from hms_gateway.iceberg.metadata import (
    MAIN,
    REF_BOUNDS,
    ROW_LINEAGE_SINCE,
    check_requirements,
    committed,
    with_id,
)
from hms_gateway.runtime.suspension import awaited

REBASE: Final = "hms.append-rebase"
_REF: Final = "assert-ref-snapshot-id"
_TOTALS: Final = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


class Append(msgspec.Struct, frozen=True):
    """A commit that adds files: its snapshot, the branch, and what else it requires.

    `listed` are the manifests of its snapshot, `own` those of them that it has written.
    """

    snapshot: Json
    branch: Json
    requirements: Sequence[Json]
    listed: Sequence[Manifest] = ()
    own: Sequence[Manifest] = ()


def append_of(requirements: Sequence[Json], updates: Sequence[Json]) -> Append | None:
    """The commit as an append; None for one that does anything else."""
    if len(updates) != 2 or [each.get("action") for each in updates] != ["add-snapshot", "set-snapshot-ref"]:
        return None
    snapshot, branch = updates[0].get("snapshot"), updates[1]
    if not isinstance(snapshot, dict) or branch.get("type") != "branch" or not isinstance(branch.get("ref-name"), str):
        return None
    summary = snapshot.get("summary")
    if not isinstance(summary, dict) or summary.get("operation") != "append" or not snapshot.get("manifest-list"):
        return None
    if branch.get("snapshot-id") != snapshot.get("snapshot-id"):
        return None
    others = [each for each in requirements if each.get("type") != _REF or each.get("ref") != branch.get("ref-name")]
    return Append(snapshot, branch, others)


def with_manifests(append: Append, manifests: Sequence[Manifest]) -> Append:
    """The append with the manifests of its list. Raises IcebergError (409) for one of its own with others' files."""
    number = append.snapshot["snapshot-id"]
    own = [one for one in manifests if one.get("added_snapshot_id") == number]
    for one in own:
        if one["content"] != 0 or one.get("existing_files_count") or one.get("deleted_files_count"):
            # The client has merged manifests of a state that is not the table's any more.
            raise commit_failed("Requirement failed: the branch has changed, and manifests of the append are merged")
    return msgspec.structs.replace(append, listed=manifests, own=own)


def has_branch(append: Append, base: Json) -> bool:
    """True if the append's branch is there, or is to be the first state of the table.

    The snapshot of a new branch has those of another one before it, which only a client can choose.
    """
    name = append.branch["ref-name"]
    ref = base["refs"].get(name)
    if ref is None:
        return bool(name == MAIN and append.snapshot.get("parent-snapshot-id") is None)
    return bool(ref.get("type") == "branch")


def fits(append: Append, base: Json) -> bool:
    """True if the snapshot was made from the newest one of its branch, and so is right as it is."""
    ref = base["refs"].get(append.branch["ref-name"])
    newest = None if ref is None else ref["snapshot-id"]
    sequence, number = base.get("last-sequence-number", 0), append.snapshot.get("sequence-number", 0)
    rows = base["next-row-id"] if base["format-version"] >= ROW_LINEAGE_SINCE else None
    return (
        append.snapshot.get("parent-snapshot-id") == newest
        and number == (sequence + 1 if base["format-version"] > 1 else number)
        and append.snapshot.get("first-row-id") == rows
    )


def rebased(
    append: Append, base: Json, parent: Json | None, newest_ms: int, manifest_list: str
) -> tuple[Json, list[Manifest]]:
    """The append's snapshot behind `parent`, the newest one of its branch, and the manifests that it adds.

    `newest_ms` is the time of the newest snapshot of the table, `manifest_list` is where the new list goes. Raises
    IcebergError (409).
    """
    known = {spec["spec-id"] for spec in base["partition-specs"]}
    if any(one["partition_spec_id"] not in known for one in append.own):
        raise commit_failed("Requirement failed: the partition spec of the append's files was removed")
    # Version 1 has no sequence numbers.
    sequence = base["last-sequence-number"] + 1 if base["format-version"] > 1 else 0
    snapshot = {
        **append.snapshot,
        "sequence-number": sequence,
        "manifest-list": manifest_list,
        "schema-id": base["current-schema-id"],
        "timestamp-ms": max(needed(append.snapshot, "timestamp-ms", int), newest_ms),
        "summary": _with_totals(append.snapshot["summary"], None if parent is None else parent.get("summary") or {}),
    }
    snapshot.pop("parent-snapshot-id", None)
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent["snapshot-id"]
    moved_rows = 0
    if base["format-version"] >= ROW_LINEAGE_SINCE:
        rows = snapshot.get("first-row-id"), snapshot.get("added-rows")
        if None in rows or not _have_row_ids(append.own):
            raise commit_failed("Requirement failed: the append has no row ids, which the table has by now")
        moved_rows = base["next-row-id"] - append.snapshot["first-row-id"]
        snapshot["first-row-id"] = base["next-row-id"]
    return snapshot, [_moved(one, sequence, moved_rows) for one in append.own]


def _have_row_ids(manifests: Sequence[Manifest]) -> bool:
    """True if the rows of all data files have ids: the list of a snapshot must have them since version 3."""
    return all(one["content"] != 0 or one.get("first_row_id") is not None for one in manifests)


def _moved(manifest: Manifest, sequence: int, rows: int) -> Manifest:
    """An added manifest; its files take their numbers from it."""
    moved = {**manifest, "sequence_number": sequence, "min_sequence_number": sequence}
    if moved.get("first_row_id") is not None:
        moved["first_row_id"] += rows
    return moved


def _with_totals(summary: Mapping[str, str], before: Mapping[str, str] | None) -> dict[str, str]:
    """The summary with totals behind those of its parent; one that the parent does not have is not known."""
    found = dict(summary)
    for total, (added, removed) in _TOTALS.items():
        found.pop(total, None)
        known = 0 if before is None else count(before.get(total))
        if known is not None:
            found[total] = str(known + int(summary.get(added, 0)) - int(summary.get(removed, 0)))
    return found


def _newest(append: Append, base: Json) -> Json | None:
    """The newest snapshot of the append's branch; None where there is no such branch yet."""
    ref = base["refs"].get(append.branch["ref-name"])
    if ref is None:
        return None
    found = with_id(base["snapshots"], "snapshot-id", ref["snapshot-id"])
    if found is None:
        raise invalid(f"the table has no snapshot {ref['snapshot-id']}, and a branch that is at it")
    return found


class Chain:
    """Appends one behind the other, on the metadata of a table."""

    def __init__(self, value: Json, files: MetadataFiles, now_ms: int) -> None:
        self.value = value
        self.lists: list[tuple[str, bytes]] = []
        self._files = files
        self._now_ms = now_ms
        # The time of the newest snapshot, once it is known.
        self._newest_ms: int | None = None
        # Those of appends that are right as they are, by their places.
        self._listed: dict[str, Sequence[Manifest]] = {}
        # Of lists by their places: an append adds a block to those before it.
        self._blocks: dict[str, Sequence[bytes]] = {}

    def add(self, append: Append) -> IcebergError | None:
        """The failure of one that cannot be put behind the others."""
        try:
            with read_by_name():
                self._add(append)
        except IcebergError as error:
            return error
        return None

    def _add(self, append: Append) -> None:
        value, number = self.value, append.snapshot["snapshot-id"]
        if with_id(value["snapshots"], "snapshot-id", number) is not None:
            # The answer to the first request was lost.
            return
        if not has_branch(append, value):
            raise commit_failed("Requirement failed: the branch was dropped or is a tag now")
        check_requirements(value, append.requirements)
        snapshot = append.snapshot
        added: tuple[str, bytes] | None = None
        if not fits(append, value):
            place, version = list_location(value, number), value["format-version"]
            parent = _newest(append, value)
            before = () if parent is None else self._blocks_of(parent, value)
            snapshot, own = rebased(append, value, parent, self._time_of_newest(value), place)
            blocks = self._blocks[place] = (block_of(own, version), *before)
            added = place, list_of_blocks(blocks, version, snapshot)
        update = {"action": "add-snapshot", "snapshot": snapshot}
        # The client may have read the table before the branch got other bounds.
        bounds = value["refs"].get(append.branch["ref-name"], append.branch)
        branch = {**append.branch, **{field: bounds.get(field) for field in REF_BOUNDS}}
        after = committed(value, (), [update, branch], self._now_ms, None)
        assert after is not None
        self.value = after
        if added is None:
            self._listed[snapshot["manifest-list"]] = append.listed
        else:
            self.lists.append(added)
        if self._newest_ms is not None:
            self._newest_ms = max(self._newest_ms, snapshot["timestamp-ms"])

    def _time_of_newest(self, value: Json) -> int:
        if self._newest_ms is None:
            times = (one["timestamp-ms"] for one in (*value["snapshots"], *value["snapshot-log"]))
            self._newest_ms = max(times, default=0)
        return self._newest_ms

    def _blocks_of(self, snapshot: Json, value: Json) -> Sequence[bytes]:
        """The manifests of a snapshot that others go behind. Raises IcebergError (409, 503)."""
        changed = "Requirement failed: the branch has changed, and"
        place, version = snapshot.get("manifest-list"), value["format-version"]
        if place is None or not is_own(value, place):
            raise commit_failed(f"{changed} its manifest list is not the table's")
        if place not in self._blocks:
            try:
                manifests = self._listed.get(place) or self._files.manifests(place)
                block = block_of(manifests, version)
            except IcebergError as error:
                if error.kind == "ServiceUnavailableException":
                    raise
                raise commit_failed(f"{changed} {error}") from error
            if version >= ROW_LINEAGE_SINCE and not _have_row_ids(manifests):
                raise commit_failed(f"{changed} files in its manifest list have no row ids")
            self._blocks[place] = (block,)
        return self._blocks[place]


K = TypeVar("K")
A = TypeVar("A")
R = TypeVar("R")


class _Waiting(Generic[A, R]):
    """One that waits: it is woken with its result, with its failure, or to carry out all that wait."""

    def __init__(self, each: A) -> None:
        self.each = each
        self.woken: Future[bool] = Future()
        self.result: R | Exception | None = None


class Together(Generic[K, A, R]):
    """Carries out what waits for one key together: one of the callers does it for all. Safe for several threads."""

    def __init__(self, carry_out: Callable[[K, Sequence[A]], Sequence[R | Exception]]) -> None:
        """`carry_out` gives the result or the failure of each; what it raises is the failure of all."""
        self._carry_out = carry_out
        self._lock = threading.Lock()
        self._waiting: dict[K, list[_Waiting[A, R]]] = {}

    def result(self, key: K, each: A) -> R:
        """The result of one. Raises its failure."""
        own: _Waiting[A, R] = _Waiting(each)
        with self._lock:
            leads = key not in self._waiting
            self._waiting.setdefault(key, []).append(own)
        if leads or awaited(own.woken):
            self._lead(key)
        if isinstance(own.result, Exception):
            raise own.result
        assert own.result is not None
        return own.result

    def _lead(self, key: K) -> None:
        with self._lock:
            batch, self._waiting[key] = self._waiting[key], []
        try:
            results = self._carry_out(key, [one.each for one in batch])
        except BaseException as error:
            # Whatever it is, nobody is left waiting.
            failure = error if isinstance(error, Exception) else RuntimeError(repr(error))
            results = [failure] * len(batch)
        for one, result in zip(batch, results, strict=True):
            one.result = result
        with self._lock:
            following = self._waiting[key]
            if not following:
                del self._waiting[key]
        for one in batch[1:]:
            one.woken.set_result(False)
        if following:
            following[0].woken.set_result(True)
