"""Files of commits that never were: what a gateway has written that was killed before it changed the row.

Such a file can be told from all others once another commit has taken its place: no row can point to it any more.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hms_gateway.iceberg.commits import is_of_another, logged_files
from hms_gateway.iceberg.files import LIST_NAME, METADATA_NAME, MetadataFile, MetadataFiles, is_own
from hms_gateway.iceberg.json_values import Json
from hms_gateway.iceberg.manifest_lists import read_manifests
from hms_gateway.iceberg.metadata import normalized
from hms_gateway.iceberg.rows import TABLE, kind_of, pointer
from hms_gateway.metastore.ports.store import Snapshot, Store
from hms_gateway.rpc.structs import Table
from hms_gateway.storage.files.directories import Directories


class Orphan(NamedTuple):
    """A file that nothing names, and when it was written or its place was taken."""

    location: str
    since_ms: int


def find_orphans(store: Store, files: Directories, db_name: str, tbl_name: str) -> list[Orphan]:
    """The orphans in the metadata folder of a table; names are as stored. What is no such table has none.

    A metadata file is one if it was made from a file that another one follows in the table's history; a manifest list
    if another snapshot has its sequence number, or another list its snapshot. Raises IcebergError and FileSystemError
    where the table cannot be read.
    """
    row = store.read(lambda snapshot: _row(snapshot, db_name, tbl_name))
    location = None if row is None else pointer(row)
    if row is None or location is None or not files.manages(location):
        return []
    metadata = MetadataFiles(files)
    current = metadata.read(location)
    known = normalized(current.value)
    if not (row.sd and row.sd.location == known["location"] and is_own(known, location)):
        return []
    folder = location.rpartition("/")[0]
    names = files.file_names(folder)
    lists = {f"{folder}/{name}": int(found[1]) for name in names if (found := LIST_NAME.fullmatch(name))}
    present = [f"{folder}/{name}" for name in names if METADATA_NAME.fullmatch(name)]
    return [*_files(metadata, current, present), *_lists(metadata, known, lists)]


def _row(snapshot: Snapshot, db_name: str, tbl_name: str) -> Table | None:
    """The row of a table that is alone in its place: another one would have a history of its own there."""
    found = snapshot.table(db_name, tbl_name)
    if found is None or kind_of(found.table) != TABLE or not (found.table.sd and found.table.sd.location):
        return None
    is_shared = is_of_another(snapshot, found.table.sd.location.rstrip("/"), (db_name, tbl_name))
    return None if is_shared else found.table


def _files(metadata: MetadataFiles, current: MetadataFile, present: Sequence[str]) -> Iterator[Orphan]:
    followed = _followed(metadata, current, {*present})
    others = [metadata.read(one) for one in present if one not in followed and one != current.location]
    logs = {one.location: logged_files(one.value) for one in others}
    # Those that were left when somebody pointed the row to an earlier file may be wanted again.
    named = {file for log in logs.values() for file in log}
    for one in others:
        log, written_ms = logs[one.location], one.value.get("last-updated-ms")
        if log and log[-1] in followed and one.location not in named and isinstance(written_ms, int):
            yield Orphan(one.location, written_ms)


def _followed(metadata: MetadataFiles, current: MetadataFile, present: set[str]) -> set[str]:
    """The files of the table's history before the current one, as far back as they are there to say."""
    found: set[str] = set()
    file = current
    while log := logged_files(file.value):
        found.update(log)
        if log[0] not in present:
            break
        # No file is read twice, whatever they name.
        present.discard(log[0])
        file = metadata.read(log[0])
    return found


def _lists(metadata: MetadataFiles, known: Json, present: Mapping[str, int]) -> Iterator[Orphan]:
    snapshots = {one["snapshot-id"]: one for one in known["snapshots"]}
    named = {one.get("manifest-list") for one in known["snapshots"]}
    by_sequence = {one.get("sequence-number"): one for one in known["snapshots"]}
    for location, number in present.items():
        if location in named:
            continue
        instead = snapshots.get(number)
        if instead is None:
            own = [
                one for one in read_manifests(metadata.read_list(location)) if one.get("added_snapshot_id") == number
            ]
            # Version 1 has no sequence numbers.
            sequence = max((one["sequence_number"] for one in own), default=0)
            instead = by_sequence.get(sequence) if sequence else None
        if instead is not None:
            yield Orphan(location, instead["timestamp-ms"])
