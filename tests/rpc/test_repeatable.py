import pickle
import threading

import pytest
from sqlalchemy import update

from hms_gateway.catalog.tokens import TokenRows
from hms_gateway.composition.main import translated
from hms_gateway.metastore.ports.store import DuplicateKey, FileSystemError, OutcomeUnknown, StoreUnavailable
from hms_gateway.rpc.call import Call, Dialect, Unavailable
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.processor import Processor
from hms_gateway.rpc.repeatable import KeyReused, RepeatableProcessor
from hms_gateway.rpc.structs import METHODS, AlreadyExistsException, Database, MetaException, TxnAbortedException
from hms_gateway.rpc.wire import MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.schema.catalog import OUTCOMES
from hms_gateway.storage.writing.store import open_store
from hms_gateway.txn.rules.names import CommittedRefusal
from tests.support.manual_clock import ManualClock

pytestmark = pytest.mark.slow

CODECS = make_codecs(Limits())
CLOCK = ManualClock()


class Databases:
    """Two changes and a read over a real store, and what went wrong in between."""

    def __init__(self, store):
        self.store = store
        self.calls = 0
        self.add_refusal = self.drop_failure = self.read_failure = None
        self.fails_afterwards = False

    def create_database(self, call, database):
        self.calls += 1
        try:
            self.store.write(lambda tx: tx.insert_database(database))
        except DuplicateKey as error:
            raise AlreadyExistsException(f"Database {database.name} already exists") from error
        if self.fails_afterwards:
            raise MetaException("made, but")

    def add_master_key(self, call, key):
        self.calls += 1
        return self.store.write(lambda tx: TokenRows(tx).insert_master_key(key))

    def add_token(self, call, token_identifier, delegation_token):
        """Its answer follows from what its unit of work gives; some of which is a refusal that is committed."""
        self.calls += 1

        def work(tx):
            if self.add_refusal is not None:
                raise self.add_refusal
            was_new = TokenRows(tx).insert_token(token_identifier, delegation_token)
            return was_new if was_new else CommittedRefusal(TxnAbortedException("it was there"))

        outcome = self.store.write(work)
        if isinstance(outcome, CommittedRefusal):
            raise outcome.reason
        return outcome

    def get_all_databases(self, call):
        self.calls += 1
        if self.read_failure is not None:
            raise self.read_failure
        return self.store.read(lambda snapshot: snapshot.database_names())

    def drop_role(self, call, role_name):
        raise self.drop_failure or MetaException("refused")


@pytest.fixture
def world(tmp_path):
    store = open_store(f"sqlite:///{tmp_path / 'metastore.db'}", CLOCK, Limits())
    handlers = Databases(store)
    handled = {"create_database", "add_master_key", "add_token", "get_all_databases", "drop_role"}
    processor = Processor([handlers], translated, answered=handled)
    repeatable = RepeatableProcessor(processor, store)
    # Of the others the answer is kept, whatever the table says of them.
    repeatable._facts = {"add_token": method_facts()["add_token"]}
    yield handlers, repeatable
    store.close()


def send(processor, method, *values, key=None, principal="ann", codec=CODECS.tjson, dialect=Dialect.HIVE_2_3, seqid=1):
    before, after = codec.envelope(method, MessageType.CALL, seqid)
    message = codec.read_message(before + codec.encode(METHODS[method].arguments(*values)) + after)
    return processor.process(codec, message, Call(principal, key=key, dialect=dialect))


def test_a_repeated_call_is_told_its_first_outcome_and_changes_nothing(world):
    handlers, processor = world
    first = send(processor, "create_database", Database("sales", None, "file:/x"), key="k1")
    again = send(processor, "create_database", Database("sales", None, "file:/x"), key="k1")
    assert (first.payload, first.outcome) == (b"{}", "ok")
    assert (again.payload, again.outcome) == (b"{}", "replayed")
    assert handlers.calls == 1


def test_without_a_key_or_with_another_one_a_call_is_made_again(world):
    handlers, processor = world
    for key in (None, "k1", "k2"):
        reply = send(processor, "create_database", Database("sales", None, "file:/x"), key=key)
    assert reply.outcome == "AlreadyExistsException"
    assert handlers.calls == 3


def test_a_result_is_replayed_as_it_was(world):
    _, processor = world
    first = send(processor, "add_master_key", "secret", key="k1")
    again = send(processor, "add_master_key", "secret", key="k1")
    assert (again.payload, again.outcome) == (first.payload, "replayed")


