"""Table types: how they are stored and shown, whose data a drop deletes, and what a transactional table must be.

The names of file formats in HiveQL, and the classes of Hive that they mean.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

EXTERNAL_KEY: Final = "EXTERNAL"
EXTERNAL_PURGE_KEY: Final = "external.table.purge"
TRANSACTIONAL_KEY: Final = "transactional"
TRANSACTIONAL_PROPERTIES_KEY: Final = "transactional_properties"
ACID_INPUT_FORMAT: Final = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
ACID_OUTPUT_FORMAT: Final = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"

INSERT_ONLY: Final = "insert_only"

_DEFAULT: Final = "default"
# Of Spark's tables: the name of the format.
PROVIDER: Final = "spark.sql.sources.provider"
TABLE_TYPE_KEY: Final = "table_type"
# Where the metadata file of an Iceberg table lies, and the one that it was made from.
METADATA_LOCATION: Final = "metadata_location"
PREVIOUS_METADATA_LOCATION: Final = "previous_metadata_location"
_LOGGED_FORMATS: Final = ("iceberg", "delta", "hudi", "lance", "paimon")
_TRANSACTIONAL_PROPERTIES: Final = frozenset({_DEFAULT, INSERT_ONLY})


class TableType(StrEnum):
    """The types the 2.3 metastore knows; a table may carry any other text as well."""

    MANAGED_TABLE = "MANAGED_TABLE"
    EXTERNAL_TABLE = "EXTERNAL_TABLE"
    VIRTUAL_VIEW = "VIRTUAL_VIEW"
    INDEX_TABLE = "INDEX_TABLE"
    MATERIALIZED_VIEW = "MATERIALIZED_VIEW"


class TableTypeError(ValueError):
    """The argument of get_tables_by_type is not a table type; the text is that of the MetaException clients see."""


class TransactionalError(ValueError):
    """A table cannot be transactional in this way; the text is that of the MetaException clients see."""


def parse_table_type(text: str | None) -> TableType:
    """The argument of get_tables_by_type (semantics §1.7), case-sensitive. Raises TableTypeError."""
    if text is None:
        raise TableTypeError("java.lang.NullPointerException: Name is null")
    if text not in TableType.__members__:
        raise TableTypeError(
            f"java.lang.IllegalArgumentException: No enum constant org.apache.hadoop.hive.metastore.TableType.{text}"
        )
    return TableType(text)


def stored_table_type(table_type: str | None, parameters: Mapping[str, str]) -> str | None:
    """The type that create and alter store (semantics §3.4).

    EXTERNAL_TABLE needs the parameter EXTERNAL=TRUE, in capitals, or becomes MANAGED_TABLE; clients send both.
    """
    says_external = parameters.get(EXTERNAL_KEY) == "TRUE"
    if table_type == TableType.MANAGED_TABLE and says_external:
        return TableType.EXTERNAL_TABLE.value
    if table_type == TableType.EXTERNAL_TABLE and not says_external:
        return TableType.MANAGED_TABLE.value
    return table_type


def shown_table_type(table_type: str | None, parameters: Mapping[str, str], view_original_text: str | None) -> str:
    """The type that reads return: guessed when none is stored (semantics §3.4)."""
    if table_type is not None:
        return table_type
    if view_original_text is not None:
        return TableType.VIRTUAL_VIEW.value
    is_external = parameters.get(EXTERNAL_KEY) == "TRUE"
    return (TableType.EXTERNAL_TABLE if is_external else TableType.MANAGED_TABLE).value


def is_external(parameters: Mapping[str, str]) -> bool:
    """Whether a drop leaves the data alone: only the parameter decides, in any case (semantics §3.4)."""
    return _is_true(parameters.get(EXTERNAL_KEY))


def drop_deletes_data(parameters: Mapping[str, str]) -> bool:
    """Whether drop_table(deleteData) deletes the table's files: it owns them, or asks for it (semantics §3.4)."""
    return not is_external(parameters) or _is_true(parameters.get(EXTERNAL_PURGE_KEY))


def is_view(table_type: str | None) -> bool:
    """Whether the table is a VIRTUAL_VIEW: without location, directory and quick statistics (semantics §3.5)."""
    return table_type == TableType.VIRTUAL_VIEW


