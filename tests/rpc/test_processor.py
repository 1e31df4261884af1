import gc
import json
import logging
import weakref
from contextlib import contextmanager, nullcontext

import pytest

from hms_gateway.rpc.call import Call, Dialect, Unavailable, Uncacheable
from hms_gateway.rpc.processor import Processor, take_turns, whole_or_chunks
from hms_gateway.rpc.structs import (
    METHODS,
    GetTableResult,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Partition,
    Table,
)
from hms_gateway.rpc.wire import ApplicationError, MessageType, make_codecs
from hms_gateway.runtime.limits import Limits

TJSON = make_codecs(Limits()).tjson
BINARY = make_codecs(Limits()).binary


class Handlers:
    """Answers a few methods in every way there is."""

    def get_table(self, call, dbname, tbl_name):
        failures = {
            "missing": NoSuchObjectException("d.missing table not found"),
            "undeclared": InvalidObjectException("not in the throws clause"),
            "bug": ZeroDivisionError("secret detail"),
            "away": Unavailable("the database is away"),
            "disk": OSError("disk full"),
        }
        if tbl_name in failures:
            raise failures[tbl_name]
        return None if tbl_name == "null" else Table(tableName=tbl_name, dbName=dbname)

    def get_partitions(self, call, db_name, tbl_name, max_parts):
        return Rows(int(tbl_name))

    def get_partition_names(self, call, db_name, tbl_name, max_parts):
        raise NoSuchObjectException("gone")

    def get_all_token_identifiers(self, call):
        raise MetaException("never declared here")

    def shutdown(self, call):
        return None

    def get_table_req(self, call, req):
        return Uncacheable(GetTableResult(Table(req.tblName)))

    def drop_table(self, call, dbname, name, deleteData):
        return None


class Rows:
    """A list of so many empty partitions that is read while it is sent."""

    def __init__(self, count):
        self.count = count
        self.is_closed = False

    def __len__(self):
        return self.count

    def tjson_chunks(self):
        for _ in range(self.count - 1):
            yield b"{}"
        if self.count:
            yield b"{}"
        self.close()

    def struct_chunks(self):
        yield [Partition() for _ in range(self.count)]

    def close(self):
        self.is_closed = True


HANDLED = {
    "get_table",
    "get_table_req",
    "get_partitions",
    "get_partition_names",
    "get_all_token_identifiers",
    "shutdown",
    "drop_table",
}


def translate(error):
    return MetaException("no space") if isinstance(error, OSError) else error


PROCESSOR = Processor([Handlers()], translate, 1_000, answered=HANDLED)


def answer(body: str, dialect: Dialect = Dialect.HIVE_2_3):
    """The reply, decoded from JSON where it is whole."""
    reply = PROCESSOR.process(TJSON, TJSON.read_message(body.encode()), Call("alice", dialect=dialect))
    return reply, json.loads(reply.payload) if isinstance(reply.payload, bytes) else reply.payload


def get_table(name: str) -> str:
    return f'[1,"get_table",1,7,{{"1":{{"str":"d"}},"2":{{"str":"{name}"}}}}]'


def test_a_result_is_field_zero():
    reply, payload = answer(get_table("t"))
    assert payload == {"0": {"rec": {"1": {"str": "t"}, "2": {"str": "d"}}}}
    assert (reply.type, reply.outcome) == (MessageType.REPLY, "ok")
    assert reply.arguments.tbl_name == "t"


def test_calls_pass_the_steps_that_concern_their_method_in_their_order():
    passed = []

    class Noting:
        def __init__(self, name, methods):
            self.name, self.methods = name, methods

        def concerns(self, method, facts):
            return method.name in self.methods

        def answer(self, bound, call, arguments, go_on):
            passed.append((self.name, bound.method.name))
            return go_on()

    steps = [Noting("first", HANDLED), Noting("second", {"drop_table"})]
    processor = Processor([Handlers()], answered=HANDLED, steps=steps)
    for body in (get_table("t"), '[1,"drop_table",1,1,{}]'):
        assert processor.process(TJSON, TJSON.read_message(body.encode()), Call("alice")).outcome == "ok"
    assert passed == [("first", "get_table"), ("first", "drop_table"), ("second", "drop_table")]


