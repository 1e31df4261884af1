"""Files of commits that never were: what a gateway has written that was killed before it changed the row.

Such a file can be told from all others once another commit has taken its place: no row can point to it any more.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from hms_gateway.iceberg.commits import is_of_another, logged_files
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.files import LIST_NAME, METADATA_NAME, MetadataFile, MetadataFiles, is_own
from hms_gateway.iceberg.json_values import Json
from hms_gateway.iceberg.metadata import normalized
from hms_gateway.iceberg.rows import TABLE, kind_of, pointer
from hms_gateway.metastore.ports.store import Snapshot, Store
from hms_gateway.metastore.vocabulary.locations import LocationError, normalize_location
from hms_gateway.rpc.structs import Table
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.files.directories import Directories


class Orphan(NamedTuple):
    """A file that nothing names, and when it was written or its place was taken."""

    location: str
    since_ms: int


def find_orphans(store: Store, files: Directories, limits: Limits, db_name: str, tbl_name: str) -> list[Orphan]:
    """The orphans in the metadata folder of a table; names are as stored. What is no such table has none.

    A metadata file is one if it was made from a file that another one follows in the table's history; a manifest list
    if another snapshot has its sequence number, or another list its snapshot. Raises IcebergError and FileSystemError
    where the table cannot be read.
    """
    row = store.read(lambda snapshot: _row(snapshot, db_name, tbl_name))
    location = None if row is None else pointer(row)
    if row is None or location is None or not files.manages(location):
        return []
    metadata = MetadataFiles(files, limits)
    current = metadata.read(location)
    known = normalized(current.value)
    if not (row.sd and row.sd.location == _stored(known["location"]) and is_own(known, location)):
        return []
    folder = location.rpartition("/")[0]
    names = files.file_names(folder)
    present = [f"{folder}/{name}" for name in names if METADATA_NAME.fullmatch(name)]
    lists = {f"{folder}/{name}": int(found[1]) for name in names if (found := LIST_NAME.fullmatch(name))}
    orphans, kept = _files(metadata, current, present)
    for one in (known, *(file.value for file in kept)):
        for snapshot in one.get("snapshots") or ():
            if isinstance(snapshot, dict):
                lists.pop(str(snapshot.get("manifest-list")), None)
    return [*orphans, *_lists(metadata, known, lists)]


def _stored(location: str) -> str | None:
    """A location as rows have it, of the file system of this machine where it does not say."""
    with suppress(LocationError):
        return normalize_location(location)
    return None


def _row(snapshot: Snapshot, db_name: str, tbl_name: str) -> Table | None:
    """The row of a table that is alone in its place: another one would have a history of its own there."""
    found = snapshot.table(db_name, tbl_name)
    if found is None or kind_of(found.table) != TABLE or not (found.table.sd and found.table.sd.location):
        return None
    is_shared = is_of_another(snapshot, found.table.sd.location.rstrip("/"), (db_name, tbl_name))
    return None if is_shared else found.table


def _files(
    metadata: MetadataFiles, current: MetadataFile, present: Sequence[str]
) -> tuple[list[Orphan], list[MetadataFile]]:
    """Tell orphans from other files that the table does not name, which somebody may want again."""
    followed = _followed(metadata, current, {*present})
    unnamed = (one for one in present if one not in followed and one != current.location)
    others = [file for one in unnamed if (file := _readable(metadata, one)) is not None]
    # A commit that is followed by others was made, before the row was pointed to an earlier file.
    named = {file for one in others for file in logged_files(one.value)}
    orphans, kept = list[Orphan](), list[MetadataFile]()
    for one in others:
        log, written_ms = logged_files(one.value), one.value.get("last-updated-ms")
        if log and log[-1] in followed and one.location not in named and isinstance(written_ms, int):
            orphans.append(Orphan(one.location, written_ms))
        else:
            kept.append(one)
    return orphans, kept


def _followed(metadata: MetadataFiles, current: MetadataFile, present: set[str]) -> set[str]:
    """The files of the table's history before the current one, as far back as they are there to say."""
    found: set[str] = set()
    file = current
    while log := logged_files(file.value):
        found.update(log)
        # No file is read twice, whatever they name.
        earlier = _readable(metadata, log[0]) if log[0] in present else None
        if earlier is None:
            break
        present.discard(log[0])
        file = earlier
    return found


def _readable(metadata: MetadataFiles, location: str) -> MetadataFile | None:
    """None for one that is half written, or was deleted by now."""
    with suppress(IcebergError):
        return metadata.read(location)
    return None


def _lists(metadata: MetadataFiles, known: Json, unnamed: Mapping[str, int]) -> Iterator[Orphan]:
    snapshots = {one["snapshot-id"]: one for one in known["snapshots"]}
    by_sequence = {one.get("sequence-number"): one for one in known["snapshots"]}
    for location, number in unnamed.items():
        instead = snapshots.get(number)
        if instead is None:
            with suppress(IcebergError):
                manifests = metadata.manifests(location)
                own = [one["sequence_number"] for one in manifests if one["added_snapshot_id"] == number]
                # Version 1 has no sequence numbers.
                instead = by_sequence.get(max(own)) if any(own) else None
        if instead is not None:
            yield Orphan(location, instead["timestamp-ms"])
