"""Random catalogs with the files that belong to them, and defects planted into both.

Every plant takes a table or partition that no other has touched, and says which findings it should make.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import msgspec
import pyarrow
import pyarrow.orc
import pyarrow.parquet
from msgspec.structs import replace

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.pipeline.audit.places import Directory, Thresholds
from hms_gateway.pipeline.footers.footer import Column

NOW = 1_800_000_000.0
OLD = NOW - 10 * 86_400
SMALL_BYTES = 8_192
SMALL_FILES_MIN = 5
LIMITS = Thresholds(now_seconds=NOW, small_bytes=SMALL_BYTES, small_files_min=SMALL_FILES_MIN)

INPUT_FORMATS = {
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "orc": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "text": "org.apache.hadoop.mapred.TextInputFormat",
}
KEYS = (Column("ds", "date"), Column("hr", "int"), Column("shop", "string"))
VALUES = {
    "ds": ["2024-01-01", "2024-01-02", "2024-02-29", "__HIVE_DEFAULT_PARTITION__"],
    "hr": ["0", "1", "23"],
    "shop": ["north", "a/b=c", "%é ü", ".hidden?", "_low"],
}
COLUMNS = (("id", "bigint"), ("note", "string"))


@cache
def blob(format: str, is_large: bool = False) -> bytes:
    """A file that its format's readers take."""
    rows = 4_000 if is_large else 3
    table = pyarrow.table({"id": range(rows), "note": [f"note {number}" for number in range(rows)]})
    out = io.BytesIO()
    if format == "parquet":
        pyarrow.parquet.write_table(table, out, compression="none", use_dictionary=False)
    elif format == "orc":
        pyarrow.orc.write_table(table, out, compression="uncompressed")
    else:
        out.write(b"1\x01note\n" * rows)
    assert is_large == (len(out.getvalue()) > SMALL_BYTES)
    return out.getvalue()


@dataclass
class File:
    content: bytes
    format: str
    changed: float = OLD


@dataclass(frozen=True)
class Expected:
    """What tells findings apart."""

    kind: str
    severity: str
    name: str
    location: str
    fix: str | None = None


class TableRow(msgspec.Struct, frozen=True):
    """What a table of the metastore is to have."""

    database: str
    table: str
    type: str | None
    location: str | None
    input_format: str | None
    parameters: dict[str, str]
    keys: tuple[Column, ...] = ()
    path: str | None = None


class PartitionRow(msgspec.Struct, frozen=True):
    name: str
    location: str | None
    input_format: str | None
    parameters: dict[str, str]


@dataclass
class Table:
    """A table with its partitions by values; `expected` is filled when everything is planted."""

    row: TableRow
    partitions: dict[tuple[str, ...], PartitionRow] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.row.database}.{self.row.table}"

    @property
    def format(self) -> str:
        return next((name for name, text in INPUT_FORMATS.items() if text == self.row.input_format), "")


@dataclass
class World:
    """`databases` by name with their locations; `files` by location; `folders` are those without files."""

    root: str
    random: Random
    databases: dict[str, str] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    prefix: str = ""

    def folder(self, location: str) -> None:
        while location != self.root:
            self.folders.add(location)
            location = location.rpartition("/")[0]

    def file(self, location: str, format: str, *, is_large: bool = True, changed: float = OLD) -> None:
        self.folder(location.rpartition("/")[0])
        self.files[location] = File(blob(format, is_large), format, changed)

    def remove(self, location: str) -> None:
        self.files = {name: file for name, file in self.files.items() if not name.startswith(f"{location}/")}
        self.folders = {name for name in self.folders if name != location and not name.startswith(f"{location}/")}

    def amount(self, location: str) -> tuple[int, int]:
        """Visible files at or below a location."""
        found = [
            file
            for name, file in self.files.items()
            if name.startswith(f"{location}/")
            and not any(part[:1] in "._" for part in name.removeprefix(f"{location}/").split("/"))
        ]
        return len(found), sum(len(file.content) for file in found)

    def directories(self) -> Iterator[Directory]:
        """As a listing folds them."""
        for location in sorted(self.folders | {self.root}):
            if any(f"{location}/".startswith(f"{one}/") for one in self.unreadable):
                if location in self.unreadable:
                    yield Directory(location, error="Permission denied")
                continue
            files = [
                file
                for name, file in self.files.items()
                if name.rpartition("/")[0] == location and name.rpartition("/")[2][:1] not in "._"
            ]
            formats: dict[str, int] = {}
            for file in files:
                formats[file.format] = formats.get(file.format, 0) + 1
            newest = max((file.changed for file in files), default=OLD)
            yield Directory(location, len(files), sum(len(file.content) for file in files), newest, formats)


