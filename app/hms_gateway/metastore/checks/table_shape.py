"""The table that create_table and alter_table store: checked, normalised and complete (semantics §3.3, §3.4).

Characters of partition values (semantics §1.1, §2.12), and the storage descriptors of the partitions of one request,
which are mostly equal but for their location.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.vocabulary.column_types import InvalidColumnType, MissingColumnType, check_types
from hms_gateway.metastore.vocabulary.names import InvalidName, check_table_name, normalize
from hms_gateway.metastore.vocabulary.parameters import with_ddl_time, without_nulls, written_under
from hms_gateway.metastore.vocabulary.table_types import TransactionalError, shown_table_type, stored_table_type
from hms_gateway.rpc.structs import (
    FieldSchema,
    MetaException,
    Order,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Struct,
    Table,
    ThriftException,
)

# Takes the place of a location while the text around it is made.
_HOLE: Final = "\0location\0"
_HOLE_JSON: Final = msgspec.json.encode(_HOLE)


class StoredDescriptors:
    """Descriptors as they are stored. Equal ones share everything but the location, so they must not be changed."""

    def __init__(self) -> None:
        self._given: StorageDescriptor | None = None
        self._stored = StorageDescriptor()

    def of(self, given: StorageDescriptor) -> StorageDescriptor:
        """Descriptor with every field that reads return (semantics §3.3); columns not sent stay absent (§2.8).

        Raises MetaException for a column without name or type, and without a serde, as for tables.
        """
        placeless = elsewhere(given, None)
        if placeless != self._given:
            _check(given)
            self._given, self._stored = placeless, stored_descriptor(placeless)
            if given.cols is None:
                self._stored.cols = None
        return elsewhere(self._stored, given.location)


class PartitionTexts:
    """Partitions as TJSON, for which a descriptor like the one before is not encoded again."""

    def __init__(self, to_tjson: Callable[[Struct], bytes]) -> None:
        self._to_tjson = to_tjson
        self._with_hole: StorageDescriptor | None = None
        self._around: tuple[bytes, bytes] | None = None

    def of(self, partition: Partition) -> str:
        around = self._around_location(partition.sd)
        if around is None or partition.sd is None:
            return self._to_tjson(partition).decode()
        spliced: Any = copy.copy(partition)
        spliced.sd = _Encoded(msgspec.json.encode(partition.sd.location).join(around), partition.sd)
        return self._to_tjson(spliced).decode()

    def _around_location(self, descriptor: StorageDescriptor | None) -> tuple[bytes, bytes] | None:
        """The descriptor's text before and after its location; None when it cannot be found."""
        if descriptor is None or descriptor.location is None:
            return None
        with_hole = elsewhere(descriptor, _HOLE)
        if with_hole != self._with_hole:
            self._with_hole = with_hole
            parts = self._to_tjson(with_hole).split(_HOLE_JSON)
            self._around = (parts[0], parts[1]) if len(parts) == 2 else None
        return self._around


class _Encoded:
    """A descriptor that is encoded already (`structs.Encoded`)."""

    def __init__(self, text: bytes, descriptor: StorageDescriptor) -> None:
        self._text = text
        self._descriptor = descriptor

    def tjson(self) -> bytes:
        return self._text

    def struct(self) -> StorageDescriptor:
        return self._descriptor


def _check(descriptor: StorageDescriptor) -> None:
    for column in descriptor.cols or ():
        required(column.name, "column name")
        required(column.type, "column type")
    check_serde(descriptor)


# What a client may send and the server does not keep: grants have rows of their own, the rest belongs to one call.
_NOT_STORED: Final = {
    "privileges": None,
    "temporary": None,
    "catName": None,
    "isStatsCompliant": None,
    "colStats": None,
    "accessType": None,
    "id": None,
    "fileMetadata": None,
    "dictionary": None,
    "txnId": None,
}


def check_shape(table: Table, *, allows_hyphen: bool, refusal: type[ThriftException], checks_keys: bool) -> None:
    """Name and column types, in Hive's order (semantics §1.1, §2.6, §2.7 item 1).

    What breaks a rule is a `refusal`, what is missing altogether a MetaException.
    """
    try:
        name = required(table.tableName, "table name")
        check_table_name(name, allows_hyphen=allows_hyphen)
    except InvalidName as error:
        raise refusal(str(error)) from error
    columns = required(required(table.sd, "storage descriptor").cols, "column list")
    _check_columns(columns, refusal, of_partition_keys=False)
    if checks_keys:
        _check_columns(table.partitionKeys or [], refusal, of_partition_keys=True)


def check_skewed_columns(table: Table, refusal: type[ThriftException]) -> None:
    """Every skewed column must be a column, by exact name (semantics §1.1)."""
    sd = required(table.sd, "storage descriptor")
    skewed = sd.skewedInfo.skewedColNames if sd.skewedInfo else None
    columns = {column.name for column in sd.cols or []}
    unknown = [name for name in skewed or [] if name not in columns]
    if unknown:
        raise refusal(f"Invalid skew column [{', '.join(unknown)}]")


