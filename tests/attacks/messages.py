"""Messages that attack: calls of every method in every encoding, most of them broken. One seed, one sequence."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hms_gateway.rpc.structs import METHODS
from hms_gateway.rpc.wire import Codec, MessageType, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.handlers.bad_values import HALF_PAIR, template, variants
from tests.support.faker import Faker

_CODECS: Final = make_codecs(Limits())
_ENCODINGS: Final[dict[str, Codec]] = {"tjson": _CODECS.tjson, "binary": _CODECS.binary, "compact": _CODECS.compact}
_EXTREMES: Final = (b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff\xff\xff\xff\xff\x01")
_TEXTS: Final = (b"[", b"{", b'"', b"\\", b"\\u0000", b"1e999", b"null", b'"rec"', b'"lst"', b"'", b"../", b"%00", b"@")
_COPIES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class AttackMessage:
    """The bytes of a call, and what it was before it was broken."""

    method: str
    encoding: str
    body: bytes


def messages(seed: int, methods: tuple[str, ...] = tuple(METHODS)) -> Iterator[AttackMessage]:
    """Without an end. A third are whole calls with one bad value, the rest have their bytes changed."""
    choices = random.Random(seed)
    while True:
        method = choices.choice(methods)
        encoding = choices.choice(tuple(_ENCODINGS))
        body = _encoded(_ENCODINGS[encoding], method, _arguments(choices, method), choices)
        for _ in range(choices.choice((0, 1, 1, 2, 5))):
            body = _broken(choices, body)
        yield AttackMessage(method, encoding, body)


def _arguments(choices: random.Random, method: str) -> Any:
    """A call that could be meant, one with a bad value, or random values."""
    arguments = METHODS[method].arguments
    kind = choices.randrange(4)
    if kind == 0:
        return Faker(choices.randrange(2**32), list_keys=False).struct(arguments)
    fields = METHODS[method].definition.arguments
    values = [template(field) for field in fields]
    if kind > 1 and fields:
        position = choices.randrange(len(fields))
        bad = [value for value, _ in zip(variants(values[position], fields[position].type), range(200), strict=False)]
        values[position] = choices.choice(bad) if bad else None
    return arguments(*values)


def _encoded(codec: Codec, method: str, arguments: Any, choices: random.Random) -> bytes:
    before, after = codec.envelope(method, MessageType.CALL, choices.randrange(2**31))
    payload = codec.encode(arguments)
    assert isinstance(payload, bytes)
    return before + payload.replace(HALF_PAIR.encode(), rb"\ud800") + after


def _broken(choices: random.Random, body: bytes) -> bytes:
    """One change: a bit, a byte, a cut, a copy of a part, or something put in."""
    if not body:
        return choices.choice(_TEXTS)
    start = choices.randrange(len(body))
    end = min(len(body), start + choices.choice((1, 1, 2, 8, 64)))
    match choices.randrange(7):
        case 0:
            return body[:start] + bytes([body[start] ^ 1 << choices.randrange(8)]) + body[start + 1 :]
        case 1:
            return body[:start]
        case 2:
            return body[:start] + body[end:]
        case 3:
            return body[:start] + choices.choice(_EXTREMES) + body[end:]
        case 4:
            return body[:start] + choices.choice(_TEXTS) + body[end:]
        case 5:
            return body[:end] + body[start:end] * choices.choice((1, 3, 50, _COPIES_MAX)) + body[end:]
        case _:
            return body[:start] + choices.randbytes(end - start) + body[end:]
