"""Objects of a call by its arguments, for logs, figures and rates: `sales`, `sales.orders`, a number of partitions.

Where they are is said by `schema/methods.txt`. Names are in lower case, as the catalog keeps them.
"""

import logging
import threading
import time
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import msgspec

from hms_gateway.rpc.binding import Bound, Step, bind, methods_of
from hms_gateway.rpc.call import Call, Dialect, Failed, Unavailable, Uncacheable, Waiting
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.idl.method_facts import MethodFacts, Need, method_facts
from hms_gateway.rpc.structs import METHODS, MetaException, Method, Struct, ThriftException
from hms_gateway.rpc.structs.catalogs import fold, plain_name, prefix_of, shown_text, unfolder
from hms_gateway.rpc.structs.paths import ArgumentPaths, argument_paths
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType, Codec, LimitExceeded, Message, MessageType
from hms_gateway.runtime.call_keys import AlreadyConcluded
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Holder, Ledger
from hms_gateway.runtime.suspension import Deferred, Result, waited

OBJECTS_MAX: Final = 16

_Names: TypeAlias = Iterable[str]


class _Reader(NamedTuple):
    """Reads the names at some paths. Those of `containers` are left out where an object inside is named, too."""

    names: Callable[..., _Names]
    paths: ArgumentPaths
    is_container: bool


def objects_of(method: str, arguments: Struct) -> tuple[str, ...]:
    """The objects in the order in which they are named, OBJECTS_MAX at most."""
    found: dict[str, bool] = {}
    for reader in _readers(method):
        for values in islice(reader.paths.values(arguments), OBJECTS_MAX):
            for name in reader.names(*values):
                if name:
                    found.setdefault(name, reader.is_container)
    if len(found) < 2:
        return tuple(found)
    inside = {name.partition(".")[0] for name in found if "." in name} if any(found.values()) else set()
    named = (name for name, is_container in found.items() if not is_container or name not in inside)
    return tuple(islice(named, OBJECTS_MAX))


def partitions_of(facts: MethodFacts, arguments: Struct | None, result: Struct | None) -> int:
    """The number of partitions that a call returns or names. `result` may have a list that was not read yet."""
    count = 0
    for path in facts.partitions_in:
        for (value,) in argument_paths((path,)).values(result if path.startswith("success") else arguments):
            count += 0 if value is None else len(value)
    return count


@cache
def _readers(method: str) -> tuple[_Reader, ...]:
    rights = method_facts()[method].rights
    needs = [need for need in (*rights.needs, *rights.names) if need.verb not in _NAMELESS]
    # What a list beside a new table names comes behind the table.
    needs.sort(key=lambda need: need.kind == "other")
    return tuple(reader for need in needs if (reader := _reader(need)) is not None)


def _reader(need: Need) -> _Reader | None:
    names = _BY_VERB.get((need.verb, need.kind)) or _BY_KIND.get(need.kind)
    paths = need.paths
    if need.kind == "location":
        # Behind the names is what has the location.
        paths = paths[: min(2, len(paths) - 1)]
        names = _database if len(paths) == 1 else _object
    elif need.kind == "other":
        paths = paths[2:]
    return None if names is None else _Reader(names, argument_paths(paths), names is _database)


def _database(database: Any) -> _Names:
    return (_text(database),)


def _object(database: Any, name: Any) -> _Names:
    return (_qualified(database, name),)


def _column(database: Any, name: Any) -> _Names:
    return (_qualified(database, name and name.partition(".")[0]),)


def _objects(database: Any, names: Any) -> _Names:
    return (_qualified(database, name) for name in islice(names or (), OBJECTS_MAX))


def _moved(old_db: Any, old_name: Any, new_db: Any, new_name: Any) -> _Names:
    """A table keeps what the new one does not name."""
    return (_qualified(new_db or old_db, new_name or old_name),)


def _full_names(names: Any) -> _Names:
    return map(_text, islice(names or (), OBJECTS_MAX))


def _leased(elements: Any) -> _Names:
    return (_qualified(each.db_name, each.table_name) for each in _elements(elements))


def _components(elements: Any) -> _Names:
    return (_qualified(each.dbname, each.tablename) for each in _elements(elements))


def _privileged(elements: Any, *kinds: Any) -> _Names:
    refs = (each.hiveObject for each in _elements(elements))
    return (_qualified(ref.dbName, ref.objectName) for ref in refs if ref is not None)