def check_bucket_columns(table: Table, refusal: type[ThriftException]) -> None:
    """Every bucketing column must be a column, in any case."""
    sd = required(table.sd, "storage descriptor")
    columns = {normalize(column.name or "") for column in sd.cols or []}
    unknown = [name.lower() for name in sd.bucketCols or [] if normalize(name) not in columns]
    if unknown:
        raise refusal(f"Bucket columns - [{', '.join(unknown)}] doesn't match with any table columns")


def check_serde(descriptor: StorageDescriptor | None) -> None:
    """Without a serde a descriptor cannot be stored, of a table or a partition (semantics §2.6)."""
    if required(descriptor, "storage descriptor").serdeInfo is None:
        raise MetaException("Invalid SerDeInfo object")


def stored_table(table: Table, db_name: str, now_seconds: int) -> Table:
    """`table` with every field that get_table returns, under normalised names (semantics §3.3).

    Of an absent descriptor nothing is made.
    """
    parameters = with_ddl_time(without_nulls(table.parameters), now_seconds)
    table_type = stored_table_type(table.tableType, parameters)
    return msgspec.structs.replace(
        table,
        **_NOT_STORED,
        dbName=db_name,
        tableName=normalize(table.tableName or ""),
        createTime=table.createTime or 0,
        lastAccessTime=table.lastAccessTime or 0,
        retention=table.retention or 0,
        sd=None if table.sd is None else stored_descriptor(table.sd),
        partitionKeys=_stored_columns(table.partitionKeys or []),
        parameters=parameters,
        tableType=shown_table_type(table_type, parameters, table.viewOriginalText),
        rewriteEnabled=bool(table.rewriteEnabled),
        writeId=written_under(parameters, table.writeId),
    )


def stored_descriptor(sd: StorageDescriptor) -> StorageDescriptor:
    """`sd` with every field that reads return; absent collections are empty ones."""
    skewed = sd.skewedInfo or SkewedInfo()
    serde = sd.serdeInfo or SerDeInfo()
    return msgspec.structs.replace(
        sd,
        cols=_stored_columns(sd.cols or []),
        compressed=bool(sd.compressed),
        numBuckets=sd.numBuckets or 0,
        serdeInfo=msgspec.structs.replace(serde, parameters=without_nulls(serde.parameters)),
        bucketCols=list(sd.bucketCols or []),
        sortCols=[Order(normalize(order.col or ""), order.order or 0) for order in sd.sortCols or []],
        parameters=without_nulls(sd.parameters),
        skewedInfo=SkewedInfo(
            skewed.skewedColNames or [], skewed.skewedColValues or [], skewed.skewedColValueLocationMaps or {}
        ),
        storedAsSubDirectories=bool(sd.storedAsSubDirectories),
    )


def elsewhere(descriptor: StorageDescriptor, location: str | None) -> StorageDescriptor:
    """A copy of a descriptor that lies somewhere else."""
    moved = copy.copy(descriptor)
    moved.location = location
    return moved


def with_known_skew(before: StorageDescriptor | None, sent: StorageDescriptor) -> StorageDescriptor:
    """`sent`, whose skewed locations JSON clients cannot express: they get none and send none back (clients A.5)."""
    if before is None or before.skewedInfo is None or sent.skewedInfo is None:
        return sent
    old, new = before.skewedInfo, sent.skewedInfo
    if new.skewedColValueLocationMaps:
        return sent
    if (new.skewedColNames, new.skewedColValues) != (old.skewedColNames, old.skewedColValues):
        return sent
    return msgspec.structs.replace(sent, skewedInfo=old)


def with_parameters(table: Table, parameters: Mapping[str, str]) -> Table:
    """A copy with other parameters."""
    return msgspec.structs.replace(table, parameters=dict(parameters))


def with_location(table: Table, location: str | None) -> Table:
    """A copy at another location."""
    sd = required(table.sd, "storage descriptor")
    return msgspec.structs.replace(table, sd=msgspec.structs.replace(sd, location=location))


def transactional_parameters(
    rule: Callable[..., dict[str, str]], table: Table, *before: Mapping[str, str]
) -> dict[str, str]:
    """The parameters by one of the two rules of semantics §3.7; `before` are the old ones, for an alter."""
    sd = table.sd or StorageDescriptor()
    try:
        return rule(
            f"{table.dbName}.{table.tableName}",
            *before,
            table.parameters or {},
            sort_columns=[order.col or "" for order in sd.sortCols or []],
            input_format=sd.inputFormat,
            output_format=sd.outputFormat,
        )
    except TransactionalError as error:
        raise MetaException(str(error)) from error


def _check_columns(columns: Sequence[FieldSchema], refusal: type[ThriftException], *, of_partition_keys: bool) -> None:
    try:
        check_types((column.type for column in columns), of_partition_keys=of_partition_keys)
    except InvalidColumnType as error:
        raise refusal(str(error)) from error
    except MissingColumnType as error:
        raise MetaException(str(error)) from error
    _check_unique(normalize(required(column.name, "column name")) for column in columns)


def _check_unique(names: Iterable[str]) -> None:
    """Hive's tables have the name in their key, so a repetition is a database error there (semantics §1.1)."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise MetaException(f"Column {name} appears more than once")
        seen.add(name)


def _stored_columns(columns: Sequence[FieldSchema]) -> list[FieldSchema]:
    return [FieldSchema(normalize(column.name or ""), column.type, column.comment) for column in columns]
