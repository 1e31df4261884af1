"""The generated files are up to date, and what they are made from is consistent."""

import pytest

from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.idl.model import exception_names, signature
from hms_gateway.rpc.structs import IDL, METHODS
from tools.method_proofs import proofs
from tools.methods_doc import (
    answering_classes,
    methods_path,
    methods_text,
    named_proofs,
    source_root,
)
from tools.stubs import stub_path, stub_text


def test_the_table_of_methods_is_up_to_date():
    text = methods_path().read_text(encoding="utf-8")
    assert text == methods_text(answering_classes(), named_proofs(text)), "run: python -m tools methods"


@pytest.mark.slow
def test_every_method_has_a_test_that_calls_it():
    """The document may name any of them, so that it does not change with every new test."""
    there_are = proofs(source_root(), METHODS)
    assert [name for name, tests in there_are.items() if not tests] == []
    named = named_proofs(methods_path().read_text(encoding="utf-8"))
    assert named.keys() == METHODS.keys()
    gone = {name: test for name, test in named.items() if test not in there_are[name]}
    assert gone == {}, "run: python -m tools methods"


def test_every_method_of_the_protocol_and_of_a_known_client_is_there():
    """`protocol_methods.txt` has the names in the protocol document, `schema/methods.txt` what clients call."""
    protocol = (source_root() / "tests" / "conformance" / "protocol_methods.txt").read_text().split()
    assert len(protocol) == 153 + len(IDL.services["FacebookService"].methods)
    assert {*protocol} - answering_classes().keys() == set()
    assert set(protocol) == {
        name for name, method in METHODS.items() if method_facts()[method.name].known_to.startswith("2.3")
    }


def test_the_type_stubs_are_up_to_date():
    assert stub_path().read_text(encoding="utf-8") == stub_text(IDL), "run: python -m tools stubs"


def test_every_method_is_answered():
    assert answering_classes().keys() == METHODS.keys()


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
    assert {name: method_facts()[name].known_to for name in expected} == expected


def test_the_base_is_the_interface_of_the_protocol_document():
    """153 methods of the document and the 13 it inherits."""
    base = [method for method in METHODS.values() if method_facts()[method.name].known_to.startswith("2.3")]
    assert len(base) == 153 + len(IDL.services["FacebookService"].methods)


def test_signature_and_exceptions():
    definition = METHODS["get_partition_names"].definition
    arguments = "string db_name, string tbl_name, i16 max_parts = -1"
    assert signature(definition) == f"list<string> get_partition_names({arguments})"
    assert exception_names(definition) == ["MetaException"]
    assert signature(METHODS["shutdown"].definition) == "oneway void shutdown()"
