"""Turn a call message into its reply: decode, call the handler by way of its steps, encode its answer or exception."""

import logging
import threading
import time
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

import msgspec

from hms_gateway.rpc.binding import Bound, Step, bind, methods_of
from hms_gateway.rpc.call import Call, Dialect, Failed, Unavailable, Uncacheable, Waiting
from hms_gateway.rpc.idl import StructType
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.memory import UNCOUNTED_BYTES, DecodedMemory
from hms_gateway.rpc.objects import objects_of, partitions_of
from hms_gateway.rpc.structs import METHODS, MetaException, Method, Struct, ThriftException
from hms_gateway.rpc.structs.catalogs import fold, shown_text, unfolder
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType, Codec, Message, MessageType
from hms_gateway.runtime.call_keys import AlreadyConcluded
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.suspension import Deferred, Result, waited
from hms_gateway.runtime.tracebacks import forget_frames

# From this size on messages are decoded one after the other: the C code that does it keeps Python's lock to the end,
# and several in a row would keep the event loop from everybody else.
DECODED_ALONE_BYTES = 256 * 1024
_decoding_a_large_one = threading.Lock()

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
        memory: DecodedMemory | None = None,
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
        except Exception as error:
            _log.exception("internal error in %s, request %s", message.name, call.request_id)
            forget_frames(error)
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
            forget_frames(error)
            return _failed(method, raised), ApplicationErrorType.INTERNAL_ERROR.name, False
        if not isinstance(raised, ThriftException):
            if raised is error:
                raise error  # as its own cause it would be a cycle
            raise raised from error
        forget_frames(error)
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


@cache
def _unfolder(method: Method, dialect: Dialect) -> Callable[[Any], Any] | None:
    lists_databases = method_facts()[method.name].rights.answer[:1] == ("databases",)
    return unfolder(method.definition, lists_databases=lists_databases, is_newer=dialect is not Dialect.HIVE_2_3)


def _only(answered: Container[str], methods: Mapping[str, Method]) -> dict[str, Method]:
    return {name: method for name, method in methods.items() if name in answered}


class _OfThread(threading.local):
    # In threads that answer no calls, such as tests, nothing waits.
    turn: Turn = staticmethod(nullcontext)


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