@pytest.mark.parametrize(
    ("method", "values", "codec", "dialect"),
    [
        ("add_master_key", ["other"], CODECS.tjson, Dialect.HIVE_2_3),
        ("add_token", ["id", "secret"], CODECS.tjson, Dialect.HIVE_2_3),
        ("create_database", [Database("sales")], CODECS.tjson, Dialect.HIVE_2_3),
        ("get_all_databases", [], CODECS.tjson, Dialect.HIVE_2_3),
        # Who repeats a call sends the same bytes to the same path.
        ("add_master_key", ["secret"], CODECS.binary, Dialect.HIVE_2_3),
        ("add_master_key", ["secret"], CODECS.tjson, Dialect.HIVE_4),
    ],
)
def test_a_key_belongs_to_one_message(world, method, values, codec, dialect):
    handlers, processor = world
    first = send(processor, "add_master_key", "secret", key="k1")
    with pytest.raises(KeyReused, match=r"key was used for another message before \(add_master_key\)"):
        send(processor, method, *values, key="k1", codec=codec, dialect=dialect)
    assert handlers.calls == 1
    assert send(processor, "add_master_key", "secret", key="k1").payload == first.payload


def test_the_seqid_is_not_part_of_the_message(world):
    handlers, processor = world
    first = send(processor, "add_master_key", "secret", key="k1", seqid=1)
    assert send(processor, "add_master_key", "secret", key="k1", seqid=2).payload == first.payload
    assert handlers.calls == 1


def test_the_value_of_the_unit_of_work_is_enough_for_the_same_answer(world):
    handlers, processor = world
    handlers.store.complete = None
    first = send(processor, "add_token", "id", "secret", key="k1")
    again = send(processor, "add_token", "id", "secret", key="k1")
    assert (again.outcome, again.payload) == ("replayed", first.payload)


def test_a_refusal_that_was_committed_is_the_same_the_second_time(world):
    handlers, processor = world
    send(processor, "add_token", "id", "secret")
    first = send(processor, "add_token", "id", "secret", key="k1")
    assert first.outcome == "PROTOCOL_ERROR"
    handlers.store.write(lambda tx: TokenRows(tx).delete_token("id"))
    again = send(processor, "add_token", "id", "secret", key="k1")
    assert (again.outcome, again.payload) == ("replayed", first.payload)
    assert handlers.store.read(lambda snapshot: TokenRows(snapshot).identifiers()) == []


def test_a_call_that_failed_keeps_its_key(world):
    handlers, processor = world
    sales = Database("sales", None, "file:/x")
    send(processor, "create_database", sales)
    failed = send(processor, "create_database", sales, key="k1")
    assert failed.outcome == "AlreadyExistsException"
    handlers.store.write(lambda tx: tx.delete_database(tx.database("sales").database_id))
    again = send(processor, "create_database", sales, key="k1")
    assert (again.outcome, again.type, again.payload) == ("replayed", MessageType.REPLY, failed.payload)
    with pytest.raises(KeyReused):
        send(processor, "create_database", Database("hr", None, "file:/y"), key="k1")
    assert handlers.store.read(lambda snapshot: snapshot.database_names()) == []


def test_a_call_that_failed_before_its_change_keeps_its_key(world):
    _, processor = world
    failed = send(processor, "drop_role", "r", key="k1")
    assert failed.outcome == "MetaException"
    assert send(processor, "drop_role", "r", key="k1").payload == failed.payload
    with pytest.raises(KeyReused):
        send(processor, "drop_role", "s", key="k1")


def test_a_protocol_error_is_the_same_the_second_time(world):
    """The method declares no exception, so it is an application exception."""
    handlers, processor = world
    handlers.add_refusal = TxnAbortedException("not now")
    failed = send(processor, "add_token", "id", "secret", key="k1")
    assert (failed.type, failed.outcome) == (MessageType.EXCEPTION, "PROTOCOL_ERROR")
    handlers.add_refusal = None
    again = send(processor, "add_token", "id", "secret", key="k1")
    assert (again.type, again.outcome, again.payload) == (MessageType.EXCEPTION, "replayed", failed.payload)


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (OutcomeUnknown("lost"), "INTERNAL_ERROR"),
        (FileSystemError("disk full"), "MetaException"),
        (ZeroDivisionError(), "INTERNAL_ERROR"),
    ],
)
def test_failures_of_the_server_are_tried_again(world, failure, outcome):
    handlers, processor = world
    handlers.drop_failure = failure
    assert send(processor, "drop_role", "r", key="k1").outcome == outcome
    handlers.drop_failure = None
    assert send(processor, "drop_role", "r", key="k1").outcome == "MetaException"
    assert send(processor, "drop_role", "r", key="k1").outcome == "replayed"


def test_a_call_that_could_not_be_tried_is_tried_again(world):
    handlers, processor = world
    handlers.drop_failure = Unavailable("away")
    with pytest.raises(Unavailable):
        send(processor, "drop_role", "r", key="k1")
    handlers.drop_failure = None
    assert send(processor, "drop_role", "r", key="k1").outcome == "MetaException"


def test_a_failure_that_cannot_be_kept_is_not_answered(world):
    handlers, processor = world
    original = handlers.store.conclude_failed
    handlers.store.conclude_failed = lambda *_: (_ for _ in ()).throw(StoreUnavailable("gone"))
    with pytest.raises(Unavailable):
        send(processor, "drop_role", "r", key="k1")
    handlers.store.conclude_failed = original
    assert send(processor, "drop_role", "r", key="k1").outcome == "MetaException"


