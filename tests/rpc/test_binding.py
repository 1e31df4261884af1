import pytest

from hms_gateway.rpc.binding import BindingError, bind
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import METHODS

KNOWN = {name: METHODS[name] for name in ("get_table", "get_partitions", "shutdown")}
CALL = Call("alice")


class Tables:
    def get_table(self, call, dbname, tbl_name):
        return (call.principal, dbname, tbl_name)

    def _not_public(self):
        raise AssertionError


class Partitions:
    def get_partitions(self, call, db_name, tbl_name, max_parts):
        return max_parts


class Service:
    def shutdown(self, call):
        return None


def called(bound, arguments):
    return bound.answer(CALL, arguments)


def test_a_method_is_called_with_its_arguments_by_name():
    bound = bind([Tables(), Partitions(), Service()], KNOWN)
    assert called(bound["get_table"], METHODS["get_table"].arguments("d", "t")) == ("alice", "d", "t")


def test_an_argument_that_was_not_sent_has_the_default_of_the_idl():
    bound = bind([Tables(), Partitions(), Service()], KNOWN)
    assert called(bound["get_partitions"], METHODS["get_partitions"].arguments("d", "t")) == -1
    assert called(bound["get_partitions"], METHODS["get_partitions"].arguments("d", "t", 5)) == 5
    assert called(bound["get_table"], METHODS["get_table"].arguments()) == ("alice", None, None)


def test_every_disagreement_is_listed():
    class Wrong:
        def get_table(self, call, db, table):
            raise AssertionError

        def make_coffee(self, call):
            raise AssertionError

        def shutdown(self, call):
            raise AssertionError

    with pytest.raises(BindingError) as caught:
        bind([Wrong(), Service()], KNOWN)
    text = str(caught.value)
    assert "get_table: parameters are (call, db, table), the IDL has (call, dbname, tbl_name)" in text
    assert "make_coffee: not a method of the IDL" in text
    assert "shutdown: two handlers" in text
    assert "get_partitions: no handler" in text


def test_two_handlers_of_one_method_are_a_disagreement():
    with pytest.raises(BindingError, match="get_table: two handlers"):
        bind([Tables(), Tables(), Partitions(), Service()], KNOWN)
