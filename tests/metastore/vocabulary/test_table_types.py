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
    is_transactional,
    is_view,
    parse_table_type,
    shown_table_type,
    skips_trash,
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


def test_purging_and_views() -> None:
    assert skips_trash({"auto.purge": "TRUE"})
    assert not skips_trash({})
    assert is_view("VIRTUAL_VIEW")
    assert not is_view("MATERIALIZED_VIEW")


def created(parameters: dict[str, str], **changes: object) -> dict[str, str]:
    facts = {"table_type": "MANAGED_TABLE", "bucket_columns": ["id"], "input_format": ACID_INPUT_FORMAT} | changes
    return created_parameters(
        "sales.orders",
        facts["table_type"],  # type: ignore[arg-type]
        parameters,
        bucket_columns=facts["bucket_columns"],  # type: ignore[arg-type]
        input_format=facts["input_format"],  # type: ignore[arg-type]
        output_format=ACID_OUTPUT_FORMAT,
    )


def altered(old: dict[str, str], new: dict[str, str], bucket_columns: tuple[str, ...] = ("id",)) -> dict[str, str]:
    return altered_parameters(
        "sales.orders",
        "MANAGED_TABLE",
        old,
        new,
        bucket_columns=bucket_columns,
        input_format=ACID_INPUT_FORMAT,
        output_format=ACID_OUTPUT_FORMAT,
    )


TRANSACTIONAL = {"transactional": "true"}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"a": "b"}, {"a": "b"}),
        ({"transactional": "false", "a": "b"}, {"a": "b"}),
        ({"TRANSACTIONAL": "False"}, {}),
        ({"Transactional": "TRUE"}, TRANSACTIONAL),
        (
            TRANSACTIONAL | {"transactional_properties": "DEFAULT"},
            TRANSACTIONAL | {"transactional_properties": "default"},
        ),
    ],
)
def test_the_transactional_parameter_is_spelled_uniformly(given: dict[str, str], stored: dict[str, str]) -> None:
    assert created(given) == stored
    assert is_transactional(given) is is_transactional(stored)


@pytest.mark.parametrize(
    ("parameters", "changes", "message"),
    [
        ({"transactional": "yes"}, {}, "'transactional' property of TBLPROPERTIES may only have value 'true'"),
        (
            TRANSACTIONAL,
            {"bucket_columns": []},
            "The table must be bucketed and stored using an ACID compliant format (such as ORC)",
        ),
        (
            TRANSACTIONAL,
            {"input_format": "org.apache.hadoop.mapred.TextInputFormat"},
            "The table must be bucketed and stored using an ACID compliant format (such as ORC)",
        ),
        (
            TRANSACTIONAL,
            {"table_type": "EXTERNAL_TABLE"},
            "sales.orders cannot be declared transactional because it's an external table",
        ),
        (
            TRANSACTIONAL | {"transactional_properties": "odd"},
            {},
            "Invalid transactional properties specified for the table with the error"
            " unknown value odd for transactional_properties",
        ),
    ],
)
def test_tables_that_cannot_be_transactional_are_refused(
    parameters: dict[str, str], changes: dict[str, object], message: str
) -> None:
    with pytest.raises(TransactionalError) as refused:
        created(parameters, **changes)
    assert str(refused.value) == message


def test_a_table_can_become_and_stay_transactional() -> None:
    assert altered({}, {"transactional": "True"}) == TRANSACTIONAL
    assert altered(TRANSACTIONAL, TRANSACTIONAL | {"a": "b"}) == TRANSACTIONAL | {"a": "b"}
    with_properties = TRANSACTIONAL | {"transactional_properties": "default"}
    assert altered(with_properties, TRANSACTIONAL | {"transactional_properties": "Default"}) == with_properties
    assert altered(with_properties, TRANSACTIONAL) == TRANSACTIONAL
    assert altered({"a": "b"}, {"a": "c"}) == {"a": "c"}
    assert altered({}, {"transactional_properties": "Default"}) == {"transactional_properties": "default"}


@pytest.mark.parametrize(
    ("old", "new", "bucket_columns", "message"),
    [
        (TRANSACTIONAL, {}, ("id",), "TBLPROPERTIES with 'transactional'='true' cannot be unset"),
        (
            TRANSACTIONAL,
            {"transactional": "false"},
            ("id",),
            "TBLPROPERTIES with 'transactional'='true' cannot be unset",
        ),
        ({}, {"transactional": "false"}, ("id",), "TBLPROPERTIES with 'transactional'='true' cannot be unset"),
        ({}, {"TRANSACTIONAL": "maybe"}, ("id",), "TBLPROPERTIES with 'transactional'='true' cannot be unset"),
        ({}, TRANSACTIONAL, (), "The table must be bucketed and stored using an ACID compliant format (such as ORC)"),
        (
            TRANSACTIONAL,
            TRANSACTIONAL,
            (),
            "The table must be bucketed and stored using an ACID compliant format (such as ORC)",
        ),
        (
            {},
            {"transactional_properties": "odd"},
            ("id",),
            "Invalid transactional properties specified for the table with the error"
            " unknown value odd for transactional_properties",
        ),
        (
            TRANSACTIONAL,
            TRANSACTIONAL | {"transactional_properties": "default"},
            ("id",),
            "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created",
        ),
        (
            TRANSACTIONAL | {"transactional_properties": "default"},
            TRANSACTIONAL | {"transactional_properties": "insert_only"},
            ("id",),
            "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created",
        ),
    ],
)
def test_changes_of_transactional_tables_are_limited(
    old: dict[str, str], new: dict[str, str], bucket_columns: tuple[str, ...], message: str
) -> None:
    with pytest.raises(TransactionalError) as refused:
        altered(old, new, bucket_columns)
    assert str(refused.value) == message
