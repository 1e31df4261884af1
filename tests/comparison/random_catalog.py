"""Random calls that build and tear down a catalog out of few names, so that most calls meet something."""

from collections.abc import Iterator

from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.rpc.structs import (
    AddPartitionsRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    GetTableRequest,
    GetTablesRequest,
    Partition,
    RequestPartsSpec,
    Table,
)
from tests.comparison.objects import SOME_COLUMNS, SOME_KEYS, database, external, partition, table, view
from tests.comparison.random_choices import Choices, Weighted
from tests.comparison.servers import Step, call

DATABASES = ("{own}sales", "{own}hr")
TABLES = ("orders", "events", "t1")
DAYS = ("a", "b", "a b", "é/x=1", "10")
HOURS = ("1", "2", "10", "01", "x")
COLUMNS = (
    SOME_COLUMNS,
    (*SOME_COLUMNS, ("more", "double")),
    (("id", "string"), ("name", "string")),
    (("a", "int"), ("b", "array<string>"), ("C", "decimal(10,2)")),
)
PARAMETERS: tuple[dict[str, str], ...] = (
    {},
    {"a": "b"},
    {"EXTERNAL": "TRUE"},
    {"numRows": "5", "transient_lastDdlTime": "7"},
)
PATTERNS = ("*", "o*", ".*", "e*|t1", "t_", "T?", "", "orders", "s*")
NOWHERE = ("{own}nosuch", "", "no-such")