def _reference(ref: Any) -> _Names:
    return () if ref is None else (_qualified(ref.dbName, ref.objectName),)


def _elements(elements: Any) -> Iterable[Any]:
    return (each for each in islice(elements or (), OBJECTS_MAX) if each is not None)


def _qualified(database: Any, name: Any) -> str:
    return ".".join(filter(None, (_text(database), _text(name))))


def _text(text: Any) -> str:
    if not isinstance(text, str):
        return ""
    # A database of another catalog has its key, which says so.
    return text.lower() if prefix_of(text) else plain_name(text).lower()


# What is named besides by another part of the line, and what is no database and no table.
_NAMELESS: Final = frozenset({"give", "own", "self", "principal", "owned", "acted", "shown", "replication"})
_BY_VERB: Final[Mapping[tuple[str, str], Callable[..., _Names]]] = {
    ("grant", ""): _privileged,
    ("revoke", ""): _privileged,
    ("move", "table"): _moved,
}
_BY_KIND: Final[Mapping[str, Callable[..., _Names]]] = {
    "database": _database,
    "table": _object,
    "tables": _objects,
    "column": _column,
    "function": _object,
    "named": _full_names,
    "leased": _leased,
    "component": _components,
    "object": _reference,
    "other": _object,
}


@cache
def _unfolder(method: Method, dialect: Dialect) -> Callable[[Any], Any] | None:
    lists_databases = method_facts()[method.name].rights.answer[:1] == ("databases",)
    return unfolder(method.definition, lists_databases=lists_databases, is_newer=dialect is not Dialect.HIVE_2_3)


# Turns a call message into its reply: decode, call the handler by way of its steps, encode its answer or exception.


# From this size on messages are decoded one after the other: the C code that does it keeps Python's lock to the end,
# and several in a row would keep the event loop from everybody else.
DECODED_ALONE_BYTES = 256 * 1024
_decoding_a_large_one = threading.Lock()

# Shorter messages are not looked at: they become a few MiB at most.
UNCOUNTED_BYTES = 64 * 1024
_UNCOUNTED: AbstractContextManager[object] = nullcontext()

_log = logging.getLogger(__name__)

E = TypeVar("E", bound=ThriftException)
# Chunks of long replies are made in turn: what the thread of a call goes through for each.
Turn = Callable[[], AbstractContextManager[None]]


class Reply(msgspec.Struct, frozen=True):
    """The answer to one call.

    type       REPLY, or EXCEPTION for an application exception
    payload    the encoded result without its envelope; chunks when it is long; None when nothing is to be answered
    outcome    `ok`, the class name of the declared exception, or the application exception's type, for log and metrics
    arguments  what was decoded, None when it could not be, or when the answer is uncacheable
    is_final   false when the server failed, so that the same call may give another answer later
    limit      the field of `Limits` that the message went over, if that is why there is no other answer
    objects    the databases and tables that the arguments name
    partitions  how many of them the call is paid for by
    """

    type: MessageType
    payload: bytes | Iterator[bytes] | None
    outcome: str
    arguments: Struct | None = None
    is_final: bool = True
    limit: str = ""
    objects: tuple[str, ...] = ()
    partitions: int = 0


# Gives what a call waits for, is sent the results, and ends with the reply.
Answering: TypeAlias = Generator[Deferred[Any], Result | None, Reply]


class MessageProcessor(Protocol):
    """What the edges call, in a worker thread."""

    def process(self, codec: Codec, message: Message, call: Call) -> Reply:
        """Answer `message`. Raises Unavailable, and Waiting when it is to be asked again."""


