"""Calls that take effect once however often they are sent: the outcome of a marked call is kept and replayed.

A client whose connection broke cannot know whether its change was made, and Hive's clients then simply repeat the call
(clients §4.3). The bridge marks each changing call with a key; the store notes the key in the unit of work that makes
the change, so that a repetition finds what happened (design D11).
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import msgspec

from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Unavailable
from hms_gateway.rpc.idl import BaseType
from hms_gateway.rpc.idl.method_facts import changes_something, method_facts
from hms_gateway.rpc.processor import Answering, MessageProcessor, Processor, Reply, completed
from hms_gateway.rpc.structs import METHODS, MetaException, Method
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType, Codec, Message, MessageType
from hms_gateway.runtime.call_keys import (
    CALL_KEY_CHARACTERS_MAX,
    AlreadyConcluded,
    CallKey,
    KeptAnswer,
    Outcome,
    Outcomes,
    answering,
    message_hash,
)
from hms_gateway.runtime.suspension import Deferred, Done, Result

_log = logging.getLogger(__name__)

# A longer message takes a while to read, and the event loop must not do it: all callers would wait.
SUSPENDED_BYTES_MAX = 4096
_RESULT_IS_LOST = "This call was made before and has taken effect; what it answered is not known any more"
_TRY_AGAIN = "The same call is being answered already; try again"


class KeyReused(ApplicationError):
    """A call whose key its user gave to another message before. Nothing has happened."""

    def __init__(self, method: str) -> None:
        text = f"the call's key was used for another message before ({method}); send each call with a key of its own"
        super().__init__(text, ApplicationErrorType.PROTOCOL_ERROR)


# Answers a call, in a thread.
Process: TypeAlias = Callable[[Call], Reply]


class SuspendedCall:
    """A call that waits for `deferred`, without a thread as long as that is a unit of work.

    `process` answers it in a thread from the beginning: where it was made before, or failed and that has to be kept.
    """

    deferred: Deferred[Any]

    def __init__(self, answering: Answering, key: CallKey | None, process: Process) -> None:
        self._answering = answering
        self._key = key
        self._process = process

    def start(self, done: Done) -> None:
        """Have the unit of work run. Raises what the store raises at once."""
        assert self.deferred.store is not None
        with answering(self._key):
            self.deferred.store.start(self.deferred.work, done)

    def go_on(self, result: Result | None = None) -> "Reply | SuspendedCall | Process":
        """The reply, the call that waits once more, or what answers it in a thread. Raises as `process`."""
        if result is not None and isinstance(result.failure, AlreadyConcluded):
            return self._process
        try:
            self.deferred = self._answering.send(result)
        except StopIteration as end:
            reply: Reply = end.value
            is_kept = self._key is not None and not self._key.is_concluded and _is_refusal(reply)
            return self._process if is_kept else reply
        if self.deferred.store is not None:
            return self
        return self._process if self._key is not None else self._in_thread

    def _in_thread(self, call: Call) -> Reply:
        return completed(self._answering, self.deferred.run())


class Repeatable:
    """Used in place of `processor`. Nothing is kept of calls without a key."""

    def __init__(self, processor: MessageProcessor, outcomes: Outcomes) -> None:
        """A repetition of a method that `keeps_value` runs its handler with what the unit of work gave the first time,
        which gives the same answer or the same refusal. Of other methods, and of calls that failed without a change,
        the answer itself is kept afterwards.
        """
        self._processor = processor
        self._outcomes = outcomes
        self._facts = method_facts()

    def process(self, codec: Codec, message: Message, call: Call) -> Reply:
        """As `Processor.process`; a call with a key that was used before is answered with its first outcome.

        Raises KeyReused when that was another message.
        """
        if call.key is None:
            return self._processor.process(codec, message, call)
        if not 0 < len(call.key) <= CALL_KEY_CHARACTERS_MAX:
            return _refusal(codec, f"the call's key must have 1 to {CALL_KEY_CHARACTERS_MAX} characters")
        key = self._key(codec, message, call, call.key)
        found = self._find(key)
        if found is not None:
            return self._replay(codec, message, call, key, found)
        try:
            with answering(key):
                reply = self._processor.process(codec, message, call)
            self._keep(codec, key, reply)
        except AlreadyConcluded:
            # The same call came in twice at once; the other one has been answered in between.
            raise Unavailable(_TRY_AGAIN) from None
        return reply

    def _key(self, codec: Codec, message: Message, call: Call, text: str) -> CallKey:
        # With the key, so that hashes of secrets in messages cannot be looked up.
        parts = (text, message.name, codec.name, call.dialect.value)
        hashed = message_hash(*(part.encode(errors="surrogatepass") for part in parts), message.payload)
        facts = self._facts.get(message.name)
        return CallKey(call.principal, text, message.name, hashed, facts is not None and facts.keeps_value)

    def _find(self, key: CallKey) -> Outcome | None:
        try:
            return self._outcomes.find(key.principal, key.text)
        except Exception as error:
            # Without knowing whether the call was made before it must not be made.
            raise Unavailable("The database cannot be asked about an earlier call with this key") from error

    def _keep(self, codec: Codec, key: CallKey, reply: Reply) -> None:
        """Keep the answer, unless what is stored already says it all. Raises AlreadyConcluded, Unavailable."""
        if not isinstance(reply.payload, bytes):
            return
        answer = KeptAnswer(codec.name, reply.payload, reply.type is MessageType.EXCEPTION)
        if key.is_concluded:
            if not key.keeps_value and (reply.outcome != "ok" or self._has_answer(key.method)):
                self._complete(key, answer)
        elif _is_refusal(reply) and self._changes_something(key.method):
            self._conclude_failed(key, answer)

    def _complete(self, key: CallKey, answer: KeptAnswer) -> None:
        try:
            self._outcomes.complete(key, answer)
        except Exception:
            _log.warning("the answer to %s could not be kept for a repetition", key.method, exc_info=True)

    def _conclude_failed(self, key: CallKey, answer: KeptAnswer) -> None:
        try:
            self._outcomes.conclude_failed(key, answer)
        except AlreadyConcluded:
            raise
        except Exception as error:
            # Nothing was changed. An answer that is not kept could be another one next time.
            raise Unavailable("The database cannot keep the answer to a call with a key") from error

    def _replay(self, codec: Codec, message: Message, call: Call, key: CallKey, found: Outcome) -> Reply:
        if not _is_same(codec, key, found):
            raise KeyReused(found.method)
        if found.value is not None:
            key.recalled = found.value
            with answering(key):
                reply = self._processor.process(codec, message, call)
            if key.is_concluded:
                return msgspec.structs.replace(reply, outcome="replayed")
        if found.answer is not None:
            kind = MessageType.EXCEPTION if found.answer.is_exception else MessageType.REPLY
            return Reply(kind, found.answer.payload, "replayed")
        return self._lost_answer(codec, message, call)

    def _has_answer(self, method: str) -> bool:
        return METHODS[method].definition.returns is not None

    def _changes_something(self, method: str) -> bool:
        return changes_something(method)

    def _lost_answer(self, codec: Codec, message: Message, call: Call) -> Reply:
        """For a call that was made, and whose answer was not kept."""
        method = methods_of(call.dialect)[message.name]
        return Reply(MessageType.REPLY, codec.encode(_result_without_payload(method)), "replayed")


class RepeatableProcessor(Repeatable):
    """Used in place of a `Processor`."""

    def __init__(self, processor: Processor, outcomes: Outcomes) -> None:
        super().__init__(processor, outcomes)
        self.processor = processor

    def begin(self, codec: Codec, message: Message, call: Call) -> Reply | SuspendedCall | Process:
        """Answer `message` without waiting for anything, as far as that goes.

        The reply, where none of the database is needed; a call whose unit of work waits without a thread; for others
        what answers them in a thread. Raises as `process`.
        """
        process = partial(self._processor.process if call.key is None else self.process, codec, message)
        facts = self._facts.get(message.name)
        if facts is None or not facts.suspendable or len(message.payload) > SUSPENDED_BYTES_MAX:
            return process
        key = None
        if call.key is not None:
            if not 0 < len(call.key) <= CALL_KEY_CHARACTERS_MAX:
                return process
            # Whether the call was made before is seen by its unit of work, which is not run then.
            key = self._key(codec, message, call, call.key)
        with answering(key):
            return SuspendedCall(self.processor.answering(codec, message, call), key, process).go_on()


def _is_same(codec: Codec, key: CallKey, found: Outcome) -> bool:
    if found.message_hash is not None:
        return found.message_hash == key.message_hash
    # Kept by a version that stored no hashes.
    return found.method == key.method and (found.answer is None or found.answer.codec_name == codec.name)


def _is_refusal(reply: Reply) -> bool:
    """A failure that is the metastore's answer, and not one of the server, which may be gone the next time."""
    return reply.outcome != "ok" and reply.is_final


def _result_without_payload(method: Method) -> Any:
    result: Any = method.result
    if method.definition.returns is None:
        return result()
    if method.definition.returns is BaseType.BOOL:
        return result(success=True)
    slots = {getattr(field.type, "name", ""): field.name for field in method.definition.throws}
    if "MetaException" in slots:
        return result(**{slots["MetaException"]: MetaException(_RESULT_IS_LOST)})
    return result()


def _refusal(codec: Codec, text: str) -> Reply:
    error = ApplicationError(text, ApplicationErrorType.PROTOCOL_ERROR)
    return Reply(MessageType.EXCEPTION, codec.encode(error.payload()), error.type.name)
