"""Table types: how they are stored and shown, whose data a drop deletes, and what a transactional table must be."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

EXTERNAL_KEY: Final = "EXTERNAL"
AUTO_PURGE_KEY: Final = "auto.purge"
EXTERNAL_PURGE_KEY: Final = "external.table.purge"
TRANSACTIONAL_KEY: Final = "transactional"
TRANSACTIONAL_PROPERTIES_KEY: Final = "transactional_properties"
ACID_INPUT_FORMAT: Final = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
ACID_OUTPUT_FORMAT: Final = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"

_TRANSACTIONAL_PROPERTIES: Final = frozenset({"default", "legacy"})


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


def skips_trash(parameters: Mapping[str, str]) -> bool:
    """Whether the table's files are deleted for good (semantics §2.6)."""
    return _is_true(parameters.get(AUTO_PURGE_KEY))


def is_view(table_type: str | None) -> bool:
    """Whether the table is a VIRTUAL_VIEW: without location, directory and quick statistics (semantics §3.5)."""
    return table_type == TableType.VIRTUAL_VIEW


def is_transactional(parameters: Mapping[str, str]) -> bool:
    """Whether the parameters declare a transactional table, whatever the spelling of key and value."""
    return _is_true(_transactional(parameters))


def created_parameters(
    name: str,
    table_type: str | None,
    parameters: Mapping[str, str],
    *,
    bucket_columns: Sequence[str],
    input_format: str | None,
    output_format: str | None,
) -> dict[str, str]:
    """The parameters that create_table stores, `transactional` checked and spelled uniformly (semantics §3.7).

    `name` is `database.table`. Raises TransactionalError.
    """
    declared = _transactional(parameters)
    if declared is None or declared.lower() == "false":
        return _without_transactional(parameters)
    if not _is_true(declared):
        raise TransactionalError("'transactional' property of TBLPROPERTIES may only have value 'true'")
    _check_acid(name, table_type, bucket_columns, input_format, output_format)
    return _checked_properties({**_without_transactional(parameters), TRANSACTIONAL_KEY: "true"})


def altered_parameters(
    name: str,
    table_type: str | None,
    old_parameters: Mapping[str, str],
    new_parameters: Mapping[str, str],
    *,
    bucket_columns: Sequence[str],
    input_format: str | None,
    output_format: str | None,
) -> dict[str, str]:
    """The parameters that alter_table stores (semantics §3.7). Raises TransactionalError."""
    old, new = _transactional(old_parameters), _transactional(new_parameters)
    if _is_true(new):
        _check_acid(name, table_type, bucket_columns, input_format, output_format)
    elif old is not None or new is not None:
        # Hive's words, also where there is nothing to unset: every other value than `true` is refused here.
        raise TransactionalError("TBLPROPERTIES with 'transactional'='true' cannot be unset")
    altered = _without_transactional(new_parameters) | ({} if new is None else {TRANSACTIONAL_KEY: "true"})
    if old is not None:
        _check_unaltered(old_parameters, altered)
    return _checked_properties(altered)


def _check_acid(
    name: str,
    table_type: str | None,
    bucket_columns: Sequence[str],
    input_format: str | None,
    output_format: str | None,
) -> None:
    is_acid = input_format == ACID_INPUT_FORMAT and output_format == ACID_OUTPUT_FORMAT
    if not bucket_columns or not is_acid:
        raise TransactionalError("The table must be bucketed and stored using an ACID compliant format (such as ORC)")
    if table_type == TableType.EXTERNAL_TABLE:
        raise TransactionalError(f"{name} cannot be declared transactional because it's an external table")


def _check_unaltered(old_parameters: Mapping[str, str], new_parameters: Mapping[str, str]) -> None:
    kept, declared = (each.get(TRANSACTIONAL_PROPERTIES_KEY) for each in (old_parameters, new_parameters))
    if declared is not None and (kept is None or declared.lower() != kept.lower()):
        raise TransactionalError(
            "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"
        )


def _transactional(parameters: Mapping[str, str]) -> str | None:
    return next((value for key, value in parameters.items() if key.lower() == TRANSACTIONAL_KEY), None)


def _without_transactional(parameters: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key.lower() != TRANSACTIONAL_KEY}


def _checked_properties(parameters: dict[str, str]) -> dict[str, str]:
    declared = parameters.get(TRANSACTIONAL_PROPERTIES_KEY)
    if declared is None:
        return parameters
    if declared.lower() not in _TRANSACTIONAL_PROPERTIES:
        raise TransactionalError(
            "Invalid transactional properties specified for the table with the error"
            f" unknown value {declared} for transactional_properties"
        )
    return {**parameters, TRANSACTIONAL_PROPERTIES_KEY: declared.lower()}


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() == "true"
