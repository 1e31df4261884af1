"""Keys by which callers mark a call they may have to repeat, and what is kept of such a call (design D11).

A reply can be lost after the change was committed, and then a client repeats the call. With a key the outcome is stored
in the same unit of work as the change, so that the repetition gets the first answer instead of doing it again. A key
belongs to one user and one message.
"""

import hashlib
from contextvars import ContextVar
from typing import NamedTuple, Protocol

import msgspec

from hms_gateway.runtime.presented import bound

CALL_KEY_CHARACTERS_MAX = 128


def message_hash(*parts: bytes) -> bytes:
    """Hash of the bytes that a repetition of the message sends again."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


class KeptValue(NamedTuple):
    """The result of a unit of work."""

    value: object


class CallKey(msgspec.Struct):
    """One call that may be repeated. Keys of different users never meet.

    message_hash   of the message that it marks
    keeps_value    whether the value of its unit of work is stored, and answers a repetition
    recalled       on a repetition: that value; the unit of work is not run then
    is_concluded   true from the commit of the call's change on, or from when its value was recalled; a call has one
                   unit of work that counts
    """

    principal: str
    text: str
    method: str
    message_hash: bytes | None = None
    keeps_value: bool = False
    recalled: KeptValue | None = None
    is_concluded: bool = False


class KeptAnswer(NamedTuple):
    """The answer to a call; `is_exception` for an application exception."""

    codec_name: str
    payload: bytes
    is_exception: bool = False


class Outcome(NamedTuple):
    """What became of a call: its answer, or the value of its unit of work, or only that it was done.

    `message_hash` is None for what was kept by versions that did not store it.
    """

    method: str
    message_hash: bytes | None = None
    answer: KeptAnswer | None = None
    value: KeptValue | None = None


class Outcomes(Protocol):
    """Where outcomes are kept; they are made by the units of work themselves."""

    def find(self, principal: str, key: str) -> Outcome | None:
        """The outcome of an earlier call with this key. Raises StoreUnavailable."""

    def complete(self, key: CallKey, answer: KeptAnswer) -> None:
        """Add the answer to the outcome of a call whose change is committed. Raises StoreError."""

    def conclude_failed(self, key: CallKey, answer: KeptAnswer) -> None:
        """Keep the answer of a call that failed and changed nothing. Raises AlreadyConcluded, StoreError."""


class AlreadyConcluded(Exception):
    """The change of this call was committed before, by an earlier call with the same key. Nothing was changed now."""


_current: ContextVar[CallKey | None] = ContextVar("call_key", default=None)


def current_call_key() -> CallKey | None:
    """The key of the call this thread is answering, None when its caller gave none."""
    return _current.get()


def recalled_value() -> KeptValue | None:
    """The stored result of this call's unit of work; None if the call was not made before.

    Returned once: the caller answers with it instead of doing the work.
    """
    key = _current.get()
    if key is None or key.recalled is None or key.is_concluded:
        return None
    key.is_concluded = True
    return key.recalled


def answering(key: CallKey | None) -> bound[CallKey | None]:
    """Units of work inside belong to the call with `key`; with None to no call, as preparations and repairs do."""
    return bound(_current, key)