def _row(world: World, name: str, keys: tuple[Column, ...], format: str, **changed: Any) -> Table:
    database, _, table = name.partition(".")
    database = database if database in world.databases else f"{world.prefix}{database}"
    name = f"{database}.{table}"
    values: dict[str, Any] = {
        "database": database,
        "table": table,
        "type": "MANAGED_TABLE",
        "location": f"{world.databases[database]}/{table}",
        "input_format": INPUT_FORMATS.get(format),
        "parameters": {},
        "keys": keys,
    }
    made = world.tables[name] = Table(TableRow(**{**values, **changed}))
    return made


def add_files(world: World, location: str, format: str) -> None:
    """Some files that are neither many nor small; what engines leave beside them on purpose."""
    for number in range(world.random.randrange(1, SMALL_FILES_MIN + 2)):
        world.file(f"{location}/part-{number:05}", format)
    if world.random.random() < 0.3:
        world.files[f"{location}/_SUCCESS"] = File(b"", "")
    if world.random.random() < 0.1:
        world.files[f"{location}/.part-00000.crc"] = File(b"crc", "")


def with_counts(world: World, location: str) -> dict[str, str]:
    """Parameters as the metastore counts, or without."""
    if world.random.random() < 0.5:
        return {}
    files, total = world.amount(location)
    return {"numFiles": str(files), "totalSize": str(total), "numRows": "3"}


def add_partition(world: World, table: Table, values: tuple[str, ...], **changed: Any) -> None:
    name = make_name([key.name for key in table.row.keys], values)
    location = changed.pop("location", f"{table.row.location}/{name}")
    add_files(world, location, table.format)
    parameters = with_counts(world, location)
    table.partitions[values] = PartitionRow(name, location, table.row.input_format, parameters)


def healthy(root: str, random: Random, prefix: str = "", tables: int = 0) -> World:
    """A catalog in which nothing is wrong; `prefix` begins the names of its databases, `tables` is 0 for a few."""
    world = World(root, random, prefix=prefix)
    places = {"main": root, "sales": f"{root}/sales.db", "stock": f"{root}/other/stock"}
    world.databases = {f"{prefix}{name}": location for name, location in places.items()}
    for location in world.databases.values():
        world.folder(location)
    for number in range(tables or random.randrange(6, 12)):
        _plain(world, f"{random.choice(list(world.databases))}.t{number}")
    _others(world)
    return world