def is_iceberg(parameters: Mapping[str, str]) -> bool:
    """Whether Iceberg keeps the table, whatever the spelling of the value."""
    return parameters.get(TABLE_TYPE_KEY, "").upper() == "ICEBERG"


def is_transactional(parameters: Mapping[str, str]) -> bool:
    """Whether the parameters declare a transactional table, whatever the spelling of key and value."""
    return _is_true(_transactional(parameters))


def logged_format(parameters: Mapping[str, str], input_format: str | None) -> str:
    """The format of a table whose own log names its files, in lower case; "" for a table of Hive's formats.

    The engines name it as Spark's provider, as `table_type`, or in the package of a storage handler or input format.
    """
    if METADATA_LOCATION in parameters:
        return "iceberg"
    texts = [parameters.get(key, "") for key in (PROVIDER, TABLE_TYPE_KEY, "storage_handler")]
    words = ".".join([*texts, input_format or ""]).lower().replace("hoodie", "hudi").split(".")
    return next((format for format in _LOGGED_FORMATS if format in words), "")


def is_insert_only(parameters: Mapping[str, str]) -> bool:
    """True for a transactional table without updates: it has any format, and readers must know which files count."""
    return is_transactional(parameters) and (_properties(parameters) or "").lower() == INSERT_ONLY


def created_parameters(
    name: str,
    parameters: Mapping[str, str],
    *,
    sort_columns: Sequence[str],
    input_format: str | None,
    output_format: str | None,
) -> dict[str, str]:
    """The parameters that create_table stores, `transactional` checked and spelled uniformly (semantics §3.7).

    `name` is `database.table`. Raises TransactionalError.
    """
    declared = _transactional(parameters)
    if declared is None or declared.lower() == "false":
        return _without(parameters, TRANSACTIONAL_KEY)
    if not _is_true(declared):
        raise TransactionalError(f"'transactional' property of TBLPROPERTIES may only have value 'true': {name}")
    created = {TRANSACTIONAL_PROPERTIES_KEY: _DEFAULT} | _spelled(parameters)
    _check_format(name, created, input_format, output_format)
    _check_internal(name, created)
    return _checked(name, created, sort_columns)


def altered_parameters(
    name: str,
    old_parameters: Mapping[str, str],
    new_parameters: Mapping[str, str],
    *,
    sort_columns: Sequence[str],
    input_format: str | None,
    output_format: str | None,
) -> dict[str, str]:
    """The parameters that alter_table stores (semantics §3.7). Raises TransactionalError."""
    old, new = _transactional(old_parameters), _transactional(new_parameters)
    altered = _spelled(new_parameters)
    becomes = is_transactional(new_parameters) and not is_transactional(old_parameters)
    if becomes:
        altered.setdefault(TRANSACTIONAL_PROPERTIES_KEY, _DEFAULT)
    if _has_updates(altered) and not _has_updates(old_parameters):
        _check_format(name, altered, input_format, output_format)
    if becomes:
        _check_internal(name, altered)
    elif not _is_true(new) and not _may_say(old_parameters, new):
        # Hive's words, also where there is nothing to unset.
        raise TransactionalError(f"TBLPROPERTIES with 'transactional'='true' cannot be unset: {name}")
    if old is not None and not is_insert_only(old_parameters):
        _check_unaltered(old_parameters, altered)
    return _checked(name, altered, sort_columns)


def _has_updates(parameters: Mapping[str, str]) -> bool:
    """True for a table of full ACID."""
    return is_transactional(parameters) and not is_insert_only(parameters)


def _may_say(old_parameters: Mapping[str, str], new: str | None) -> bool:
    """True if an alter to `new` leaves a plain table plain, or ends an insert-only one."""
    ends = is_transactional(old_parameters) and not is_insert_only(old_parameters)
    return not ends and (new is None or new.lower() == "false")


def _check_format(
    name: str, parameters: Mapping[str, str], input_format: str | None, output_format: str | None
) -> None:
    is_acid = input_format == ACID_INPUT_FORMAT and output_format == ACID_OUTPUT_FORMAT
    if not is_acid and not is_insert_only(parameters):
        raise TransactionalError(f"The table must be stored using an ACID compliant format (such as ORC): {name}")


def _check_internal(name: str, parameters: Mapping[str, str]) -> None:
    if is_external(parameters):
        raise TransactionalError(f"{name} cannot be declared transactional because it's an external table")