class Processor:
    """Answers messages with the methods of `handlers`. Synchronous, safe to call from several threads."""

    def __init__(
        self,
        handlers: Sequence[object],
        translate: Callable[[Exception], Exception] = lambda error: error,
        whole_reply_bytes_max: int = 1 << 20,
        steps: Sequence[Step] = (),
        answered: Container[str] = METHODS,
        limits: Limits | None = None,
        memory: "DecodedMemory | None" = None,
    ) -> None:
        """`translate` turns what handlers raise besides Thrift exceptions into one, or into Unavailable or Failed.

        Replies that are read while they are sent stay whole up to `whole_reply_bytes_max`, so that they carry a
        length and can be cached. A call passes `steps`, in their order, on the way to its handler. `answered` are the
        methods that handlers have to be there for: all of them, but in tests. Texts of errors repeat what callers sent,
        as in Hive, and are cut after `limits.error_text_characters_max`. Raises BindingError.
        """
        limits = limits or Limits()
        self._bound = {dialect: bind(handlers, _only(answered, methods_of(dialect)), steps) for dialect in Dialect}
        self._translate = translate
        self._whole_reply_bytes_max = whole_reply_bytes_max
        self._text_max = limits.error_text_characters_max
        self._memory: Final = memory or DecodedMemory(limits)

    def process(self, codec: Codec, message: Message, call: Call) -> Reply:
        """Answer `message`. Raises Unavailable, AlreadyConcluded, Waiting; every other failure becomes a reply."""
        return completed(self.answering(codec, message, call))

    def answering(self, codec: Codec, message: Message, call: Call) -> Answering:
        """Answer as `process`, for callers that wait in their own way."""
        arguments: Any = None
        objects: tuple[str, ...] = ()
        value: Any = None
        try:
            if call.first is not None:
                call.first()
            bound = self._find(message, call.dialect)
            is_large = len(message.payload) >= UNCOUNTED_BYTES
            with self._memory.held(codec, bound.method, message.payload, call.holder) if is_large else _UNCOUNTED:
                begin = 0.0 if call.notes is None else time.perf_counter()
                with _decoding_a_large_one if len(message.payload) >= DECODED_ALONE_BYTES else _UNCOUNTED:
                    arguments = codec.decode(bound.method.arguments, message.payload)
                    fold(arguments)
                if call.notes is not None:
                    call.notes.add("parse", begin)
                objects = objects_of(message.name, arguments)
                try:
                    value = bound.answer(call, arguments)
                    while isinstance(value, Deferred):
                        value = value.go_on(cast(Result, (yield value)))
                except (ApplicationError, AlreadyConcluded, Waiting):
                    raise
                except Exception as error:
                    result, outcome, is_final = self._refused(bound.method, error, objects)
                else:
                    answer = value.answer if isinstance(value, Uncacheable) else value
                    show = _unfolder(bound.method, call.dialect)
                    answer = answer if show is None else show(answer)
                    has_answer = bound.method.definition.returns is not None
                    result = bound.method.result(success=answer) if has_answer else bound.method.result()
                    outcome, is_final = "ok", True
            partitions = partitions_of(bound.facts, arguments, result) if bound.facts.partitions_in else 0
            if message.type is MessageType.ONEWAY or bound.method.oneway:
                return Reply(MessageType.REPLY, None, outcome, arguments, objects=objects)
            payload = codec.encode(result)
            if not isinstance(payload, bytes):
                payload = whole_or_chunks(payload, self._whole_reply_bytes_max)
            if call.last is not None:
                call.last()
            kept = None if isinstance(value, Uncacheable) else arguments
            return Reply(MessageType.REPLY, payload, outcome, kept, is_final, objects=objects, partitions=partitions)
        except ApplicationError as error:
            return self._application_exception(codec, message, error, arguments, objects)
        except (Unavailable, AlreadyConcluded, Waiting):
            raise
        except Exception:
            _log.exception("internal error in %s, request %s", message.name, call.request_id)
            internal = ApplicationError(f"Internal error processing {message.name}")
            return self._application_exception(codec, message, internal, arguments, objects)

    def perform(self, call: Call, name: str, handler: Callable[..., Any] | None = None, /, **arguments: Any) -> Any:
        """Answer of a method to arguments that no message brought, by way of all its steps, when it is there.

        `handler` answers in place of the method's own. Raises ThriftException, Unavailable, Failed, Waiting.
        """
        bound = self._bound[call.dialect][name]
        if handler is not None:
            bound = msgspec.structs.replace(bound, handler=handler)
        struct = bound.method.arguments(**arguments)
        fold(struct)
        try:
            value = waited(bound.answer(call, struct))
        except (Waiting, ThriftException):
            raise
        except Exception as error:
            raised = self._translate(error)
            if raised is error:
                raise
            raise raised from error
        return value.answer if isinstance(value, Uncacheable) else value

    def _find(self, message: Message, dialect: Dialect) -> Bound:
        if message.type not in (MessageType.CALL, MessageType.ONEWAY):
            text = f"expected a call, got message type {int(message.type)}"
            raise ApplicationError(text, ApplicationErrorType.INVALID_MESSAGE_TYPE)
        bound = self._bound[dialect].get(message.name)
        if bound is None:
            # Clients probe with this and match the text (clients §0 rule 7).
            raise ApplicationError(f"Invalid method name: '{message.name}'", ApplicationErrorType.UNKNOWN_METHOD)
        return bound

    def _refused(self, method: Method, error: Exception, objects: Sequence[str]) -> tuple[Struct, str, bool]:
        """The result struct of a call that failed, the outcome, and whether it is final."""
        raised = error if isinstance(error, ThriftException) else self._translate(error)
        if isinstance(raised, Failed):
            return _failed(method, raised), ApplicationErrorType.INTERNAL_ERROR.name, False
        if not isinstance(raised, ThriftException):
            raise raised from error
        _forget_origin(raised)
        raised.message = raised.message and shown_text(raised.message, objects)
        # What was translated failed below the handlers, such as in a file system.
        return _declared(method, _cut(raised, self._text_max)), type(raised).__name__, raised is error

    def _application_exception(
        self,
        codec: Codec,
        message: Message,
        error: ApplicationError,
        arguments: Struct | None,
        objects: tuple[str, ...],
    ) -> Reply:
        if message.type is MessageType.ONEWAY:
            return Reply(MessageType.EXCEPTION, None, error.type.name, arguments, limit=error.limit, objects=objects)
        payload = codec.encode(_cut(error.payload(), self._text_max))
        is_final = error.type is not ApplicationErrorType.INTERNAL_ERROR
        return Reply(MessageType.EXCEPTION, payload, error.type.name, arguments, is_final, error.limit, objects)


