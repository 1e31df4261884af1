"""The data source `hms`: which object is read or written, by which options."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from hms_gateway.pipeline.connection import CONNECTION_OPTIONS, Connection, choice, whole_number
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.source.columns import check_schema, key_struct, schema_of
from hms_gateway.pipeline.source.objects import columns_of
from hms_gateway.pipeline.source.planning import Scope
from hms_gateway.pipeline.source.reading import FilteringReader, WholeReader
from hms_gateway.pipeline.source.registering import PARTITIONS_A_CALL, PartitionWriter, TargetTable
from hms_gateway.pipeline.source.streaming import EventStreamReader

_OPTIONS: Final = (
    *CONNECTION_OPTIONS,
    *("object", "table", "database", "columns", "pushdown", "tablesPerTask", "partitionsPerTask", "eventsPerTask"),
    *("startingEvent", "eventsPerBatch", "ifExists", "batchSize", "run"),
)
_KNOWN: Final = frozenset(map(str.lower, _OPTIONS))
_CONF_PREFIX: Final = "spark.hms."


class HmsDataSource(DataSource):  # type: ignore[misc]
    """Databases, tables, partitions and the rest of a metastore as DataFrames."""

    # Of the session's configuration; see `register`.
    defaults: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        return "hms"

    def schema(self) -> StructType:
        columns = columns_of(self._object, self._keys())
        return schema_of(columns, self._option("columns"), self._object)

    def reader(self, schema: StructType) -> WholeReader:
        keys = schema["key"].dataType if self._reads_one_table and "key" in schema.fieldNames() else None
        check_schema(schema, columns_of(self._object, keys), self._object)
        reader = FilteringReader if self._flag("pushdown", "true") else WholeReader
        return reader(self._connection(), self._object, self._scope(), schema)

    def streamReader(self, schema: StructType) -> EventStreamReader:
        if self._object != "events":
            raise OptionError(f"object {self._object} cannot be read as a stream; only events can")
        check_schema(schema, columns_of("events"), "events")
        per_batch = self._number("eventsPerBatch")
        starting = self._option("startingEvent") or "latest"
        return EventStreamReader(self._connection(), schema, starting, per_batch, self._number("eventsPerTask"))

    def writer(self, schema: StructType, overwrite: bool) -> PartitionWriter:
        if self._object != "partitions" or overwrite:
            raise OptionError("only partitions can be written, with mode append")
        database, table = self._table() or (None, None)
        if database is None or table is None:
            raise OptionError("option table is missing; give database.table, whose partitions the rows are")
        target = TargetTable(
            database,
            table,
            skips_existing=self._flag("ifExists", "skip", "skip", "fail"),
            rows_a_call=self._number("batchSize") or PARTITIONS_A_CALL,
            run=self._option("run"),
        )
        return PartitionWriter(self._connection(), target, schema)

    @property
    def _object(self) -> str:
        return (self._option("object") or "tables").lower()

    @property
    def _reads_one_table(self) -> bool:
        return self._object == "partitions" and self._table() is not None

    def _option(self, name: str) -> str | None:
        """Raises OptionError when any option is unknown: a misspelt one would be without effect."""
        for given in self.options:
            if given.lower() not in _KNOWN:
                raise OptionError(f"option {given} is unknown; options are {', '.join(_OPTIONS)}")
        return self.options.get(name) or self.defaults.get(name.lower())

    def _number(self, name: str) -> int | None:
        return whole_number(name, self._option(name), 0) or None

    def _flag(self, name: str, default: str, true: str = "true", false: str = "false") -> bool:
        return choice(name, self._option(name) or default, {true: True, false: False})

    def _connection(self) -> Connection:
        given = {name: value for name in CONNECTION_OPTIONS if (value := self._option(name))}
        return Connection.of(given)

    def _table(self) -> tuple[str, str] | None:
        text = self._option("table")
        if text is None:
            return None
        database, dot, table = text.lower().partition(".")
        if not (database and dot and table):
            raise OptionError(f"option table is {text!r}; it is database.table")
        return database, table

    def _scope(self) -> Scope:
        database, table = self._table() or (self._option("database"), None)
        size = "eventsPerTask" if self._object == "events" else "tablesPerTask"
        if self._reads_one_table:
            size = "partitionsPerTask"
        return Scope(database, table, per_task=self._number(size))

    def _keys(self) -> StructType | None:
        """The keys of the table whose partitions are read, which the metastore has to be asked for."""
        named = self._table()
        if named is None or self._object != "partitions":
            return None
        with self._connection().open() as client:
            keys = client.call("get_table", *named).partitionKeys
        if not keys:
            raise OptionError(f"table {'.'.join(named)} has no partition keys; it has no partitions to read")
        return key_struct(keys)


def register(spark: Any) -> None:
    """Register the data source in a session, with options from its configuration: `spark.hms.password` is `password`.

    They are in no option of a DataFrame then, so that no plan shows them.
    """
    given = {
        name.removeprefix(_CONF_PREFIX).lower(): value
        for name, value in spark.sparkContext.getConf().getAll()
        if name.startswith(_CONF_PREFIX)
    }
    spark.dataSource.register(type("ConfiguredHmsDataSource", (HmsDataSource,), {"defaults": given}))