def test_void_and_null_results_are_empty():
    assert answer('[1,"drop_table",1,1,{}]')[1] == {}
    assert answer(get_table("null"))[1] == {}


def test_a_declared_exception_is_a_reply_in_its_slot():
    reply, payload = answer(get_table("missing"))
    assert payload == {"2": {"rec": {"1": {"str": "d.missing table not found"}}}}
    assert (reply.type, reply.outcome) == (MessageType.REPLY, "NoSuchObjectException")


def test_the_slot_may_depend_on_the_dialect():
    call = '[1,"get_partition_names",1,1,{"1":{"str":"d"},"2":{"str":"t"}}]'
    gone = {"1": {"rec": {"1": {"str": "gone"}}}}
    older, payload = answer(call)
    assert (payload, older.outcome) == (gone, "NoSuchObjectException")  # into MetaException, the only one declared
    assert answer(call, Dialect.HIVE_4)[1] == gone
    assert [field.type.name for field in METHODS["get_partition_names"].definition.throws] == ["MetaException"]


def test_an_exception_that_is_not_declared_becomes_a_meta_exception():
    assert answer(get_table("undeclared"))[1] == {"1": {"rec": {"1": {"str": "not in the throws clause"}}}}
    assert answer(get_table("disk"))[1] == {"1": {"rec": {"1": {"str": "no space"}}}}


def test_without_a_slot_it_is_an_application_exception():
    reply, payload = answer('[1,"get_all_token_identifiers",1,1,{}]')
    assert reply.type is MessageType.EXCEPTION
    assert payload == {
        "1": {"str": "get_all_token_identifiers: never declared here"},
        "2": {"i32": 7},
    }


def test_a_bug_is_an_internal_error_without_details(caplog):
    reply, payload = answer(get_table("bug"))
    assert payload == {"1": {"str": "Internal error processing get_table"}, "2": {"i32": 6}}
    assert reply.outcome == "INTERNAL_ERROR"
    assert "secret detail" in caplog.text


def test_unavailability_is_for_the_edge_to_answer():
    with pytest.raises(Unavailable, match="the database is away"):
        answer(get_table("away"))


@pytest.mark.parametrize("name", ["no_such_method", "get_type"])
def test_an_unknown_method_and_one_without_handler_answer_alike(name):
    reply, payload = answer(f'[1,"{name}",1,1,{{}}]')
    assert payload == {"1": {"str": f"Invalid method name: '{name}'"}, "2": {"i32": 1}}
    assert (reply.type, reply.outcome) == (MessageType.EXCEPTION, "UNKNOWN_METHOD")


def test_a_reply_sent_to_the_server_is_refused():
    assert answer('[1,"get_table",2,1,{}]')[1]["2"] == {"i32": 2}


def test_unreadable_arguments_are_a_protocol_error():
    reply, payload = answer('[1,"get_table",1,1,{"1":{"str":"d"},nonsense}]')
    assert payload["2"] == {"i32": 7}
    assert reply.outcome == "PROTOCOL_ERROR"
    assert reply.arguments is None


def test_nothing_is_answered_to_a_oneway_call():
    assert answer('[1,"shutdown",4,1,{}]')[0].payload is None
    assert answer('[1,"shutdown",1,1,{}]')[0].payload is None
    assert answer('[1,"get_table",4,1,{"2":{"str":"missing"}}]')[0].payload is None


def test_a_short_list_is_sent_whole_and_a_long_one_in_chunks():
    call = '[1,"get_partitions",1,1,{"1":{"str":"d"},"2":{"str":"%d"}}]'
    assert answer(call % 2)[1] == {"0": {"lst": ["rec", 2, {}, {}]}}
    _, chunks = answer(call % 2_000)
    assert json.loads(b"".join(chunks)) == {"0": {"lst": ["rec", 2_000, *[{}] * 2_000]}}


