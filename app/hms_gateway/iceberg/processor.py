"""A request of the REST catalog as a call: its answer as a reply, and the first answer again for a repetition."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import msgspec

from hms_gateway.iceberg.errors import IcebergError
from hms_gateway.iceberg.json_values import decoded_bytes
from hms_gateway.iceberg.routes import Answer, Request, RestCatalog, failure, loading
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.memory import UNCOUNTED_BYTES, DecodedMemory
from hms_gateway.rpc.processor import Reply
from hms_gateway.rpc.repeatable import Repeatable
from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import Codec, Message, MessageType
from hms_gateway.runtime.call_keys import CallKey, KeptAnswer, Outcomes

# Kept for a day in the database, of each commit.
KEPT_BYTES_MAX: Final = 64 * 1024
_CHANGING: Final = frozenset({"POST", "DELETE"})
_CHUNK_BYTES: Final = 256 * 1024
# The read that a load depends on, for the cache of replies.
READ: Final = "get_table"
_READ: Final[Any] = METHODS[READ]


class RestProcessor:
    """Answers requests in a worker thread. Raises Unavailable, KeyReused, LimitExceeded, Waiting."""

    def __init__(self, catalog: RestCatalog, outcomes: Outcomes, memory: DecodedMemory) -> None:
        self._catalog = catalog
        self._outcomes = outcomes
        self._memory = memory

    def refuse_token(self) -> Answer:
        """The answer to whoever asks for a token. Blocks while the issuer is asked where it has them."""
        return self._catalog.refuse_token()

    def process(self, request: Request, call: Call) -> Reply:
        """The reply; a request with a key that was used before is answered as it was the first time.

        Raises LimitExceeded, for a body that would take too much memory, and Unavailable while too much is taken.
        """
        is_large = len(request.body) >= UNCOUNTED_BYTES
        size = decoded_bytes(request.body) if is_large else 0
        counted = self._memory.held_bytes(size, request.operation.id, call.holder) if is_large else nullcontext()
        with counted, self._memory.holding(call.holder):
            return self._process(request, call)

    def _process(self, request: Request, call: Call) -> Reply:
        once = _Once(self._catalog, request)
        if call.key is None or request.operation.method not in _CHANGING:
            return once.process(_CODEC, _NO_MESSAGE, call)
        operation = request.operation
        parts = (operation.id, request.catalog, dict(request.path), dict(request.query), request.body)
        message = Message(f"iceberg.{operation.id}", MessageType.CALL, 0, msgspec.msgpack.encode(parts))
        load = loading(request)
        now = None if load is None else _Once(self._catalog, load)
        return _Repeatable(once, now, self._outcomes).process(_CODEC, message, call)


class _Once:
    """Answers one request (`MessageProcessor`)."""

    def __init__(self, catalog: RestCatalog, request: Request) -> None:
        self._catalog = catalog
        self._request = request

    def process(self, codec: Codec, message: Message, call: Call) -> Reply:
        answer = self._catalog.answer(call, self._request)
        is_good = answer.status < 400
        outcome = "ok" if is_good else str(answer.status)
        if answer.parts:
            return LongReply(MessageType.REPLY, _chunks(answer.parts), outcome, headers=answer.headers)
        row = None if answer.row is None else _READ.arguments(dbname=answer.row.key, tbl_name=answer.row.name)
        # What the server failed at may be another answer next time.
        return Reply(MessageType.REPLY, _written(answer), outcome, row, answer.status < 500)


class _Repeatable(Repeatable):
    """Keeps every answer but long ones, which are loaded anew: metadata of whole tables."""

    def __init__(self, once: _Once, now: _Once | None, outcomes: Outcomes) -> None:
        super().__init__(once, outcomes)
        self._now = now

    def _complete(self, key: CallKey, answer: KeptAnswer) -> None:
        if len(answer.payload) <= KEPT_BYTES_MAX:
            super()._complete(key, answer)

    def _has_answer(self, method: str) -> bool:
        return True

    def _changes_something(self, method: str) -> bool:
        return True

    def _lost_answer(self, codec: Codec, message: Message, call: Call) -> Reply:
        if self._now is not None:
            reply = self._now.process(codec, message, call)
            if reply.outcome == "ok":
                return msgspec.structs.replace(reply, outcome="replayed")
        text = "This request was made before and has taken effect; what it answered is not known any more"
        answer = failure(IcebergError("CommitStateUnknownException", text))
        return Reply(MessageType.REPLY, _written(answer), "replayed")


class LongReply(Reply, frozen=True):
    """A long body with status 200, in chunks."""

    headers: Mapping[str, str] = {}


def _chunks(parts: Sequence[bytes]) -> Iterator[bytes]:
    for part in parts:
        for begin in range(0, len(part), _CHUNK_BYTES):
            yield part[begin : begin + _CHUNK_BYTES]


def _written(answer: Answer) -> bytes:
    """The answer as the payload of a reply."""
    return msgspec.msgpack.encode((answer.status, answer.body, dict(answer.headers)))


def read_reply(reply: Reply) -> Answer:
    """The answer that a reply of `RestProcessor` carries, whose body is not long."""
    assert isinstance(reply.payload, bytes)
    status, body, headers = msgspec.msgpack.decode(reply.payload)
    return Answer(status, body, headers)


class _Json:
    """Names the form of kept answers, in the place of a codec."""

    name = "iceberg-rest"


_CODEC: Final[Any] = _Json()
_NO_MESSAGE: Final[Any] = None