class CatalogProgram(Choices):
    """Databases, tables and partitions."""

    def _weighted(self) -> Iterator[Weighted]:
        yield from (
            (1, (self._drop_database, self._alter_database, self._get_database, self._list_databases)),
            (2, (self._create_database, self._drop_table, self._list_tables, self._tables_by_name)),
            (4, (self._create_table, self._get_table, self._alter_table, self._fields, self._filter_tables)),
            (3, (self._add_partition, self._append_partition, self._append_by_name, self._add_partitions)),
            (2, (self._add_partitions_req, self._alter_partition, self._rename_partition, self._alter_partitions)),
            (3, (self._get_partition, self._list_partitions, self._partial_values, self._filter_partitions)),
            (2, (self._drop_partition, self._drop_partitions_req, self._partitions_by_name, self._exchange)),
        )

    def _beginning(self) -> Iterator[Step]:
        yield call("create_database", database(DATABASES[0]))
        yield call("create_table", table(DATABASES[0], "orders", SOME_KEYS))
        yield call("create_table", self._new_table(DATABASES[0], "events"))

    # Names and values

    def _spelled(self, name: str) -> str:
        """Names are found however they are written."""
        return self._one((name.upper(), f" {name} ", name.title())) if self._chance(0.1) else name

    def _database(self) -> str:
        return self._one(NOWHERE) if self._chance(0.04) else self._spelled(self._one(DATABASES))

    def _table(self) -> str:
        return self._one(NOWHERE) if self._chance(0.04) else self._spelled(self._one(TABLES))

    def _exact(self) -> tuple[str, str]:
        """Database and table as they are stored, for what is compared or stored as it is written."""
        return self._one(DATABASES), self._one(TABLES)

    def _values(self) -> list[str]:
        values = [self._one(DAYS), self._one(HOURS)]
        return values[: self._random.randrange(3)] if self._chance(0.05) else values

    def _name(self) -> str:
        return make_name(["ds", "hr"], [self._one(DAYS), self._one(HOURS)])

    def _limit(self) -> int:
        return self._one((-1, -1, 0, 1, 2, 100))

    def _parameters(self) -> dict[str, str]:
        return dict(self._one(PARAMETERS))

    def _environment(self) -> EnvironmentContext | None:
        properties: tuple[dict[str, str], ...] = ({}, {"DO_NOT_UPDATE_STATS": "true"}, {"STATS_GENERATED": "TASK"})
        return EnvironmentContext(dict(self._one(properties))) if self._chance(0.5) else None

    def _new_table(self, db_name: str, name: str) -> Table:
        kind = self._random.random()
        if kind < 0.1:
            return view(db_name, name)
        if kind < 0.25:
            return external(db_name, name, SOME_KEYS)
        keys = SOME_KEYS if kind < 0.8 else ()
        return table(db_name, name, keys, self._one(COLUMNS), parameters=self._parameters())

    def _partition(self, db_name: str, tbl_name: str, values: list[str] | None = None) -> Partition:
        made = partition(db_name, tbl_name, values or self._values(), self._one(COLUMNS), createTime=5)
        made.parameters = self._parameters()
        return made

    def _placed(self, db_name: str, tbl_name: str) -> Partition:
        """A partition with a location, as alter wants it."""
        placed = self._partition(db_name, tbl_name)
        assert placed.sd is not None
        own = "/".join(("ds=x", *(placed.values or ())[:1])).replace(" ", "")
        placed.sd.location = self._one(
            (f"{{warehouse}}/{db_name}.db/{tbl_name}/ds=a/hr=1", f"{{elsewhere}}/{{own}}{own}")
        )
        return placed

    def _filter(self) -> str:
        if self._chance(0.2):
            joined = self._one((" and ", " or ")).join(self._condition() for _ in range(2))
            return f"({joined})" if self._chance(0.5) else joined
        return self._condition()

    def _condition(self) -> str:
        day, other, hour = self._one(DAYS), self._one(DAYS), self._random.randrange(12)
        return self._one(
            (
                f'ds = "{day}"',
                f'ds > "{day}"',
                f'ds != "{day}"',
                f'"{day}" <= DS',
                f'ds between "{day}" and "{other}"',
                f'(ds) in ("{day}", "{other}")',
                f'(ds) not in ("{day}")',
                f"hr = {hour}",
                f"hr < {hour}",
                f"{hour} != hr",
                f"hr not between 1 and {hour}",
                f"(hr) in (1, {hour})",
                f'ds = "{day}" and hr >= {hour}',
                "nokey = 1",
            )
        )

    # Databases

    def _create_database(self) -> Step:
        location = "{elsewhere}/" + self._one(DATABASES) if self._chance(0.2) else None
        return call("create_database", database(self._database(), parameters=self._parameters(), locationUri=location))

    def _drop_database(self) -> Step:
        return call("drop_database", self._database(), self._chance(0.7), self._chance(0.5))

    def _alter_database(self) -> Step:
        return call("alter_database", self._one(DATABASES), database("x", parameters=self._parameters(), ownerName="o"))

    def _get_database(self) -> Step:
        return call("get_database", self._database())

    def _list_databases(self) -> Step:
        return call("get_databases", "{own}" + self._one(PATTERNS))

    # Tables

    def _create_table(self) -> Step:
        return call("create_table", self._new_table(self._database(), self._table()))

    def _drop_table(self) -> Step:
        return call("drop_table", self._database(), self._table(), self._chance(0.7))

    def _get_table(self) -> Step:
        if self._chance(0.3):
            return call("get_table_req", GetTableRequest(self._database(), self._table()))
        return call("get_table", self._database(), self._table())

    def _list_tables(self) -> Step:
        db_name = self._database()
        return self._one(
            (
                call("get_all_tables", db_name),
                call("get_tables", db_name, self._one(PATTERNS)),
                call(
                    "get_tables_by_type", db_name, self._one(PATTERNS), self._one(("MANAGED_TABLE", "EXTERNAL_TABLE"))
                ),
                call("get_table_meta", "{own}" + self._one(PATTERNS), self._one(PATTERNS), []),
            )
        )

    def _tables_by_name(self) -> Step:
        names = [self._table() for _ in range(self._random.randrange(3))]
        if self._chance(0.5):
            return call("get_table_objects_by_name_req", GetTablesRequest(self._database(), names))
        return call("get_table_objects_by_name", self._database(), names)

    def _alter_table(self) -> Step:
        db_name, name = self._exact()
        new_db, new_name = (db_name, name) if self._chance(0.6) else self._exact()
        changed = self._new_table(new_db, new_name)
        assert changed.sd is not None
        changed.sd.location = self._one((f"{{warehouse}}/{db_name}.db/{name}", f"{{elsewhere}}/{{own}}{name}"))
        if self._chance(0.3):
            return call("alter_table_with_cascade", db_name, name, changed, self._chance(0.5))
        if self._chance(0.3):
            return call("alter_table_with_environment_context", db_name, name, changed, self._environment())
        return call("alter_table", db_name, name, changed)

    def _fields(self) -> Step:
        return call(self._one(("get_fields", "get_schema")), self._database(), self._table())

    def _filter_tables(self) -> Step:
        text = self._one(('hive_filter_field_owner__ = "somebody"', 'hive_filter_field_params__a like "b.*"'))
        return call("get_table_names_by_filter", self._database(), text, -1)

    # Partitions

    def _add_partition(self) -> Step:
        added = self._partition(self._database(), self._table())
        if self._chance(0.3):
            return call("add_partition_with_environment_context", added, self._environment())
        return call("add_partition", added)

    def _append_partition(self) -> Step:
        return call("append_partition", *self._exact(), self._values())

    def _append_by_name(self) -> Step:
        return call("append_partition_by_name", *self._exact(), self._name())

    def _some_new(self, db_name: str, tbl_name: str) -> list[Partition]:
        days = self._random.sample(DAYS, self._random.randrange(4))
        return [self._partition(db_name, tbl_name, [day, self._one(HOURS)]) for day in days]

    def _add_partitions(self) -> Step:
        return call("add_partitions", self._some_new(*self._exact()))

    def _add_partitions_req(self) -> Step:
        db_name, tbl_name = self._exact()
        some = self._some_new(db_name, tbl_name)
        return call(
            "add_partitions_req", AddPartitionsRequest(db_name, tbl_name, some, self._chance(0.5), self._chance(0.5))
        )

    def _alter_partition(self) -> Step:
        db_name, tbl_name = self._exact()
        if self._chance(0.3):
            placed = self._placed(db_name, tbl_name)
            return call("alter_partition_with_environment_context", db_name, tbl_name, placed, self._environment())
        return call("alter_partition", db_name, tbl_name, self._placed(db_name, tbl_name))

    def _alter_partitions(self) -> Step:
        db_name, tbl_name = self._exact()
        changed = {tuple(one.values or ()): one for one in (self._placed(db_name, tbl_name) for _ in range(2))}
        return call("alter_partitions", db_name, tbl_name, list(changed.values()))

    def _rename_partition(self) -> Step:
        db_name, tbl_name = self._exact()
        return call("rename_partition", db_name, tbl_name, self._values(), self._placed(db_name, tbl_name))

    def _get_partition(self) -> Step:
        if self._chance(0.4):
            return call("get_partition_by_name", self._database(), self._table(), self._name())
        return call("get_partition", self._database(), self._table(), self._values())

    def _list_partitions(self) -> Step:
        method = self._one(("get_partitions", "get_partition_names", "get_partitions_pspec", "get_partitions"))
        return call(method, self._database(), self._table(), self._limit())

    def _partial_values(self) -> Step:
        method = self._one(("get_partitions_ps", "get_partition_names_ps"))
        values = [self._one(("", self._one(DAYS))), self._one(("", self._one(HOURS)))]
        return call(method, self._database(), self._table(), values[: self._random.randrange(3)], self._limit())

    def _filter_partitions(self) -> Step:
        names = (self._database(), self._table(), self._filter())
        if self._chance(0.3):
            return call("get_num_partitions_by_filter", *names)
        return call("get_partitions_by_filter", *names, self._limit())

    def _partitions_by_name(self) -> Step:
        names = [self._name() for _ in range(self._random.randrange(4))]
        return call("get_partitions_by_names", self._database(), self._table(), names)

    def _drop_partition(self) -> Step:
        if self._chance(0.4):
            return call("drop_partition_by_name", *self._exact(), self._name(), self._chance(0.7))
        return call("drop_partition", *self._exact(), self._values(), self._chance(0.7))

    def _drop_partitions_req(self) -> Step:
        names = [self._name() for _ in range(self._random.randrange(4))]
        request = DropPartitionsRequest(*self._exact(), RequestPartsSpec(names), self._chance(0.7), self._chance(0.5))
        return call("drop_partitions_req", request)

    def _exchange(self) -> Step:
        spec = {"ds": self._one(DAYS), "hr": self._one(("", *HOURS))}
        source, target = self._random.sample(TABLES, 2)
        db_name = self._one(DATABASES)
        return call(
            self._one(("exchange_partition", "exchange_partitions")),
            spec,
            db_name,
            source,
            self._one(DATABASES),
            target,
        )