def _plain(world: World, name: str) -> None:
    random = world.random
    keys = tuple(random.sample(KEYS, random.choice((0, 1, 1, 2))))
    is_external = random.random() < 0.4
    changed: dict[str, Any] = {}
    if is_external:
        changed = {"type": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
        if random.random() < 0.5:
            changed["location"] = f"{world.root}/lake/{name}"
    table = _row(world, name, keys, random.choice(list(INPUT_FORMATS)), **changed)
    world.folder(table.row.location or "")
    if not keys:
        add_files(world, table.row.location or "", table.format)
        parameters = {**table.row.parameters, **with_counts(world, table.row.location or "")}
        _replace(table, parameters=parameters)
        return
    wanted = {tuple(random.choice(VALUES[key.name]) for key in keys) for _ in range(random.randrange(1, 6))}
    for values in sorted(wanted):
        add_partition(world, table, values)
    if random.random() < 0.3:
        world.file(f"{table.row.location}/.hive-metadata/x", "text")


def _replace(table: Table, **changed: Any) -> None:
    table.row = replace(table.row, **changed)


def _others(world: World) -> None:
    """Tables about which less can be said: nothing of what lies in them is an orphan, small or stale."""
    iceberg = _row(
        world, "sales.iceberg", (), "", parameters={"table_type": "ICEBERG", "EXTERNAL": "TRUE", "numFiles": "0"}
    )
    for path in ("metadata/v1.metadata.json", "data/ds=2024-01-01/a.parquet", "data/b.orc", "data/_temporary/x"):
        world.file(f"{iceberg.row.location}/{path}", "text", is_large=False)
    acid = _row(world, "stock.acid", (KEYS[0],), "orc", parameters={"transactional": "true"})
    for path in ("base_0000005/bucket_00000", "delta_0000006_0000006_0000/bucket_00000"):
        for day in ("2024-01-01", "2024-01-02"):
            world.file(f"{acid.row.location}/ds={day}/{path}", "orc", is_large=False)
    location = f"{acid.row.location}/ds=2024-01-01"
    acid.partitions[("2024-01-01",)] = PartitionRow("ds=2024-01-01", location, INPUT_FORMATS["orc"], {"numFiles": "99"})
    delta = _row(world, "sales.delta", (), "text", parameters={"spark.sql.sources.provider": "delta"})
    for path in ("_delta_log/00000.json", "shop=north/a.parquet"):
        world.file(f"{delta.row.location}/{path}", "text", is_large=False)
    hudi = _row(world, "sales.hudi", (KEYS[0],), "parquet", parameters={"spark.sql.sources.provider": "hudi"})
    location = f"{hudi.row.location}/ds=2024-01-01"
    for path in (".hoodie_partition_metadata", "a.parquet", "a_0-0-0_2.parquet"):
        world.file(f"{location}/{path}", "parquet", is_large=False)
    hudi.partitions[("2024-01-01",)] = PartitionRow("ds=2024-01-01", location, INPUT_FORMATS["parquet"], {})
    lance = _row(world, "sales.lance", (), "text", parameters={"table_type": "lance", "managed_by": "storage"})
    for path in ("_versions/1.manifest", "_transactions/0.txn", "data/0.lance"):
        world.file(f"{lance.row.location}/{path}", "text", is_large=False)
    _row(world, "sales.view", (), "", type="VIRTUAL_VIEW", location=None)
    hbase = "org.apache.hadoop.hive.hbase.HBaseStorageHandler"
    _row(world, "sales.hbase", (), "", parameters={"storage_handler": hbase})
    compacted = _row(world, "sales.compacted", (KEYS[0],), "parquet")
    place, old = f"{compacted.row.location}/.hms-compact/run-1/ds=2024-01-01", f"{compacted.row.location}/ds=2024-01-01"
    for location in (place, old):
        world.file(f"{location}/a", "parquet")
    replaced = {"hms.compact.replaces": old}
    compacted.partitions[("2024-01-01",)] = PartitionRow("ds=2024-01-01", place, INPUT_FORMATS["parquet"], replaced)
    sales = world.databases[f"{world.prefix}sales"]
    json = _row(
        world,
        "sales.json",
        (),
        "text",
        location=f"{sales}/json-__PLACEHOLDER__",
        path=f"{sales}/real_json",
        parameters={"spark.sql.sources.provider": "json", "spark.sql.sources.schema.numPartCols": "1"},
    )
    world.file(f"{json.row.path}/day=1/a.json", "text")


# Plants ---------------------------------------------------------------------------------------------------------


def _some_table(world: World, wanted: Callable[[Table], bool]) -> Table | None:
    found = [
        table
        for table in world.tables.values()
        if table.name not in world.touched and table.row.table.startswith("t") and wanted(table)
    ]
    if not found:
        return None
    table = world.random.choice(found)
    world.touched.add(table.name)
    return table


def _some_place(world: World, wanted: Callable[[Table], bool] = lambda _: True) -> tuple[Table, str, str] | None:
    """An unpartitioned table or a partition that nothing was planted in: table, name, location."""
    found = []
    for table in world.tables.values():
        if not table.row.table.startswith("t") or table.name in world.touched or not wanted(table):
            continue
        places = [(part.name, part.location or "") for part in table.partitions.values()] if table.row.keys else []
        places = places or ([("", table.row.location or "")] if not table.row.keys else [])
        found += [
            (table, f"{table.name}/{name}" if name else table.name, location)
            for name, location in places
            if location not in world.touched
        ]
    if not found:
        return None
    chosen = world.random.choice(found)
    world.touched.add(chosen[2])
    # What is planted in a partition does not go with what is planted in all of its table.
    world.touched.add(f"parts of {chosen[0].name}")
    return chosen


def _whole(table: Table, world: World) -> bool:
    return f"parts of {table.name}" not in world.touched


def _set_parameters(table: Table, location: str, parameters: dict[str, str]) -> None:
    for values, part in table.partitions.items():
        if part.location == location:
            table.partitions[values] = replace(part, parameters=parameters)
            return
    _replace(table, parameters={**table.row.parameters, **parameters})


def _without_counts(table: Table, location: str) -> None:
    for values, part in table.partitions.items():
        if part.location == location:
            table.partitions[values] = replace(part, parameters={})
            return
    kept = {name: value for name, value in table.row.parameters.items() if name not in ("numFiles", "totalSize")}
    _replace(table, parameters=kept)


def missing_place(world: World) -> list[Expected]:
    if (found := _some_place(world)) is None:
        return []
    table, name, location = found
    world.remove(location)
    fix = "drop_partition" if table.row.keys else None
    return [Expected("missing", "error", name, location, fix)]


def empty_place(world: World) -> list[Expected]:
    if (found := _some_place(world)) is None:
        return []
    table, name, location = found
    world.remove(location)
    world.folder(location)
    world.files[f"{location}/_SUCCESS"] = File(b"", "")
    _without_counts(table, location)
    return [Expected("empty", "note", name, location)]


def small_files(world: World) -> list[Expected]:
    if (found := _some_place(world)) is None:
        return []
    table, name, location = found
    _without_counts(table, location)
    world.remove(location)
    for number in range(SMALL_FILES_MIN):
        world.file(f"{location}/small-{number}", table.format, is_large=False)
    return [Expected("small_files", "note", name, location)]


def mixed_formats(world: World) -> list[Expected]:
    if (found := _some_place(world)) is None:
        return []
    table, name, location = found
    _without_counts(table, location)
    other = world.random.choice([format for format in ("parquet", "orc") if format != table.format])
    world.file(f"{location}/other", other)
    return [Expected("mixed_formats", "error", name, location)]


def stale_counts(world: World) -> list[Expected]:
    if (found := _some_place(world)) is None:
        return []
    table, name, location = found
    files, total = world.amount(location)
    wrong = world.random.choice(({"numFiles": str(files + 1)}, {"totalSize": "0"}, {"numFiles": "0", "totalSize": "1"}))
    _set_parameters(table, location, {"numFiles": str(files), "totalSize": str(total), **wrong})
    return [Expected("stale_counts", "note", name, location, "set_counts")]


def leftover(world: World) -> list[Expected]:
    if (found := _some_place(world)) is None:
        return []
    table, _, location = found
    name = world.random.choice(
        ("_temporary", ".hive-staging_hive_2024-01-01_1", ".spark-staging-7c", "_tmp.-ext-10000")
    )
    is_young = world.random.random() < 0.3
    for number in range(world.random.randrange(1, 3)):
        world.file(f"{location}/{name}/0/x-{number}", table.format, changed=NOW - 60 if is_young else OLD)
    fix = None if is_young else "delete_leftover"
    return [Expected("leftover", "note" if is_young else "warning", table.name, f"{location}/{name}", fix)]


def orphan_partition(world: World) -> list[Expected]:
    table = _some_table(world, lambda one: bool(one.row.keys) and _whole(one, world))
    if table is None:
        return []
    values = tuple({"ds": "2023-03-03", "hr": "7", "shop": "new"}[key.name] for key in table.row.keys)
    name = make_name([key.name for key in table.row.keys], values)
    is_young = world.random.random() < 0.3
    world.file(f"{table.row.location}/{name}/x", table.format, changed=NOW - 60 if is_young else OLD)
    severity, fix = ("note", None) if is_young else ("warning", "add_partition")
    return [Expected("orphan", severity, f"{table.name}/{name}", f"{table.row.location}/{name}", fix)]


def orphan_table(world: World) -> list[Expected]:
    database = world.random.choice(list(world.databases))
    location = f"{world.databases[database]}/gone_{world.random.randrange(10**6)}"
    for path in ("x", "ds=1/y"):
        world.file(f"{location}/{path}", "parquet")
    return [Expected("orphan", "warning", database, location, "delete_orphan")]


def orphan_folder(world: World) -> list[Expected]:
    table = _some_table(world, lambda one: bool(one.row.keys) and _whole(one, world))
    if table is None:
        return []
    location = f"{table.row.location}/backup"
    world.file(f"{location}/deep/er/x", table.format)
    return [Expected("orphan", "warning", table.name, location, "delete_orphan")]


def misplaced_files(world: World) -> list[Expected]:
    table = _some_table(world, lambda one: bool(one.row.keys) and _whole(one, world))
    if table is None:
        return []
    world.file(f"{table.row.location}/x", table.format)
    return [Expected("misplaced", "warning", table.name, table.row.location or "")]


def misplaced_value(world: World) -> list[Expected]:
    """`hr=01` beside or without `hr=1`, a day that does not exist."""
    table = _some_table(world, lambda one: _whole(one, world) and any(key.type != "string" for key in one.row.keys))
    if table is None:
        return []
    odd = {"ds": "2023-02-29", "hr": "01", "shop": "new"}
    path = "/".join(f"{key.name}={odd[key.name]}" for key in table.row.keys)
    world.file(f"{table.row.location}/{path}/x", table.format)
    return [Expected("misplaced", "warning", table.name, f"{table.row.location}/{path}")]


def misplaced_keys(world: World) -> list[Expected]:
    table = _some_table(world, lambda one: bool(one.row.keys) and _whole(one, world))
    if table is None:
        return []
    location = f"{table.row.location}/year=2024"
    world.file(f"{location}/x", table.format)
    return [Expected("misplaced", "warning", table.name, location)]


def misplaced_partition(world: World) -> list[Expected]:
    """Its directory is named as that of another one, which is not there."""
    table = _some_table(world, lambda one: bool(one.row.keys) and _whole(one, world))
    if table is None:
        return []
    values = {"ds": ("2023-03-03", "2023-03-04"), "hr": ("7", "8"), "shop": ("new", "newer")}
    one, other = (tuple(values[key.name][place] for key in table.row.keys) for place in (0, 1))
    location = f"{table.row.location}/{make_name([key.name for key in table.row.keys], other)}"
    add_partition(world, table, one, location=location)
    name = make_name([key.name for key in table.row.keys], one)
    return [Expected("misplaced", "warning", f"{table.name}/{name}", location)]


def branches(world: World) -> list[Expected]:
    if (found := _some_place(world)) is None:
        return []
    table, name, location = found
    _without_counts(table, location)
    world.file(f"{location}/HIVE_UNION_SUBDIR_1/x", table.format)
    if world.random.random() < 0.5:
        return []
    world.file(f"{location}/sub/x", table.format)
    return [Expected("misplaced", "warning", name, location)]


def shared_by_tables(world: World) -> list[Expected]:
    table = _some_table(world, lambda one: not one.row.keys and _whole(one, world))
    if table is None:
        return []
    twin = f"{table.row.database}.pair_of_{table.row.table}"
    _row(
        world,
        twin,
        (),
        table.format,
        location=table.row.location,
        type="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE"},
    )
    severity = "warning" if "EXTERNAL" in table.row.parameters else "error"
    return [Expected("shared", severity, name, table.row.location or "") for name in (table.name, twin)]


