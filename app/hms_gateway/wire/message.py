"""A Thrift message, its arguments still encoded."""

from enum import IntEnum
from typing import NamedTuple


class MessageType(IntEnum):
    """What a message is, by its number on the wire (protocol §3.1.5)."""

    CALL = 1
    REPLY = 2
    EXCEPTION = 3
    ONEWAY = 4


class Message(NamedTuple):
    """One message. `payload` is the arguments or result struct in the encoding the message came in."""

    name: str
    type: MessageType
    seqid: int
    payload: bytes
