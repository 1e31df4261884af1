import pytest

from hms_gateway.metastore.vocabulary.names import (
    InvalidName,
    check_database_name,
    check_function_name,
    check_table_name,
    check_type_name,
    display_name,
    is_default_database,
    normalize,
)


@pytest.mark.parametrize(
    ("given", "stored"),
    [("  DEFAULT ", "default"), ("T1", "t1"), ("\t\r\na\0", "a"), ("a b", "a b"), ("\u00a0a", "\u00a0a")],
)
def test_names_are_trimmed_as_java_trims_and_lower_cased(given: str, stored: str) -> None:
    assert normalize(given) == stored


@pytest.mark.parametrize("name", ["a", "A_1", "2024", "_"])
def test_letters_digits_and_underscore_make_a_name(name: str) -> None:
    check_database_name(name)
    check_table_name(name)
    check_function_name(name)
    check_type_name(name)


@pytest.mark.parametrize("name", ["", "a b", "a-b", "a.b", "é", "a\n", "a\0", "../a", "٣"])
def test_anything_else_is_refused_with_the_texts_of_its_kind(name: str) -> None:
    with pytest.raises(InvalidName) as refused:
        check_database_name(name)
    assert str(refused.value) == f"{name} is not a valid database name"
    for check in (check_function_name, check_table_name):
        with pytest.raises(InvalidName) as refused:
            check(name)
        assert str(refused.value) == f"{name} is not a valid object name"
    with pytest.raises(InvalidName, match=r"^Invalid type name$"):
        check_type_name(name)


def test_names_of_databases_and_tables_may_hold_hyphens_where_asked() -> None:
    for name in ("a-b", "-a", "2024-01-01"):
        check_database_name(name, allows_hyphen=True)
        check_table_name(name, allows_hyphen=True)
    for name in ("-", "a-b/c", "a-b.c", "a- b"):
        with pytest.raises(InvalidName, match="is not a valid database name"):
            check_database_name(name, allows_hyphen=True)
    with pytest.raises(InvalidName):
        check_table_name("a-b.c", allows_hyphen=True)


def test_only_a_table_name_may_hold_a_slash() -> None:
    check_table_name("a/b")
    with pytest.raises(InvalidName):
        check_function_name("a/b")
    with pytest.raises(InvalidName):
        check_database_name("a/b")


def test_default_database_is_recognised_in_any_spelling() -> None:
    assert is_default_database(" Default")
    assert not is_default_database("defaults")


def test_display_name_keeps_the_callers_spelling() -> None:
    assert display_name("Sales", "") == "Sales."
    assert display_name(None, "T") == "null.T"
