"""Ids that a server gives: in requests they are placeholder numbers, in replies names, so that scripts can be compared.

The n-th transaction since a script began is `txn(n)` in a request and `{txn n}` in a reply, whatever the server's
counter says. Transactions and events are counted from what was there before; locks, compactions and keys are numbered
as they appear.
"""

import re
from collections.abc import Iterable

# Each kind has a range of its own; keys are 32-bit numbers.
_FIRST = {"txn": 7_100_000_000_000, "lock": 7_200_000_000_000, "event": 7_300_000_000_000, "key": 2_100_000_000}
_IN_A_KIND = 10_000
_COUNT_MAX = 10_000_000
_COUNTED = ("txn", "event")
_PLACEHOLDERS = re.compile(r"(?<![\d.])(?:7[123]0000000\d{4}|210000\d{4})(?![\d.])")
_IN_TEXTS = (
    (re.compile(r"(?<=\[txnid:)(\d+),(\d+)(?=\])"), "txn"),
    (re.compile(r"(?<=txnid:)(\d+)"), "txn"),
    (re.compile(r"(?<=lockid:)(\d+)"), "lock"),
    (re.compile(r"(?<=keyId: )(\d+)"), "key"),
)
_FIELDS = {
    "LockResponse.lockid": "lock",
    "ShowLocksResponseElement.lockid": "lock",
    "ShowLocksResponseElement.blockedByExtId": "lock",
    "ShowLocksResponseElement.txnid": "txn",
    "OpenTxnsResponse.txn_ids": "txn",
    "GetOpenTxnsResponse.txn_high_water_mark": "txn",
    "GetOpenTxnsResponse.open_txns": "txn",
    "GetOpenTxnsResponse.min_open_txn": "txn",
    "GetOpenTxnsInfoResponse.txn_high_water_mark": "txn",
    "TxnInfo.id": "txn",
    "HeartbeatTxnRangeResponse.aborted": "txn",
    "HeartbeatTxnRangeResponse.nosuch": "txn",
    "CompactionResponse.id": "compaction",
    "ShowCompactResponseElement.id": "compaction",
    "NotificationEvent.eventId": "event",
    "CurrentNotificationEventId.eventId": "event",
    "add_master_key_result.success": "key",
}


def txn(number: int) -> int:
    """The id of the n-th transaction of the script, for a request; 0 is the newest from before it."""
    return _FIRST["txn"] + number


def lock(number: int) -> int:
    """The id of the n-th lock of the script."""
    return _FIRST["lock"] + number


def event(number: int) -> int:
    """The id of the n-th event of the script; 0 is the newest from before it."""
    return _FIRST["event"] + number


def key(number: int) -> int:
    """The number of the n-th master key of the script."""
    return _FIRST["key"] + number


def named_in_request(number: object) -> object:
    """What a placeholder is called in replies; anything else stays."""
    for kind, first in _FIRST.items():
        if isinstance(number, int) and 0 <= number - first < _IN_A_KIND:
            return f"{{{kind} {number - first}}}"
    return number


def kind_of(struct: str, field: str) -> str | None:
    """Of which kind the numbers in a field are, None for numbers that are no ids."""
    return _FIELDS.get(f"{struct.removesuffix('_v4')}.{field}")


class Ids:
    """What one server's ids are called in one script."""

    def __init__(self, newest_txn: int = 0, newest_event: int = 0) -> None:
        self._newest = {"txn": newest_txn, "event": newest_event}
        self._appeared: dict[str, list[int]] = {"lock": [], "compaction": [], "key": []}

    def fill_in(self, text: str) -> str:
        """A request with this server's ids. One that nobody has been given stays as it is: no server knows it."""
        return _PLACEHOLDERS.sub(lambda found: str(self._real(int(found[0]))), text)

    def named(self, kind: str, number: int) -> int | str:
        """What an id of a reply is called; numbers that no script's object can have stay."""
        if kind in _COUNTED:
            count = number - self._newest[kind]
            is_ours = number > 0 and 0 <= count < _COUNT_MAX
            return f"{{{kind} {count}}}" if is_ours else self._placeholder_name(number)
        if number <= 0 or _is_placeholder(number):
            return self._placeholder_name(number)
        if number not in self._appeared[kind]:
            self._appeared[kind].append(number)
        return f"{{{kind} {self._appeared[kind].index(number) + 1}}}"

    def is_older(self, kind: str | None, number: object) -> bool:
        """Whether a listed id is from before the script."""
        return kind in _COUNTED and isinstance(number, int) and 0 < number <= self._newest[kind]

    def text(self, text: str) -> str:
        """A text of a reply with the names of the ids in it."""
        for pattern, kind in _IN_TEXTS:
            text = pattern.sub(lambda found, kind=kind: self._names(kind, found.groups()), text)  # type: ignore[misc]
        return text

    def _names(self, kind: str, numbers: Iterable[str]) -> str:
        return ",".join(
            str(self.named(kind, int(number))) if self._is_known(kind, int(number)) else number for number in numbers
        )

    def _is_known(self, kind: str, number: int) -> bool:
        return kind in _COUNTED or _is_placeholder(number) or number in self._appeared[kind]

    def _placeholder_name(self, number: int) -> int | str:
        return f"{{unknown {number}}}" if _is_placeholder(number) else number

    def _real(self, placeholder: int) -> int:
        for kind, first in _FIRST.items():
            count = placeholder - first
            if not 0 <= count < _IN_A_KIND:
                continue
            if kind in _COUNTED:
                return self._newest[kind] + count
            if 0 < count <= len(self._appeared[kind]):
                return self._appeared[kind][count - 1]
        return placeholder


def _is_placeholder(number: int) -> bool:
    return any(0 <= number - first < _IN_A_KIND for first in _FIRST.values())
