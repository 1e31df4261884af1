"""Long answers of a gateway, which need not be sent again: it says that they are current.

None is given to a client before the gateway has said so in reply to the client's own call, so it does not matter whose
call an answer was fetched for. An answer is kept when it is asked for the second time: most long ones are read once.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, TypeAlias

import msgspec

from hms_gateway.bridge.relays.transcoding import payload_begin
from hms_gateway.bridge.thrift.messages import ThriftMessage, codec_of, enclosed
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.wire import Codecs, MessageType

# Shorter ones are sent as fast as they are asked about.
LONG_FROM_BYTES: Final = 64 * 1024
ARGUMENTS_BYTES_MAX: Final = 16 * 1024
_ASKED_MAX: Final = 1_000

_Key: TypeAlias = tuple[str, str, bytes]


class HeldAnswer(msgspec.Struct):
    """The result without the message's header. `tag` None: the gateway's tag of it is its hash."""

    payload: bytes
    tag: bytes | None


class HeldAnswers:
    """Up to `bytes_max` of them, those that were used last. Used from the event loop's thread."""

    def __init__(self, codecs: Codecs, bytes_max: int) -> None:
        self._codecs = codecs
        self._bytes_max = bytes_max
        # One leaves room for another.
        self.answer_bytes_max: Final = bytes_max // 2
        self._answers: OrderedDict[_Key, HeldAnswer] = OrderedDict()
        self._asked: OrderedDict[_Key, None] = OrderedDict()
        self.size_bytes = 0
        # Of answers that are being sent, which take at most as much again.
        self._collected_bytes = 0

    def find(self, message: ThriftMessage) -> HeldAnswer | None:
        """The answer to the same call."""
        key = _key(message)
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def was_asked(self, message: ThriftMessage) -> bool:
        """True if a long answer was given to the same call before."""
        return bool(self._asked) and _key(message) in self._asked

    def wants(self, message: ThriftMessage, length: int | None) -> bool:
        """True if the answer to a call is to be kept; `length` None for one that is long and comes in chunks."""
        if length is not None and not LONG_FROM_BYTES <= length <= self.answer_bytes_max:
            return False
        facts = method_facts().get(message.name)
        if facts is None or not facts.cached_by or len(message.body) > ARGUMENTS_BYTES_MAX:
            return False
        key = _key(message)
        if key in self._asked:
            return True
        self._asked[key] = None
        if len(self._asked) > _ASKED_MAX:
            self._asked.popitem(last=False)
        return False

    def keep(self, message: ThriftMessage, body: bytes, tag: bytes | None) -> None:
        """Keep a whole reply that says `ok`."""
        key = _key(message)
        payload = body[payload_begin(body, is_compact=message.protocol == "compact") :]
        self._forget(key)
        self._answers[key] = HeldAnswer(payload, tag)
        self.size_bytes += len(payload) + len(key[2])
        while self.size_bytes > self._bytes_max:
            self._forget(next(iter(self._answers)))

    async def kept(
        self, chunks: AsyncGenerator[bytes, None], message: ThriftMessage, tag: bytes | None
    ) -> AsyncGenerator[bytes, None]:
        """The same chunks; when all of them were taken, and there was room for them meanwhile, they are held."""
        parts: list[bytes] | None = []
        size = 0
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    if parts is not None and self._has_room(size, len(chunk)):
                        parts.append(chunk)
                        size += len(chunk)
                        self._collected_bytes += len(chunk)
                    else:
                        parts = None
                        self._collected_bytes -= size
                        size = 0
                    yield chunk
            if parts:
                self.keep(message, b"".join(parts), tag)
        finally:
            self._collected_bytes -= size

    def _has_room(self, size: int, more: int) -> bool:
        return size + more <= self.answer_bytes_max and self._collected_bytes + more <= self._bytes_max

    def reply(self, message: ThriftMessage, held: HeldAnswer) -> bytes:
        """The whole reply to a call whose answer is still the one that is held."""
        codec = codec_of(self._codecs, message.protocol)
        return enclosed(codec, message.name, MessageType.REPLY, message.seqid, held.payload)

    def _forget(self, key: _Key) -> None:
        held = self._answers.pop(key, None)
        if held is not None:
            self.size_bytes -= len(held.payload) + len(key[2])


async def tag_of(held: HeldAnswer) -> bytes:
    """The tag by which the gateway knows an answer."""
    if held.tag is None:
        held.tag = await asyncio.get_running_loop().run_in_executor(None, _hash, held.payload)
    return held.tag


def _hash(payload: bytes) -> bytes:
    """The gateway's tag of a reply that its cache may keep."""
    return b'"%b"' % hashlib.blake2b(payload, digest_size=16).hexdigest().encode()


def _key(message: ThriftMessage) -> _Key:
    return message.protocol, message.name, message.body[message.payload_begin :]