def completed(answering: Answering, result: Result | None = None) -> Reply:
    """The reply, when all is there that the call waits for; `result` is what it is sent first."""
    try:
        while True:
            result = answering.send(result).run()
    except StopIteration as end:
        return cast(Reply, end.value)


class _Held:
    """The memory that one call holds, in bytes by what it is for."""

    __slots__ = ("amounts", "holder")

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.amounts: dict[str, int] = {}


class DecodedMemory:
    """The memory that decoded messages take, and files that calls read, shared out among users and addresses.

    Small messages always get in. Safe to use from several threads.
    """

    def __init__(self, limits: Limits) -> None:
        self._ledger = Ledger(limits, "decoded_bytes_max")
        # While it is decoded, a message keeps Python's lock, and the event loop waits. What is larger than a share
        # could never be taken.
        per_message = Ledger(limits, "decoded_bytes_per_message_max").total
        self.most: Final = min(self._ledger.per_user, self._ledger.per_address, key=lambda bound: bound.value)
        self._message = min(per_message, self.most, key=lambda bound: bound.value)
        self._lock = threading.Lock()

    def held(self, codec: Codec, method: Method, payload: bytes, holder: Holder) -> AbstractContextManager[None]:
        """Count the decoded arguments as `held_bytes` does. Raises ProtocolError."""
        # Texts take about what they take in the message.
        size = len(payload) + codec.decoded_bytes(method.arguments, payload, self._message.value)
        return self.held_bytes(size, method.name, holder)

    @contextmanager
    def held_bytes(self, size: int, what: str, holder: Holder) -> Iterator[None]:
        """Inside, the memory of what was decoded is counted for the holder.

        Raises LimitExceeded for a message that one user may never send, Unavailable while others are in the way.
        """
        if size > self._message.value:
            raise LimitExceeded(self._message.name, self._message.value, what)
        self._take(size, holder)
        try:
            yield
        finally:
            with self._lock:
                self._ledger.give_back(size, holder)

    @contextmanager
    def holding(self, holder: Holder) -> Iterator[None]:
        """Inside, what the thread reads is counted by `hold` for the holder."""
        before, _of_thread.held = _of_thread.held, (held := _Held(holder))
        try:
            yield
        finally:
            _of_thread.held = before
            with self._lock:
                self._ledger.give_back(sum(held.amounts.values()), holder)

    def hold(self, what: str, size: int) -> None:
        """Count bytes for `what` until `holding` ends; of several sizes for one the largest. Outside nothing is.

        Raises Unavailable while others are in the way; `most` is the bound of one holder.
        """
        held = _of_thread.held
        if held is None:
            return
        more = size - held.amounts.get(what, 0)
        if more > 0:
            self._take(more, held.holder)
            held.amounts[what] = size

    def _take(self, size: int, holder: Holder) -> None:
        with self._lock:
            bound = self._ledger.take(size, holder)
        if bound is not None:
            text = f"too many large messages are being worked on; try again, or raise {bound.name}"
            raise Unavailable(text, limit=bound.name)


