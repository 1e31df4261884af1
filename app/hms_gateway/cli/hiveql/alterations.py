"""Reads ALTER TABLE, ALTER VIEW and ALTER DATABASE."""

from collections.abc import Callable

from hms_gateway.cli.hiveql.definitions import DefinitionReader
from hms_gateway.cli.hiveql.statements import (
    AddColumns,
    AddedPartition,
    AddKey,
    AddPartitions,
    AlterDatabase,
    AlterTable,
    AlterViewQuery,
    Change,
    ChangeColumn,
    ChangePartitionColumn,
    Compact,
    DropConstraint,
    DropPartitions,
    ExchangePartition,
    ForEngines,
    PartitionSpec,
    QualifiedName,
    Rename,
    RenamePartition,
    ReplaceColumns,
    SetBuckets,
    SetFormat,
    SetLocation,
    SetOwner,
    SetProperties,
    SetSerde,
    Statement,
    Touch,
    UnsetProperties,
    UnsetSerdeProperties,
)
from hms_gateway.rpc.structs import FieldSchema, SerDeInfo, StorageDescriptor


class AlterationReader(DefinitionReader):
    def _alter(self) -> Statement:
        what = self._needs_any("TABLE", "VIEW", "DATABASE", "SCHEMA")
        if what == "TABLE":
            return self._alter_table()
        return self._alter_view() if what == "VIEW" else self._alter_database()

    def _alter_database(self) -> Statement:
        name = self._object_name("the name of a database")
        self._needs("SET")
        what = self._needs_any("DBPROPERTIES", "LOCATION", "MANAGEDLOCATION", "OWNER")
        if what == "DBPROPERTIES":
            return AlterDatabase(name, parameters=self._properties())
        if what == "LOCATION":
            return AlterDatabase(name, location=self._string("the location in quotes"))
        if what == "MANAGEDLOCATION":
            return AlterDatabase(name, managed_location=self._string("the location in quotes"))
        return AlterDatabase(name, owner=self._principal())

    def _alter_view(self) -> Statement:
        name = self._table_name()
        if self._takes("AS"):
            begin = self._position()
            return AlterViewQuery(name, self._query_text(), begin)
        if self._takes("RENAME"):
            self._needs("TO")
            return AlterTable(name, Rename(self._table_name()), is_view=True)
        if self._takes("UNSET"):
            return AlterTable(name, self._unset(), is_view=True)
        if not self._takes("SET"):
            raise self._expected("AS, RENAME TO, SET TBLPROPERTIES or UNSET TBLPROPERTIES")
        self._needs("TBLPROPERTIES")
        return AlterTable(name, SetProperties(self._properties()), is_view=True)

    def _query_text(self) -> str:
        """The rest of the statement, which begins a query."""
        if self._peek() not in ("SELECT", "WITH", "FROM", "VALUES", "("):
            raise self._expected("a query")
        text = self._rest()
        self._at = len(self._tokens)
        return text

    def _alter_table(self) -> Statement:
        table = self._table_name()
        if self._takes("PARTITION", "COLUMN"):
            self._needs("(")
            column = FieldSchema(name=self._object_name("a partition key"), type=self._type())
            self._needs(")")
            return AlterTable(table, ChangePartitionColumn(column))
        specs = (self._spec(),) if self._takes("PARTITION") else ()
        word = self._peek()
        readers: dict[str, Callable[[QualifiedName, tuple[PartitionSpec, ...]], Statement]] = {
            "ADD": self._add,
            "DROP": self._drop_part,
            "COMPACT": self._compact,
            "EXCHANGE": self._exchange,
            "TOUCH": self._touch,
        }
        if word in readers:
            self._at += 1
            return readers[word](table, specs)
        if word in ("CONCATENATE", "ARCHIVE", "UNARCHIVE", "RECOVER"):
            self._at = len(self._tokens)
            return ForEngines(f"ALTER TABLE … {word}")
        return AlterTable(table, self._change(table, specs), specs)

    def _change(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Change:
        if self._takes("RENAME", "TO"):
            if specs:
                self._needs("PARTITION")
                return RenamePartition(self._spec())
            return Rename(self._table_name_in(table.db_name))
        if self._takes("REPLACE", "COLUMNS"):
            return ReplaceColumns(self._columns(), self._cascades())
        if self._takes("CHANGE"):
            return self._change_column()
        if self._takes("UNSET"):
            return self._unset()
        if self._takes("CLUSTERED", "BY"):
            descriptor = StorageDescriptor(sortCols=[])
            self._buckets(descriptor)
            sorted_by = [(order.col or "", order.order or 0) for order in descriptor.sortCols or ()]
            return SetBuckets(descriptor.bucketCols or [], sorted_by, descriptor.numBuckets or 0)
        if self._takes("NOT", "CLUSTERED"):
            return SetBuckets((), (), -1)
        if self._takes("SET"):
            return self._set()
        raise self._expected(
            "RENAME TO, ADD, DROP, REPLACE COLUMNS, CHANGE, SET, UNSET, PARTITION, CLUSTERED BY, COMPACT, EXCHANGE "
            "or TOUCH"
        )

    def _table_name_in(self, db_name: str) -> QualifiedName:
        """A new name without a database stays in the one where the table is."""
        first = self._object_name("the new name")
        return (
            QualifiedName(first, self._object_name("the new name"))
            if self._takes(".")
            else QualifiedName(db_name, first)
        )

    def _cascades(self) -> bool:
        return self._takes_any("CASCADE", "RESTRICT") == "CASCADE"

    def _change_column(self) -> Change:
        self._takes("COLUMN")
        name = self._object_name("the name of a column")
        column = self._column()
        after = "" if self._takes("FIRST") else None
        if self._takes("AFTER"):
            after = self._object_name("the name of a column")
        return ChangeColumn(name, column, after, self._cascades())

    def _unset(self) -> Change:
        """After UNSET."""
        what = self._needs_any("TBLPROPERTIES", "SERDEPROPERTIES")
        if_exists = self._if_exists()
        names = self._property_names()
        return UnsetProperties(names, if_exists) if what == "TBLPROPERTIES" else UnsetSerdeProperties(names)

    def _set(self) -> Change:
        """After SET."""
        what = self._needs_any("TBLPROPERTIES", "SERDEPROPERTIES", "SERDE", "FILEFORMAT", "LOCATION", "OWNER")
        if what == "TBLPROPERTIES":
            return SetProperties(self._properties())
        if what == "SERDEPROPERTIES":
            return SetSerde(None, self._properties())
        if what == "SERDE":
            library = self._string("the class in quotes")
            return SetSerde(library, self._properties() if self._takes("WITH", "SERDEPROPERTIES") else {})
        if what == "FILEFORMAT":
            chosen = self._format()
            serde = SerDeInfo(serializationLib=chosen.serde) if chosen.serde else None
            return SetFormat(chosen.input_format, chosen.output_format, serde)
        return (
            SetLocation(self._string("the location in quotes")) if what == "LOCATION" else SetOwner(self._principal())
        )

    def _touch(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        found = list(specs)
        while self._takes("PARTITION"):
            found.append(self._spec())
            self._takes(",")
        return AlterTable(table, Touch(), tuple(found))

    def _add(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        """After ADD."""
        if self._takes("COLUMNS"):
            return AlterTable(table, AddColumns(self._columns(), self._cascades()), specs)
        name = self._object_name("the name of the constraint") if self._takes("CONSTRAINT") else None
        if self._takes_any("PRIMARY", "FOREIGN"):
            return self._add_key(table, name)
        if name is not None:
            raise self._expected("PRIMARY KEY or FOREIGN KEY")
        if_not_exists = self._if_not_exists()
        if self._peek() != "PARTITION":
            raise self._expected("COLUMNS, PARTITION or CONSTRAINT")
        partitions = []
        while self._takes("PARTITION"):
            spec = self._spec()
            partitions.append(
                AddedPartition(spec, self._string("the location in quotes") if self._location() else None)
            )
            self._takes(",")
        return AddPartitions(table, partitions, if_not_exists)

    def _location(self) -> bool:
        return self._takes("LOCATION")

    def _add_key(self, table: QualifiedName, name: str | None) -> Statement:
        """After PRIMARY or FOREIGN."""
        is_foreign = self._tokens[self._at - 1].upper == "FOREIGN"
        self._needs("KEY")
        columns = self._names()
        if not is_foreign:
            self._constraint_state()
            return AddKey(table, name, columns)
        self._needs("REFERENCES")
        references = self._table_name()
        referenced = self._names()
        self._constraint_state()
        return AddKey(table, name, columns, references, referenced)

    def _constraint_state(self) -> None:
        """A metastore enforces no constraint."""
        self._takes("DISABLE")
        self._takes("NOVALIDATE")
        self._takes_any("RELY", "NORELY")

    def _drop_part(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        """After DROP."""
        if self._takes("CONSTRAINT"):
            return DropConstraint(table, self._object_name("the name of the constraint"))
        if_exists = self._if_exists()
        if self._peek() != "PARTITION":
            raise self._expected("PARTITION or CONSTRAINT")
        found = []
        while self._takes("PARTITION"):
            found.append(self._spec())
            self._takes(",")
        return DropPartitions(table, found, if_exists, self._takes("PURGE"))

    def _compact(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        """After COMPACT."""
        kind = self._string("'major' or 'minor'").upper()
        if kind not in ("MAJOR", "MINOR"):
            self._at -= 1
            raise self._expected("'major' or 'minor'")
        return Compact(table, specs[0] if specs else (), kind)

    def _exchange(self, table: QualifiedName, specs: tuple[PartitionSpec, ...]) -> Statement:
        """After EXCHANGE."""
        self._needs("PARTITION")
        spec = self._spec()
        self._needs("WITH", "TABLE")
        return ExchangePartition(table, spec, self._table_name())
