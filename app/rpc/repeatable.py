"""Calls that take effect once however often they are sent: the outcome of a marked call is kept and replayed.

A client whose connection broke cannot know whether its change was made, and Hive's clients then simply repeat the call
(clients §4.3). The bridge marks each changing call with a key; the store notes the key in the unit of work that makes
the change, so that a repetition finds what happened (design D11).
"""

import logging
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from app.call_keys import CALL_KEY_CHARACTERS_MAX, AlreadyConcluded, CallKey, Outcome, Outcomes, answering
from app.deferral import Given, NotDeferrable, Start, Taken, giving, taking
from app.idl import BaseType
from app.rpc.call import Call
from app.rpc.dialects import methods_of
from app.rpc.processor import Processor, Reply, Unavailable
from app.structs import METHODS, MetaException, Method
from app.wire import ApplicationError, ApplicationErrorType, Codec, Codecs, Message, MessageType

_log = logging.getLogger(__name__)

# A longer message takes a while to read, which is no work for the event loop: everybody would wait for it.
_BEGUN_BYTES_MAX = 64 * 1024
_RESULT_IS_LOST = "This call was made before and has taken effect; what it answered is not known any more"


class Deferred(NamedTuple):
    """A call whose unit of work is still to be run.

    start   has it run and be told what it gave. Raises what the store raises at once
    finish  the reply; None when the call has to be processed in a thread, because it was made before
    """

    start: Start
    finish: Callable[[Given], Reply | None]


class RepeatableProcessor:
    """Stands where a `Processor` may stand."""

    def __init__(
        self,
        processor: Processor,
        outcomes: Outcomes,
        codecs: Codecs,
        answered_from_value: Container[str] = (),
        deferred: Container[str] = (),
    ) -> None:
        """`answered_from_value` names the methods that do nothing lasting but one unit of work.

        A repetition of one runs its handler with what that unit of work gave the first time, which gives the same
        answer or the same refusal. Of other methods the answer itself is kept, after the change. `deferred` names
        methods whose calls `begin` can begin.
        """
        self.deferred = deferred
        self._processor = processor
        self._outcomes = outcomes
        self._answered_from_value = answered_from_value
        self._codecs = {codec.name: codec for codec in codecs}

    def process(self, codec: Codec, message: Message, call: Call) -> Reply:
        """As `Processor.process`; a call with a key that was used before is answered with its first outcome."""
        if call.key is None:
            return self._processor.process(codec, message, call)
        if not 0 < len(call.key) <= CALL_KEY_CHARACTERS_MAX:
            return _refusal(codec, f"the call's key must have 1 to {CALL_KEY_CHARACTERS_MAX} characters")
        found = self._find(call.principal, call.key)
        if found is not None:
            return self._replay(codec, message, call, found)
        key = CallKey(call.principal, call.key, message.name, message.name in self._answered_from_value)
        try:
            with answering(key):
                reply = self._processor.process(codec, message, call)
        except AlreadyConcluded:
            # The same call came in twice at once; the other one has just made the change.
            raise Unavailable("The same call is being answered already; try again") from None
        if not key.keeps_value:
            self._keep(codec, key, reply)
        return reply

    def begin(self, codec: Codec, message: Message, call: Call) -> "Reply | Deferred | None":
        """Answer `message` without waiting for anything, as far as that goes (`app.deferral`).

        The reply, where none of the database is needed; a call that has begun; None when it has to be processed in a
        thread, and nothing has happened then. Raises as `process`.
        """
        if message.name not in self.deferred or len(message.payload) > _BEGUN_BYTES_MAX:
            return None
        key = None
        if call.key is not None:
            if message.name not in self._answered_from_value or not 0 < len(call.key) <= CALL_KEY_CHARACTERS_MAX:
                return None
            # Whether the call was made before is seen by its unit of work, which is not run then.
            key = CallKey(call.principal, call.key, message.name, keeps_value=True)
        try:
            with taking(), answering(key):
                return self._processor.process(codec, message, call)
        except Taken as taken:
            return Deferred(taken.start, partial(self._finish, codec, message, call, key))
        except NotDeferrable:
            return None

    def _finish(self, codec: Codec, message: Message, call: Call, key: CallKey | None, given: Given) -> Reply | None:
        if isinstance(given.failure, AlreadyConcluded):
            return None
        with giving(given), answering(key):
            return self._processor.process(codec, message, call)

    def _find(self, principal: str, key: str) -> Outcome | None:
        try:
            return self._outcomes.find(principal, key)
        except Exception as error:
            # Without knowing whether the call was made before it must not be made.
            raise Unavailable("The database cannot be asked about an earlier call with this key") from error

    def _keep(self, codec: Codec, key: CallKey, reply: Reply) -> None:
        """Add the answer to the stored outcome, unless the outcome alone says it all."""
        if not key.is_concluded or reply.outcome != "ok" or not isinstance(reply.payload, bytes):
            return
        if METHODS[key.method].definition.returns is None:
            return
        try:
            self._outcomes.complete(key, codec.name, reply.payload)
        except Exception:
            _log.warning("the answer to %s could not be kept for a repetition", key.method, exc_info=True)

    def _replay(self, codec: Codec, message: Message, call: Call, found: Outcome) -> Reply:
        if found.method != message.name:
            return _refusal(codec, f"the call's key was used for {found.method} before")
        if found.kept is not None:
            key = CallKey(call.principal, found.method, message.name, recalled=found.kept)
            with answering(key):
                reply = self._processor.process(codec, message, call)
            if key.is_concluded:
                return replace(reply, outcome="replayed")
        method = methods_of(call.dialect)[message.name]
        return Reply(MessageType.REPLY, self._kept_payload(codec, method, found), "replayed")

    def _kept_payload(self, codec: Codec, method: Method, found: Outcome) -> bytes | Iterator[bytes]:
        if found.payload is None or found.codec_name is None:
            return codec.encode(_result_without_payload(method))
        if found.codec_name == codec.name:
            return found.payload
        return codec.encode(self._codecs[found.codec_name].decode(method.result, found.payload))


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
