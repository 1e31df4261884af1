"""The history of a table for people, as its metadata file tells it: snapshots, refs, schemas, partition specs."""

from collections.abc import Callable, Sequence

from hms_gateway.iceberg.catalog import Catalog
from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.json_values import Json, needed, objects, optional, read_by_name, small, text_map
from hms_gateway.iceberg.metadata import FORMAT_VERSION, MAIN, normalized
from hms_gateway.iceberg.metastore import Name
from hms_gateway.iceberg.rows import TABLE, kind_of
from hms_gateway.iceberg.schemas import field_names, hive_type, source_ids
from hms_gateway.rpc.structs import (
    IcebergHistory,
    IcebergRef,
    IcebergSnapshot,
    IcebergVersion,
    MetaException,
    Table,
)
from hms_gateway.rpc.structs.catalogs import catalog_of, plain_name, shown_key


def history_of(catalog: Catalog, table: Table, most: int) -> IcebergHistory:
    """The newest of each list. Raises MetaException for a table of another kind, and for a file that cannot be read."""
    key, name = table.dbName or "", table.tableName or ""
    if kind_of(table) != TABLE:
        raise MetaException(f"{shown_key(key)}.{name} is not an Iceberg table")
    try:
        file = catalog.file_of(table, Name(catalog_of(key), plain_name(key), name))
        return history(file.location, file.value, most)
    except IcebergError as error:
        raise MetaException(str(error)) from error


@read_by_name()
def history(location: str, read: Json, most: int) -> IcebergHistory:
    """The same of the metadata in a file. Raises IcebergError for what is no metadata of a table."""
    metadata = normalized(read)
    refs = sorted(metadata["refs"].items(), key=lambda ref: (ref[0] != MAIN, ref[0]))
    snapshots = sorted(objects(metadata, "snapshots"), key=lambda one: needed(one, "timestamp-ms", int))[::-1]
    schemas = objects(metadata, "schemas")[::-1]
    specs = objects(metadata, "partition-specs")[::-1][:most]
    names = _names(schemas, specs)
    return IcebergHistory(
        metadata_location=location,
        format_version=metadata[FORMAT_VERSION],
        snapshots=[_snapshot(one) for one in snapshots[:most]],
        refs=[_ref(name, one) for name, one in refs[:most]],
        schemas=[_version(one, "schema-id", metadata["current-schema-id"], _column) for one in schemas[:most]],
        partition_specs=[
            _version(one, "spec-id", metadata["default-spec-id"], lambda field: _key(field, names)) for one in specs
        ],
    )


def _snapshot(of: Json) -> IcebergSnapshot:
    summary = text_map(of, "summary")
    return IcebergSnapshot(
        snapshot_id=needed(of, "snapshot-id", int),
        parent_id=optional(of, "parent-snapshot-id", int),
        committed_at=needed(of, "timestamp-ms", int),
        operation=summary.pop("operation", None),
        summary=summary,
    )


def _ref(name: str, of: Json) -> IcebergRef:
    return IcebergRef(
        name=name,
        kind=needed(of, "type", str),
        snapshot_id=needed(of, "snapshot-id", int),
        max_ref_age_ms=optional(of, "max-ref-age-ms", int),
        min_snapshots_to_keep=optional(of, "min-snapshots-to-keep", int),
        max_snapshot_age_ms=optional(of, "max-snapshot-age-ms", int),
    )


def _version(of: Json, field: str, current: object, text: Callable[[Json], str]) -> IcebergVersion:
    fields = [text(each) for each in objects(of, "fields")]
    return IcebergVersion(id=small(of, field), fields=fields, is_current=of[field] == current)


def _column(field: Json) -> str:
    kind = field["type"]
    text = f"{needed(field, 'name', str)} {kind if isinstance(kind, str) else hive_type(kind)}"
    return f"{text} required" if field.get("required") else text


def _key(field: Json, names: dict[int, str]) -> str:
    """Such as `bucket[16](id)`; the column alone for its plain value."""
    sources = ", ".join(names.get(each, f"column {each}") for each in source_ids(field))
    transform = needed(field, "transform", str)
    return sources if transform == "identity" else f"{transform}({sources})"


def _names(schemas: Sequence[Json], specs: Sequence[Json]) -> dict[int, str]:
    """Names of the columns that partition fields are made of, which newer schemas may not have any more."""
    wanted = {each for spec in specs for field in objects(spec, "fields") for each in source_ids(field)}
    found: dict[int, str] = {}
    for schema in schemas:
        if wanted <= found.keys():
            break
        found = field_names(schema) | found
    return found
