"""A whole catalog for tests: the real SQLite store, real directories, and a clock that stands still."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hms_gateway.catalog.functions import Functions
from hms_gateway.catalog.indexes import Indexes
from hms_gateway.catalog.notifications import Notifications
from hms_gateway.catalog.partition_marks import PartitionMarks
from hms_gateway.catalog.tables.databases import Databases, create_default_database
from hms_gateway.catalog.types import Fields
from hms_gateway.metastore.changes.events import EventMaker
from hms_gateway.metastore.ports.store import StoredEvent
from hms_gateway.metastore.vocabulary.names import EventId
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.structs import FieldSchema, SerDeInfo, StorageDescriptor, Struct, Table
from hms_gateway.rpc.wire.tjson_codec import encode_value
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.files.places import FilePolicy
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.support.kept_store import empty_database, empty_store
from tests.support.manual_clock import ManualClock
from tests.support.table_calls import AlterationCalls, DatabaseCalls, TableCalls, TruncationCalls

NOW = 1_700_000_000
StorageOptions = Mapping[str, Mapping[str, Any]]
_NONE: StorageOptions = {}
_PLACE = "{warehouse}"
_MANAGED = {"memory": FilePolicy.MANAGE, "s3a": FilePolicy.MANAGE, "s3": FilePolicy.MANAGE}


def to_tjson(struct: Struct) -> bytes:
    return encode_value(StructType(type(struct).__name__), struct)


class Catalog:
    """The services over one store; `warehouse` is the directory of the default database."""

    def __init__(
        self, store: SqlStore, warehouse: Path, storage_options: StorageOptions = _NONE, **changed_settings: Any
    ) -> None:
        """`storage_options` are those of the bucket `lake`, which is a root as well."""
        self.store = store
        self.warehouse = warehouse
        self.root = f"file:{warehouse}"
        self.clock = ManualClock(NOW)
        self.files = Directories(_MANAGED, [f"file:{warehouse.parent}", "memory:/", "s3a://lake"], storage_options)
        self.settings = MetastoreSettings(**{"warehouse_location": self.root, **changed_settings})
        self.event_maker = EventMaker(self.clock, to_tjson)
        parts = (store, self.files, self.clock, self.settings, self.event_maker)
        self.databases = DatabaseCalls(Databases(*parts))
        self.tables = TableCalls(*parts)
        self.alterations = AlterationCalls(*parts)
        self.truncations = TruncationCalls(store, self.files, self.clock, self.event_maker)
        self.fields = Fields(store)
        self.functions = Functions(store, self.clock, self.event_maker)
        self.indexes = Indexes(store, self.clock, self.event_maker, self.tables.service)
        self.notifications = Notifications(store, self.clock, self.event_maker, Limits())
        self.partition_marks = PartitionMarks(store, self.clock)
        create_default_database(*parts)

    def with_settings(self, **changed: Any) -> "Catalog":
        """The same catalog under other settings."""
        return Catalog(self.store, self.warehouse, **changed)

    def with_store(self, store: Any) -> "Catalog":
        """The same catalog through another store."""
        return Catalog(store, self.warehouse)

    def events(self) -> list[StoredEvent]:
        return self.store.read(lambda snapshot: snapshot.events_after(EventId(0)))

    def last_event(self) -> tuple[str, str, str | None, dict[str, Any]]:
        """Type, database, table and message."""
        event = self.events()[-1].event
        return event.event_type, event.db_name, event.table_name, json.loads(event.message)

    def path(self, location: str | None) -> Path:
        """The directory of a `file:` location."""
        assert location is not None
        return Path(location.removeprefix("file:"))


def place_empty_database(path: Path) -> None:
    """What a first start would make, for its owner alone, unless there is a database already."""
    if not path.exists():
        path.touch(0o600)
        path.write_bytes(empty_database())


@contextmanager
def open_catalog(folder: Path, **changed_settings: Any) -> Iterator[Catalog]:
    """A new catalog, whose directories are in `folder`."""
    warehouse = folder / "warehouse"
    warehouse.mkdir(exist_ok=True)
    rows = () if changed_settings else (row.replace(_PLACE, str(warehouse)) for row in _first_rows())
    with empty_store(*rows) as (store, _):
        yield Catalog(store, warehouse, **changed_settings)


@cache
def _first_rows() -> list[str]:
    """The statements that make the default database at _PLACE; for the services it takes longer than most tests."""
    with TemporaryDirectory() as folder, open_catalog_of(Path(folder)) as catalog:
        with closing(sqlite3.connect(Path(folder) / "catalog.db")) as connection:
            made = [line for line in connection.iterdump() if line.startswith("INSERT INTO")]
        return [row.replace(str(catalog.warehouse), _PLACE) for row in made if "alembic_version" not in row]


@contextmanager
def open_catalog_of(folder: Path) -> Iterator[Catalog]:
    """A catalog with its database in `folder`, new unless there is one already."""
    database = folder / "catalog.db"
    place_empty_database(database)
    store = open_store(f"sqlite:///{database}", ManualClock(NOW), Limits())
    try:
        yield Catalog(store, folder / "warehouse")
    finally:
        store.close()


def columns(*names_and_types: str) -> list[FieldSchema]:
    """`columns("a int", "b string")`."""
    return [FieldSchema(name, kind) for name, kind in (text.split(" ", 1) for text in names_and_types)]


def new_table(
    name: str = "t",
    db_name: str = "default",
    *,
    cols: list[FieldSchema] | None = None,
    keys: list[FieldSchema] | None = None,
    location: str | None = None,
    parameters: dict[str, str] | None = None,
    table_type: str | None = "MANAGED_TABLE",
    **fields: Any,
) -> Table:
    """A table as a client would send it."""
    return Table(
        tableName=name,
        dbName=db_name,
        owner="nobody",
        sd=StorageDescriptor(
            cols=columns("a int", "b string") if cols is None else cols,
            location=location,
            inputFormat="org.example.In",
            outputFormat="org.example.Out",
            numBuckets=-1,
            serdeInfo=SerDeInfo(serializationLib="org.example.Serde"),
        ),
        partitionKeys=keys,
        parameters=parameters,
        tableType=table_type,
        **fields,
    )


def transactional_table(name: str = "t", keys: list[FieldSchema] | None = None) -> Table:
    """A table with rows of ACID, as Hive 2.3 requires it to be; later ones need no buckets."""
    table = new_table(name, keys=keys, parameters={"transactional": "true"})
    assert table.sd is not None
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    table.sd.inputFormat, table.sd.outputFormat = f"{orc}InputFormat", f"{orc}OutputFormat"
    table.sd.numBuckets, table.sd.bucketCols = 1, ["a"]
    return table
