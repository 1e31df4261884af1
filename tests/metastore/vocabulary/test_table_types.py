import pytest

from hms_gateway.metastore.vocabulary.table_types import (
    ACID_INPUT_FORMAT,
    ACID_OUTPUT_FORMAT,
    TableType,
    TableTypeError,
    TransactionalError,
    altered_parameters,
    created_parameters,
    drop_deletes_data,
    is_external,
    is_insert_only,
    is_transactional,
    is_view,
    logged_format,
    parse_table_type,
    shown_table_type,
    stored_table_type,
)

EXTERNAL = {"EXTERNAL": "TRUE"}


@pytest.mark.parametrize("table_type", list(TableType))
def test_table_types_are_parsed_by_name(table_type: TableType) -> None:
    assert parse_table_type(table_type.value) is table_type


@pytest.mark.parametrize("text", ["", "managed_table", "TABLE"])
def test_other_table_types_are_refused_as_java_refuses_them(text: str) -> None:
    with pytest.raises(TableTypeError) as refused:
        parse_table_type(text)
    assert str(refused.value) == (
        f"java.lang.IllegalArgumentException: No enum constant org.apache.hadoop.hive.metastore.TableType.{text}"
    )


def test_no_table_type_is_refused() -> None:
    with pytest.raises(TableTypeError, match=r"^java\.lang\.NullPointerException: Name is null$"):
        parse_table_type(None)


@pytest.mark.parametrize(
    ("given", "parameters", "stored"),
    [
        ("MANAGED_TABLE", {}, "MANAGED_TABLE"),
        ("MANAGED_TABLE", EXTERNAL, "EXTERNAL_TABLE"),
        ("MANAGED_TABLE", {"EXTERNAL": "true"}, "MANAGED_TABLE"),
        ("EXTERNAL_TABLE", EXTERNAL, "EXTERNAL_TABLE"),
        ("EXTERNAL_TABLE", {}, "MANAGED_TABLE"),
        ("EXTERNAL_TABLE", {"EXTERNAL": "true"}, "MANAGED_TABLE"),
        ("VIRTUAL_VIEW", EXTERNAL, "VIRTUAL_VIEW"),
        ("ODD", {}, "ODD"),
        (None, EXTERNAL, None),
    ],
)
def test_table_types_are_normalised_on_write(given: str | None, parameters: dict[str, str], stored: str | None) -> None:
    assert stored_table_type(given, parameters) == stored


@pytest.mark.parametrize(
    ("stored", "parameters", "view_text", "shown"),
    [
        ("ODD", EXTERNAL, "select 1", "ODD"),
        (None, EXTERNAL, "select 1", "VIRTUAL_VIEW"),
        (None, EXTERNAL, None, "EXTERNAL_TABLE"),
        (None, {}, None, "MANAGED_TABLE"),
    ],
)
def test_missing_table_types_are_guessed_on_read(
    stored: str | None, parameters: dict[str, str], view_text: str | None, shown: str
) -> None:
    assert shown_table_type(stored, parameters, view_text) == shown


@pytest.mark.parametrize(
    ("parameters", "external", "deletes"),
    [
        ({}, False, True),
        (EXTERNAL, True, False),
        ({"EXTERNAL": "true"}, True, False),
        ({"EXTERNAL": "FALSE"}, False, True),
        ({"EXTERNAL": "TRUE", "external.table.purge": "true"}, True, True),
    ],
)
def test_only_the_parameter_decides_whose_data_a_drop_deletes(
    parameters: dict[str, str], external: bool, deletes: bool
) -> None:
    assert is_external(parameters) is external
    assert drop_deletes_data(parameters) is deletes


def test_views() -> None:
    assert is_view("VIRTUAL_VIEW")
    assert not is_view("MATERIALIZED_VIEW")


TEXT = "org.apache.hadoop.mapred.TextInputFormat"
NOT_ACID = "The table must be stored using an ACID compliant format (such as ORC): sales.orders"
NOT_UNSET = "TBLPROPERTIES with 'transactional'='true' cannot be unset: sales.orders"
UNALTERED = "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"
IS_EXTERNAL = "sales.orders cannot be declared transactional because it's an external table"
IS_SORTED = "Table sales.orders cannot support full ACID functionality since it is sorted."
UNKNOWN = (
    "Invalid transactional properties specified for sales.orders with the error"
    " unknown value {} for transactional_properties"
)