def _check_unaltered(old_parameters: Mapping[str, str], new_parameters: Mapping[str, str]) -> None:
    kept, declared = _properties(old_parameters), _properties(new_parameters)
    if declared is not None and (kept is None or declared.lower() != kept.lower()):
        raise TransactionalError(
            "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"
        )


def _checked(name: str, parameters: dict[str, str], sort_columns: Sequence[str]) -> dict[str, str]:
    """Check the properties, and put them in small letters."""
    declared = _properties(parameters)
    if declared is not None:
        if declared.lower() not in _TRANSACTIONAL_PROPERTIES:
            raise TransactionalError(
                f"Invalid transactional properties specified for {name} with the error"
                f" unknown value {declared.lower()} for transactional_properties"
            )
        parameters = parameters | {TRANSACTIONAL_PROPERTIES_KEY: declared.lower()}
    if sort_columns and _has_updates(parameters):
        raise TransactionalError(f"Table {name} cannot support full ACID functionality since it is sorted.")
    return parameters


def _spelled(parameters: Mapping[str, str]) -> dict[str, str]:
    """Put both keys in small letters, `transactional` only where it is true."""
    properties = _properties(parameters)
    spelled = _without(_without(parameters, TRANSACTIONAL_KEY), TRANSACTIONAL_PROPERTIES_KEY)
    if is_transactional(parameters):
        spelled[TRANSACTIONAL_KEY] = "true"
    if properties is not None:
        spelled[TRANSACTIONAL_PROPERTIES_KEY] = properties
    return spelled


def _properties(parameters: Mapping[str, str]) -> str | None:
    return _value(parameters, TRANSACTIONAL_PROPERTIES_KEY)


def _transactional(parameters: Mapping[str, str]) -> str | None:
    return _value(parameters, TRANSACTIONAL_KEY)


def _value(parameters: Mapping[str, str], key: str) -> str | None:
    """Find a key in any case."""
    return next((value for name, value in parameters.items() if name.lower() == key), None)


def _without(parameters: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if name.lower() != key}


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() == "true"


class FileFormat(NamedTuple):
    input_format: str
    output_format: str
    serde: str


_PARQUET: Final = "org.apache.hadoop.hive.ql.io.parquet"
_ORC: Final = "org.apache.hadoop.hive.ql.io.orc"
_AVRO: Final = "org.apache.hadoop.hive.ql.io.avro"
_SERDE2: Final = "org.apache.hadoop.hive.serde2"
_MAPRED: Final = "org.apache.hadoop.mapred"
_IO: Final = "org.apache.hadoop.hive.ql.io"
LAZY_SERDE: Final = f"{_SERDE2}.lazy.LazySimpleSerDe"

FORMATS: Final[Mapping[str, FileFormat]] = MappingProxyType(
    {
        "TEXTFILE": FileFormat(f"{_MAPRED}.TextInputFormat", f"{_IO}.HiveIgnoreKeyTextOutputFormat", LAZY_SERDE),
        "SEQUENCEFILE": FileFormat(
            f"{_MAPRED}.SequenceFileInputFormat", f"{_IO}.HiveSequenceFileOutputFormat", LAZY_SERDE
        ),
        "RCFILE": FileFormat(
            f"{_IO}.RCFileInputFormat",
            f"{_IO}.RCFileOutputFormat",
            f"{_SERDE2}.columnar.LazyBinaryColumnarSerDe",
        ),
        "ORC": FileFormat(f"{_ORC}.OrcInputFormat", f"{_ORC}.OrcOutputFormat", f"{_ORC}.OrcSerde"),
        "PARQUET": FileFormat(
            f"{_PARQUET}.MapredParquetInputFormat",
            f"{_PARQUET}.MapredParquetOutputFormat",
            f"{_PARQUET}.serde.ParquetHiveSerDe",
        ),
        "AVRO": FileFormat(
            f"{_AVRO}.AvroContainerInputFormat", f"{_AVRO}.AvroContainerOutputFormat", f"{_SERDE2}.avro.AvroSerDe"
        ),
        "JSONFILE": FileFormat(
            f"{_MAPRED}.TextInputFormat", f"{_IO}.HiveIgnoreKeyTextOutputFormat", f"{_SERDE2}.JsonSerDe"
        ),
    }
)