def shared_by_partitions(world: World) -> list[Expected]:
    table = _some_table(world, lambda one: bool(one.partitions) and _whole(one, world))
    if table is None:
        return []
    first = next(iter(table.partitions.values()))
    other = tuple({"ds": "2023-03-03", "hr": "7", "shop": "new"}[key.name] for key in table.row.keys)
    name = make_name([key.name for key in table.row.keys], other)
    table.partitions[other] = PartitionRow(name, first.location, table.row.input_format, {})
    severity = "warning" if "EXTERNAL" in table.row.parameters else "error"
    location = first.location or ""
    both = [Expected("shared", severity, f"{table.name}/{each}", location) for each in (name, first.name)]
    return [*both, Expected("misplaced", "warning", f"{table.name}/{name}", location)]


def table_in_table(world: World) -> list[Expected]:
    table = _some_table(world, lambda one: not one.row.keys and _whole(one, world))
    if table is None:
        return []
    inner = f"{table.row.database}.in_{table.row.table}"
    location = f"{table.row.location}/inner"
    external = {"EXTERNAL": "TRUE"}
    _row(world, inner, (), table.format, location=location, type="EXTERNAL_TABLE", parameters=external)
    add_files(world, location, table.format)
    severity = "warning" if "EXTERNAL" in table.row.parameters else "error"
    return [Expected("shared", severity, inner, location)]