def created(parameters: dict[str, str], input_format: str = ACID_INPUT_FORMAT, *sort_columns: str) -> dict[str, str]:
    return created_parameters(
        "sales.orders",
        parameters,
        sort_columns=sort_columns,
        input_format=input_format,
        output_format=ACID_OUTPUT_FORMAT,
    )


def altered(
    old: dict[str, str], new: dict[str, str], input_format: str = ACID_INPUT_FORMAT, *sort_columns: str
) -> dict[str, str]:
    return altered_parameters(
        "sales.orders",
        old,
        new,
        sort_columns=sort_columns,
        input_format=input_format,
        output_format=ACID_OUTPUT_FORMAT,
    )


TRANSACTIONAL = {"transactional": "true"}
FULL = TRANSACTIONAL | {"transactional_properties": "default"}
INSERT_ONLY = TRANSACTIONAL | {"transactional_properties": "insert_only"}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"a": "b"}, {"a": "b"}),
        ({"transactional": "false", "a": "b"}, {"a": "b"}),
        ({"TRANSACTIONAL": "False"}, {}),
        ({"Transactional": "TRUE"}, FULL),
        (TRANSACTIONAL | {"transactional_properties": "DEFAULT"}, FULL),
        (TRANSACTIONAL | {"TRANSACTIONAL_properties": "Insert_Only"}, INSERT_ONLY),
        ({"transactional_properties": "Odd"}, {"transactional_properties": "Odd"}),
    ],
)
def test_the_transactional_parameters_are_spelled_uniformly(given: dict[str, str], stored: dict[str, str]) -> None:
    assert created(given) == stored
    assert is_transactional(given) is is_transactional(stored)


@pytest.mark.parametrize(
    ("parameters", "is_it"),
    [
        (INSERT_ONLY, True),
        ({"Transactional": "TRUE", "Transactional_Properties": "INSERT_ONLY"}, True),
        (FULL, False),
        (TRANSACTIONAL, False),
        ({"transactional_properties": "insert_only"}, False),
    ],
)
def test_insert_only_tables_are_transactional(parameters: dict[str, str], is_it: bool) -> None:
    assert is_insert_only(parameters) is is_it


def test_insert_only_tables_have_any_format_and_order() -> None:
    assert created(INSERT_ONLY, TEXT, "a") == INSERT_ONLY
    assert altered({}, INSERT_ONLY, TEXT, "a") == INSERT_ONLY