def _only(answered: Container[str], methods: Mapping[str, Method]) -> dict[str, Method]:
    return {name: method for name, method in methods.items() if name in answered}


class _OfThread(threading.local):
    # In threads that answer no calls, such as tests, nothing waits.
    turn: Turn = staticmethod(nullcontext)
    held: _Held | None = None


_of_thread = _OfThread()


def take_turns(turn: Turn) -> None:
    """From now on the calling thread makes each chunk inside of what `turn` gives."""
    _of_thread.turn = turn


def in_turn() -> AbstractContextManager[None]:
    """Inside, it is the calling thread's turn to make a chunk."""
    return _of_thread.turn()


def whole_or_chunks(chunks: Iterator[bytes], bytes_max: int) -> bytes | Iterator[bytes]:
    """All of `chunks` joined if they end within `bytes_max`, else an iterator over all of them."""
    head: list[bytes] = []
    size = 0
    while True:
        # Most are short, and wait for no turn: what is before a list, its only chunk, what is after it, and the end.
        with in_turn() if len(head) > 3 else nullcontext():
            chunk = next(chunks, None)
        if chunk is None:
            return b"".join(head)
        head.append(chunk)
        size += len(chunk)
        if size > bytes_max:
            return _Resumed(head, chunks)


class _Resumed:
    """An iterator of which the beginning was read ahead; closing it closes the rest."""

    def __init__(self, head: list[bytes], rest: Iterator[bytes]) -> None:
        self._head = iter(head)
        self._rest = rest

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        for chunk in self._head:
            return chunk
        return next(self._rest)

    def close(self) -> None:
        close = getattr(self._rest, "close", None)
        if close is not None:
            close()


def _cut(raised: E, characters_max: int) -> E:
    """The exception, or a copy whose text is no longer than that."""
    text = raised.message
    if text is None or len(text) <= characters_max:
        return raised
    copy = type(raised)(text)
    for field in raised.definition.fields:
        setattr(copy, field.name, getattr(raised, field.name))
    copy.message = f"{text[:characters_max]}… ({len(text) - characters_max} more characters)"
    return copy


def _forget_origin(raised: ThriftException) -> None:
    """Drop the traceback and the causes of an exception that becomes part of an answer.

    The traceback leads to the frames of the call, and one of these to the answer. Answers are structs, which Python's
    collector does not look into, so it would take none of such a cycle away again.
    """
    raised.__traceback__ = raised.__cause__ = raised.__context__ = None


def _declared(method: Method, raised: ThriftException) -> Struct:
    """The result struct with the exception in its slot.

    An exception the method does not declare goes into MetaException's slot where there is one (semantics §13 row 20).
    Else it is a protocol error, since handlers raise these about what callers ask for: Hive's INTERNAL_ERROR is kept
    for failures of the server. Clients treat both alike (clients §4.3).
    """
    found = _in_slot(method, type(raised).__name__, raised) or _in_meta_slot(method, raised.message)
    if found is None:
        text = f"{method.name}: {raised.message or type(raised).__name__}"
        raise ApplicationError(text, ApplicationErrorType.PROTOCOL_ERROR)
    return found


def _failed(method: Method, failure: Failed) -> Struct:
    """The result struct with the failure as its MetaException; an internal error where none is declared."""
    _log.error("%s failed: %s", method.name, failure)
    found = _in_meta_slot(method, str(failure))
    if found is None:
        raise ApplicationError(f"Internal error processing {method.name}: {failure}")
    return found


def _in_meta_slot(method: Method, text: str | None) -> Struct | None:
    return _in_slot(method, MetaException.__name__, MetaException(text))


def _in_slot(method: Method, class_name: str, raised: ThriftException) -> Struct | None:
    result: Any = method.result
    for field in method.definition.throws:
        if isinstance(field.type, StructType) and field.type.name == class_name:
            return result(**{field.name: raised})  # type: ignore[no-any-return]
    return None