def outside(world: World) -> list[Expected]:
    name = f"{world.prefix}sales.outside_{world.random.randrange(10**6)}"
    location = f"{world.root}/elsewhere/{name}"
    _row(world, name, (), "parquet", location=location)
    add_files(world, location, "parquet")
    return [Expected("outside", "warning", name, location)]


def partition_outside(world: World) -> list[Expected]:
    """With a defect in it, so that what lies in no directory of a table or database is looked at."""
    table = _some_table(world, lambda one: bool(one.row.keys) and _whole(one, world))
    if table is None:
        return []
    values = tuple({"ds": "2023-03-03", "hr": "7", "shop": "new"}[key.name] for key in table.row.keys)
    name = make_name([key.name for key in table.row.keys], values)
    location = f"{world.root}-far/{table.name}"
    for folder in (location, f"{location}/_temporary"):
        world.folders.add(folder)
        world.files[f"{folder}/x"] = File(blob(table.format, True), table.format)
    table.partitions[values] = PartitionRow(name, location, table.row.input_format, {})
    return [
        Expected("outside", "note", f"{table.name}/{name}", location),
        Expected("leftover", "warning", table.name, f"{location}/_temporary", "delete_leftover"),
    ]


def unreadable(world: World) -> list[Expected]:
    """Of what lies there nothing else is said."""
    if (found := _some_place(world)) is None:
        return []
    table, _, location = found
    world.unreadable.add(location)
    return [Expected("unreadable", "error", table.name, location)]


def missing_directory_of_table(world: World) -> list[Expected]:
    name = f"{world.prefix}sales.nothing_{world.random.randrange(10**6)}"
    table = _row(world, name, (KEYS[0],), "parquet")
    return [Expected("missing", "warning", name, table.row.location or "")]


PLANTS: tuple[Callable[[World], list[Expected]], ...] = (
    missing_place,
    empty_place,
    small_files,
    mixed_formats,
    stale_counts,
    leftover,
    orphan_partition,
    orphan_table,
    orphan_folder,
    misplaced_files,
    misplaced_value,
    misplaced_keys,
    misplaced_partition,
    branches,
    shared_by_tables,
    shared_by_partitions,
    table_in_table,
    outside,
    partition_outside,
    unreadable,
    missing_directory_of_table,
)


def plant(world: World, count: int) -> list[Expected]:
    """Some defects, each in a place of its own; what should be found."""
    return [one for _ in range(count) for one in world.random.choice(PLANTS)(world)]
