"""The generated files are up to date, and what they are made from is consistent."""

from app.methods_doc import (
    ONLY_2_3,
    SINCE_3_1,
    SINCE_4,
    answering_classes,
    dialects_of,
    exception_names,
    methods_path,
    methods_text,
    signature,
)
from app.structs import IDL, METHODS
from app.structs.stubs import stub_path, stub_text


def test_the_table_of_methods_is_up_to_date():
    assert methods_path().read_text(encoding="utf-8") == methods_text(answering_classes()), "run: python -m app methods"


def test_the_type_stubs_are_up_to_date():
    assert stub_path().read_text(encoding="utf-8") == stub_text(IDL), "run: python -m app stubs"


def test_every_method_is_answered():
    assert answering_classes().keys() == METHODS.keys()


def test_the_lists_of_newer_methods_name_methods_once():
    names = [*ONLY_2_3, *SINCE_3_1, *SINCE_4]
    assert len(names) == len(set(names))
    assert set(names) <= METHODS.keys()


def test_dialects():
    expected = {
        "get_table": "2.3, 3.1, 4",
        "get_indexes": "2.3",
        "get_catalogs": "3.1, 4",
        "get_database_req": "4",
        "grab_lease": "lease",
        "list_blocking_locks": "lock",
        "getStatus": "2.3, 3.1, 4",
    }
    assert {name: dialects_of(METHODS[name]) for name in expected} == expected


def test_the_base_is_the_interface_of_the_protocol_document():
    """153 methods of the document and the 13 it inherits."""
    base = [method for method in METHODS.values() if dialects_of(method).startswith("2.3")]
    assert len(base) == 153 + len(IDL.services["FacebookService"].methods)


def test_signature_and_exceptions():
    definition = METHODS["get_partition_names"].definition
    arguments = "string db_name, string tbl_name, i16 max_parts = -1"
    assert signature(definition) == f"list<string> get_partition_names({arguments})"
    assert exception_names(definition) == ["MetaException"]
    assert signature(METHODS["shutdown"].definition) == "oneway void shutdown()"