@pytest.mark.parametrize(
    ("parameters", "where", "message"),
    [
        (
            {"transactional": "yes"},
            (),
            "'transactional' property of TBLPROPERTIES may only have value 'true': sales.orders",
        ),
        (TRANSACTIONAL, (TEXT,), NOT_ACID),
        (TRANSACTIONAL | {"transactional_properties": "odd"}, (TEXT,), NOT_ACID),
        (TRANSACTIONAL, (ACID_INPUT_FORMAT, "a"), IS_SORTED),
        (TRANSACTIONAL | {"EXTERNAL": "TRUE"}, (), IS_EXTERNAL),
        (INSERT_ONLY | {"EXTERNAL": "true"}, (TEXT,), IS_EXTERNAL),
        (TRANSACTIONAL | {"transactional_properties": "Odd"}, (), UNKNOWN.format("odd")),
        (TRANSACTIONAL | {"transactional_properties": "legacy"}, (), UNKNOWN.format("legacy")),
        (TRANSACTIONAL | {"transactional_properties": ""}, (), UNKNOWN.format("")),
    ],
)
def test_tables_that_cannot_be_transactional_are_refused(
    parameters: dict[str, str], where: tuple[str, ...], message: str
) -> None:
    with pytest.raises(TransactionalError) as refused:
        created(parameters, *where)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("old", "new", "where", "stored"),
    [
        ({}, {"transactional": "True"}, (), FULL),
        ({}, INSERT_ONLY, (TEXT,), INSERT_ONLY),
        ({}, {"transactional": "false", "a": "b"}, (), {"a": "b"}),
        ({"a": "b"}, {"a": "c"}, (), {"a": "c"}),
        ({}, {"transactional_properties": "Default"}, (), {"transactional_properties": "default"}),
        (TRANSACTIONAL, TRANSACTIONAL | {"a": "b"}, (), TRANSACTIONAL | {"a": "b"}),
        (FULL, TRANSACTIONAL | {"transactional_properties": "Default"}, (TEXT,), FULL),
        (FULL, {"TRANSACTIONAL": "True"}, (), TRANSACTIONAL),
        (FULL, FULL | {"EXTERNAL": "TRUE"}, (), FULL | {"EXTERNAL": "TRUE"}),
        (INSERT_ONLY, INSERT_ONLY | {"a": "b"}, (TEXT, "a"), INSERT_ONLY | {"a": "b"}),
        (INSERT_ONLY, FULL, (), FULL),
        (INSERT_ONLY, TRANSACTIONAL, (), TRANSACTIONAL),
        (INSERT_ONLY, {"transactional": "false"}, (TEXT,), {}),
        (INSERT_ONLY, {}, (TEXT,), {}),
    ],
)
def test_a_table_can_become_and_stay_transactional(
    old: dict[str, str], new: dict[str, str], where: tuple[str, ...], stored: dict[str, str]
) -> None:
    assert altered(old, new, *where) == stored


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        (TRANSACTIONAL, {}, (), NOT_UNSET),
        (FULL, {"transactional": "false"}, (), NOT_UNSET),
        (FULL, {"transactional_properties": "default"}, (), NOT_UNSET),
        ({}, {"TRANSACTIONAL": "maybe"}, (), NOT_UNSET),
        (INSERT_ONLY, {"transactional": "maybe"}, (), NOT_UNSET),
        ({}, TRANSACTIONAL, (TEXT,), NOT_ACID),
        (INSERT_ONLY, FULL, (TEXT,), NOT_ACID),
        (INSERT_ONLY, TRANSACTIONAL, (TEXT,), NOT_ACID),
        ({}, TRANSACTIONAL, (ACID_INPUT_FORMAT, "a"), IS_SORTED),
        (FULL, FULL, (ACID_INPUT_FORMAT, "a"), IS_SORTED),
        ({}, INSERT_ONLY | {"EXTERNAL": "TRUE"}, (TEXT,), IS_EXTERNAL),
        ({}, {"transactional_properties": "odd"}, (), UNKNOWN.format("odd")),
        (INSERT_ONLY, TRANSACTIONAL | {"transactional_properties": "odd"}, (), UNKNOWN.format("odd")),
        (TRANSACTIONAL, FULL, (), UNALTERED),
        (FULL, INSERT_ONLY, (), UNALTERED),
    ],
)
def test_changes_of_transactional_tables_are_limited(
    old: dict[str, str], new: dict[str, str], where: tuple[str, ...], message: str
) -> None:
    with pytest.raises(TransactionalError) as refused:
        altered(old, new, *where)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("parameters", "input_format", "found"),
    [
        ({"spark.sql.sources.provider": "delta"}, "org.apache.hadoop.mapred.SequenceFileInputFormat", "delta"),
        ({"spark.sql.sources.provider": "org.apache.iceberg.spark.source.IcebergSource"}, None, "iceberg"),
        ({"table_type": "ICEBERG"}, None, "iceberg"),
        ({"metadata_location": "file:/t/metadata/v1.metadata.json"}, None, "iceberg"),
        ({"table_type": "Lance"}, "org.apache.hadoop.mapred.TextInputFormat", "lance"),
        ({"storage_handler": "io.delta.hive.DeltaStorageHandler"}, None, "delta"),
        ({"storage_handler": "org.apache.paimon.hive.PaimonStorageHandler"}, None, "paimon"),
        ({}, "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat", "hudi"),
        ({}, "com.uber.hoodie.hadoop.HoodieInputFormat", "hudi"),
        ({"storage_handler": "org.example.balance.Handler"}, "org.apache.hadoop.mapred.TextInputFormat", ""),
        ({"spark.sql.sources.provider": "parquet"}, None, ""),
    ],
)
def test_formats_with_a_log_are_known_by_the_marks_of_their_engines(
    parameters: dict[str, str], input_format: str | None, found: str
) -> None:
    assert logged_format(parameters, input_format) == found