def test_a_failure_after_the_change_is_the_answer_the_second_time(world):
    handlers, processor = world
    handlers.fails_afterwards = True
    first = send(processor, "create_database", Database("sales", None, "file:/x"), key="k1")
    assert first.outcome == "MetaException"
    handlers.fails_afterwards = False
    again = send(processor, "create_database", Database("sales", None, "file:/x"), key="k1")
    assert (again.outcome, again.payload) == ("replayed", first.payload)
    assert handlers.store.read(lambda snapshot: snapshot.database_names()) == ["sales"]


def test_reads_that_fail_do_not_use_the_key(world):
    handlers, processor = world
    handlers.read_failure = MetaException("not now")
    assert send(processor, "get_all_databases", key="k1").outcome == "MetaException"
    handlers.read_failure = None
    assert send(processor, "get_all_databases", key="k1").outcome == "ok"
    assert send(processor, "create_database", Database("sales", None, "file:/x"), key="k1").outcome == "ok"


def test_outcomes_of_earlier_versions_are_for_the_same_method(world):
    handlers, processor = world
    first = send(processor, "add_master_key", "secret", key="k1")
    handlers.store.write(lambda tx: tx._connection.execute(update(OUTCOMES).values(message_hash=None)))
    assert send(processor, "add_master_key", "secret", key="k1").payload == first.payload
    with pytest.raises(KeyReused):
        send(processor, "create_database", Database("sales", None, "file:/x"), key="k1")
    with pytest.raises(KeyReused):
        send(processor, "add_master_key", "secret", key="k1", codec=CODECS.binary)


def test_values_that_earlier_versions_kept_are_not_used_and_the_change_is_not_made_again(world):
    handlers, processor = world
    first = send(processor, "add_token", "id", "secret", key="k1")
    old = b"p" + pickle.dumps(True)
    handlers.store.write(lambda tx: tx._connection.execute(update(OUTCOMES).values(payload=old)))
    handlers.store.write(lambda tx: TokenRows(tx).delete_token("id"))
    again = send(processor, "add_token", "id", "secret", key="k1")
    assert (again.outcome, again.payload) == ("replayed", first.payload)
    assert handlers.calls == 1
    assert handlers.store.read(lambda snapshot: TokenRows(snapshot).identifiers()) == []


def test_reads_are_answered_anew(world):
    _, processor = world
    assert send(processor, "get_all_databases", key="k1").payload == b'{"0":{"lst":["str",0]}}'
    send(processor, "create_database", Database("sales", None, "file:/x"))
    assert send(processor, "get_all_databases", key="k1").payload == b'{"0":{"lst":["str",1,"sales"]}}'


def test_keys_of_different_users_do_not_meet(world):
    handlers, processor = world
    send(processor, "create_database", Database("sales", None, "file:/x"), key="k1", principal="ann")
    reply = send(processor, "create_database", Database("hr", None, "file:/x"), key="k1", principal="bob")
    assert (reply.outcome, handlers.calls) == ("ok", 2)


@pytest.mark.parametrize("key", ["", "k" * 129])
def test_a_key_has_a_bounded_length(world, key):
    assert send(world[1], "get_all_databases", key=key).outcome == "PROTOCOL_ERROR"


def test_the_change_of_a_call_that_never_got_to_answer_is_known(world):
    """The process may end between the commit and the answer: only the fact is stored then."""
    handlers, processor = world
    original, handlers.store.complete = (
        handlers.store.complete,
        lambda *_: (_ for _ in ()).throw(StoreUnavailable("gone")),
    )
    send(processor, "add_master_key", "secret", key="k1")
    handlers.store.complete = original
    reply = send(processor, "add_master_key", "secret", key="k1")
    assert b"has taken effect" in reply.payload
    assert handlers.calls == 1


def test_two_at_once_make_one_change(world):
    handlers, processor = world
    start = threading.Barrier(8)
    outcomes = []

    def one():
        start.wait()
        try:
            outcomes.append(send(processor, "create_database", Database("sales", None, "file:/x"), key="k1").outcome)
        except Unavailable:
            outcomes.append("try again")

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("ok") == 1
    assert set(outcomes) <= {"ok", "replayed", "try again"}
    assert handlers.store.read(lambda snapshot: snapshot.database_names()) == ["sales"]


def test_outcomes_are_forgotten_after_a_while(world):
    handlers, processor = world
    send(processor, "create_database", Database("sales", None, "file:/x"), key="k1")
    assert handlers.store.forget_outcomes(CLOCK.seconds()) == 0
    assert handlers.store.forget_outcomes(CLOCK.seconds() + 1) == 1
    again = send(processor, "create_database", Database("sales", None, "file:/x"), key="k1")
    assert again.outcome == "AlreadyExistsException"


def test_when_the_database_cannot_be_asked_nothing_is_tried(world):
    handlers, processor = world
    handlers.store.close()
    handlers.store.find = lambda *_: (_ for _ in ()).throw(StoreUnavailable("gone"))
    with pytest.raises(Unavailable):
        send(processor, "create_database", Database("sales", None, "file:/x"), key="k1")
    assert handlers.calls == 0