def test_binary_calls_get_binary_replies():
    args = METHODS["get_table"].arguments("d", "t")
    before, after = BINARY.envelope("get_table", MessageType.CALL, 7)
    message = BINARY.read_message(before + BINARY.encode(args) + after)
    reply = PROCESSOR.process(BINARY, message, Call("alice"))
    assert BINARY.decode(METHODS["get_table"].result, reply.payload).success == Table(tableName="t", dbName="d")


def test_closing_a_reply_that_was_read_ahead_closes_its_source():
    closed = []

    def source():
        try:
            while True:
                yield b"x" * 10
        finally:
            closed.append(True)

    chunks = whole_or_chunks(source(), 25)
    assert [next(chunks) for _ in range(4)] == [b"x" * 10] * 4
    chunks.close()
    assert closed == [True]


def test_what_is_read_ahead_of_a_long_reply_is_made_in_turn():
    taken = []

    @contextmanager
    def turn():
        taken.append(len(made))
        yield

    made = []

    def source():
        for number in range(5):
            made.append(number)
            yield b"x" * 10

    take_turns(turn)
    try:
        assert whole_or_chunks(source(), 1_000) == b"x" * 50
    finally:
        take_turns(nullcontext)
    # Not those that short replies have as well.
    assert taken == [4, 5]


@pytest.mark.parametrize("codec", [TJSON, BINARY])
@pytest.mark.parametrize(
    ("method", "values"), [("get_table", ("d", "missing " + "n" * 50_000)), ("get_partitions", ("d", "n" * 50_000))]
)
def test_texts_of_errors_are_cut(codec, method, values):
    class Repeating(Handlers):
        def get_table(self, call, dbname, tbl_name):
            raise NoSuchObjectException(tbl_name)

        def get_partitions(self, call, db_name, tbl_name, max_parts):
            raise ApplicationError(tbl_name)

    processor = Processor([Repeating()], answered=HANDLED, limits=Limits(error_text_characters_max=1_000))
    before, after = codec.envelope(method, MessageType.CALL, 1)
    body = before + codec.encode(METHODS[method].arguments(*values)) + after
    reply = processor.process(codec, codec.read_message(body), Call("alice"))
    assert 1_000 < len(reply.payload) < 1_200
    assert f"… ({len(values[1]) - 1_000} more characters)".encode() in reply.payload


def test_a_name_of_a_method_is_cut_as_well():
    reply = PROCESSOR.process(TJSON, TJSON.read_message(b'[1,"%s",1,7,{}]' % (b"n" * 50_000)), Call("alice"))
    assert reply.outcome == "UNKNOWN_METHOD"
    assert len(reply.payload) < 11_000


def test_an_uncacheable_answer_is_sent_without_what_it_could_be_kept_by():
    reply, sent = answer('[1,"get_table_req",1,7,{"1":{"rec":{"1":{"str":"d"},"2":{"str":"t"}}}}]')
    assert (reply.outcome, reply.arguments) == ("ok", None)
    assert sent == {"0": {"rec": {"1": {"rec": {"1": {"str": "t"}}}}}}


@pytest.mark.slow
@pytest.mark.parametrize("table", ["missing", "undeclared", "disk"])
@pytest.mark.parametrize("raised", [MetaException, TypeError])
def test_an_answered_exception_frees_what_its_call_held(table, raised, monkeypatch):
    # pytest keeps what is logged.
    monkeypatch.setattr(logging.getLogger("hms_gateway.rpc.processor"), "disabled", True)
    kept = []

    class Raising(Handlers):
        def get_table(self, call, dbname, tbl_name):
            local = Rows(0)
            kept.append(weakref.ref(local))
            try:
                super().get_table(call, dbname, tbl_name)
            except OSError as error:
                failure = error  # as a future does
                raise raised("the disk is full") from failure

    processor = Processor([Raising()], translate, answered=HANDLED)
    gc.disable()
    try:
        reply = processor.process(TJSON, TJSON.read_message(get_table(table).encode()), Call("alice"))
        assert reply.outcome != "ok"
        assert kept[0]() is None
    finally:
        gc.enable()
