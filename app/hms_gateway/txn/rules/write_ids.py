"""Which transactions and write ids a reader sees: the lists, their text forms, and how they compare (semantics §5.11).

A list names everything up to its high water mark except some ids, which are open or aborted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

ID_MAX: Final = 2**63 - 1

# Hive 4 writes shorter runs id by id.
_RUN_MIN: Final = 5
# A range in a text is a few characters and means any number of ids.
_IDS_MAX: Final = 1_000_000


class InvalidList(ValueError):
    """A text is not a list of transactions or write ids; the message says which."""


class TooManyIds(InvalidList):
    """A text names more ids than its reader takes."""


class ValidIds(msgspec.Struct, frozen=True):
    """The ids 1 to `high_water_mark` without `open_ids` and `aborted_ids`, each ascending."""

    high_water_mark: int
    open_ids: tuple[int, ...] = ()
    aborted_ids: tuple[int, ...] = ()

    @property
    def exceptions(self) -> list[int]:
        return sorted((*self.open_ids, *self.aborted_ids))

    @property
    def oldest_open(self) -> int | None:
        return self.open_ids[0] if self.open_ids else None

    def is_valid(self, number: int) -> bool:
        return number <= self.high_water_mark and number not in self.open_ids and number not in self.aborted_ids

    def is_aborted(self, number: int) -> bool:
        return number in self.aborted_ids

    def with_own(self, own_id: int) -> "ValidIds":
        """As the transaction or write id itself sees it: what it wrote is valid for it (semantics §5.11)."""
        others = (tuple(one for one in ids if one != own_id) for ids in (self.open_ids, self.aborted_ids))
        return ValidIds(self.high_water_mark, *others)

    def with_committed(self, number: int, gap_max: int) -> "ValidIds":
        """With an id that is committed since; the same when it is more than `gap_max` ids beyond the mark."""
        if number <= self.high_water_mark:
            open_ids = tuple(one for one in self.open_ids if one != number)
            return ValidIds(self.high_water_mark, open_ids, self.aborted_ids)
        if number - self.high_water_mark > gap_max:
            return self
        # What became of the ids between them is not known.
        return ValidIds(number, (*self.open_ids, *range(self.high_water_mark + 1, number)), self.aborted_ids)


class ValidWriteIds(msgspec.Struct, frozen=True):
    """The write ids of one table; `table` is `database.table`, None when unset."""

    table: str | None
    ids: ValidIds


EVERYTHING: Final = ValidIds(ID_MAX)


def parse_valid_txns(text: str | None) -> ValidIds:
    """A ValidTxnList of any version; a blank one means that everything is valid. Raises InvalidList.

    In the form of 2.3 nothing says which exceptions are aborted but the oldest open one: those below it are. Where
    both forms look the same (`7:5:5:6`) both exclude the same ids.
    """
    if text is None or not text.strip():
        return EVERYTHING
    parts = text.strip().split(":")
    if len(parts) < 2:
        raise InvalidList(f"{_shown(text)} is not a list of valid transactions")
    if len(parts) == 4:
        return _ids(text, parts[0], parts[2], parts[3])
    oldest_open = _number(text, parts[1])
    exceptions = sorted(_number(text, part) for part in parts[2:] if part)
    return ValidIds(
        _number(text, parts[0]),
        tuple(number for number in exceptions if number >= oldest_open),
        tuple(number for number in exceptions if number < oldest_open),
    )


def parse_valid_write_ids(text: str, ids_max: int = _IDS_MAX) -> ValidWriteIds:
    """`db.tbl:hwm:minOpen:open:aborted`, with or without ranges. Raises InvalidList, TooManyIds."""
    parts = text.strip().split(":")
    if len(parts) < 3 or len(parts) > 5:
        raise InvalidList(f"{_shown(text)} is not a list of valid write ids")
    table, high_water_mark, _, open_ids, aborted_ids = (*parts, "", "")[:5]
    ids = _ids(text, high_water_mark, open_ids, aborted_ids, ids_max)
    return ValidWriteIds(None if table == "null" else table, ids)


def split_table_id(sent: str) -> tuple[str, int | None]:
    """`db.table:…;id=17`: the text of the list, and the table's id. Raises InvalidList."""
    text, _, rest = sent.partition(";")
    prefix, _, table_id = rest.strip().partition("=")
    if rest and not (prefix == "id" and table_id.isascii() and table_id.isdigit() and len(table_id) < 19):
        raise InvalidList(f"{rest.strip()[:80]!r} is not the id of a table; write ;id=17 behind the list")
    return text, int(table_id) if rest else None


def parse_valid_txn_write_ids(text: str) -> tuple[int, list[ValidWriteIds]]:
    """`txnId$list$list…`: the write ids one query sees in each of its tables. Raises InvalidList."""
    txn_id, *lists = text.strip().split("$")
    return _number(text, txn_id), [parse_valid_write_ids(one) for one in lists if one]


def valid_txns_text(ids: ValidIds, *, has_ranges: bool = False) -> str:
    """The form of 3.1, with `has_ranges` that of 4."""
    open_text, aborted_text = (_list_text(each, has_ranges) for each in (ids.open_ids, ids.aborted_ids))
    return f"{ids.high_water_mark}:{_oldest_text(ids)}:{open_text}:{aborted_text}"


def valid_txns_text_2_3(ids: ValidIds) -> str:
    return f"{ids.high_water_mark}:{_oldest_text(ids)}:" + ":".join(map(str, ids.exceptions))


def valid_write_ids_text(valid: ValidWriteIds, *, has_ranges: bool = False) -> str:
    return f"{'null' if valid.table is None else valid.table}:{valid_txns_text(valid.ids, has_ranges=has_ranges)}"


def valid_txn_write_ids_text(txn_id: int, lists: Iterable[ValidWriteIds], *, has_ranges: bool = False) -> str:
    return "$".join([str(txn_id), *(valid_write_ids_text(one, has_ranges=has_ranges) for one in lists)])


def are_equivalent(one: ValidWriteIds, other: ValidWriteIds) -> bool:
    """Hive's test of two lists: they let the same ids through, below the lower mark and up to the higher one."""
    return one.table == other.table and compare(one, other) == 0


def compare(one: ValidWriteIds, other: ValidWriteIds) -> int:
    """Hive's order of two lists of a table: -1 when `one` is older, 0, or 1.

    Only meaningful when one list continues the other; whether a reader may be given what was read under another list
    is `covers`.
    """
    if one.table != other.table:
        return _sign((one.table or "") > (other.table or ""), (one.table or "") < (other.table or ""))
    mine, theirs = one.ids.exceptions, other.ids.exceptions
    for here, there in zip(mine, theirs, strict=False):
        if here != there:
            return _sign(here > there, here < there)
    if len(mine) == len(theirs):
        return _difference(one.ids.high_water_mark, other.ids.high_water_mark)
    if len(mine) < len(theirs):
        return _against_longer(one.ids.high_water_mark, theirs[len(mine) :], other.ids.high_water_mark)
    return -_against_longer(other.ids.high_water_mark, mine[len(theirs) :], one.ids.high_water_mark)


def covers(cached: ValidWriteIds, reader: ValidWriteIds) -> bool:
    """Whether everything the reader sees had been seen when `cached` was (semantics §6.2): valid(reader) is a subset.

    Unlike `compare` it is right when a reader has marked its own uncommitted id as valid.
    """
    if cached.table != reader.table:
        return False
    hidden = {number for number in reader.ids.exceptions if number <= reader.ids.high_water_mark}
    if any(number not in hidden for number in cached.ids.exceptions if number <= reader.ids.high_water_mark):
        return False
    beyond = reader.ids.high_water_mark - cached.ids.high_water_mark
    return beyond <= 0 or sum(1 for number in hidden if number > cached.ids.high_water_mark) == beyond


def allocate(txn_ids: Iterable[int], known: Mapping[int, int], last: int) -> tuple[dict[int, int], int]:
    """Write ids for transactions: a known one again, else the next, in order of the transactions; and the new last."""
    given: dict[int, int] = {}
    for txn_id in sorted(set(txn_ids)):
        if txn_id in known:
            given[txn_id] = known[txn_id]
        else:
            last += 1
            given[txn_id] = last
    return given, last


def write_ids_seen(table: str, valid: ValidIds, last: int, rows: Iterable[tuple[int, int]]) -> ValidWriteIds:
    """What a reader with `valid` transactions sees of a table whose newest write id is `last`.

    `rows` are (transaction, write id) of all it may not see: excepted transactions, and those beyond its mark, which
    count as open. The write ids of the latter do not raise the table's mark. Those of all others are visible, also
    when nothing is known about them any more.
    """
    hidden = {write_id: txn_id for txn_id, write_id in rows}
    newest_seen = last
    while hidden.get(newest_seen, 0) > valid.high_water_mark:
        newest_seen -= 1
    aborted = set(valid.aborted_ids)
    within = sorted((write_id, txn_id) for write_id, txn_id in hidden.items() if write_id <= newest_seen)
    return ValidWriteIds(
        table,
        ValidIds(
            newest_seen,
            tuple(write_id for write_id, txn_id in within if txn_id not in aborted),
            tuple(write_id for write_id, txn_id in within if txn_id in aborted),
        ),
    )


def aborted_bits(listed: Sequence[int], aborted: Iterable[int]) -> bytes:
    """Bit n is set when the n-th id of the list is aborted; the lowest bit comes first, zero bytes at the end are left
    out (semantics §5.11).
    """
    chosen = set(aborted)
    bits = bytearray((len(listed) + 7) // 8)
    for position, number in enumerate(listed):
        if number in chosen:
            bits[position // 8] |= 1 << position % 8
    return bytes(bits).rstrip(b"\0")


def ids_with_bits(high_water_mark: int, listed: Sequence[int], bits: bytes | None) -> ValidIds:
    """The reverse of `aborted_bits`: what a list with its bits, as the metastore answers it, says."""
    chosen = bits or b""
    aborted = {
        number
        for position, number in enumerate(listed)
        if position // 8 < len(chosen) and chosen[position // 8] >> position % 8 & 1
    }
    in_order = sorted(listed)
    return ValidIds(
        high_water_mark,
        tuple(number for number in in_order if number not in aborted),
        tuple(number for number in in_order if number in aborted),
    )


def _against_longer(high_water_mark: int, extra: Sequence[int], longer_mark: int) -> int:
    """How a list compares with one that has the same exceptions and `extra` ones."""
    if high_water_mark != extra[0] - 1:
        return _difference(high_water_mark, extra[0] - 1)
    is_contiguous = extra[-1] == longer_mark and len(extra) == longer_mark - high_water_mark
    return 0 if is_contiguous else -1


def _difference(one: int, other: int) -> int:
    return _sign(one > other, one < other)


def _sign(is_newer: bool, is_older: bool) -> int:
    return int(is_newer) - int(is_older)


def _ids(text: str, high_water_mark: str, open_ids: str, aborted_ids: str, ids_max: int = _IDS_MAX) -> ValidIds:
    listed_open, listed_aborted = (tuple(sorted(_listed(text, ids, ids_max))) for ids in (open_ids, aborted_ids))
    return ValidIds(_number(text, high_water_mark), listed_open, listed_aborted)


def _listed(text: str, ids: str, ids_max: int) -> Iterator[int]:
    count = 0
    for part in ids.split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        numbers = range(_number(text, first), _number(text, last if dash else first) + 1)
        count += len(numbers)
        if count > ids_max:
            raise TooManyIds(f"{_shown(text)} names more than {ids_max} ids")
        yield from numbers


def _number(text: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19 or int(digits) > ID_MAX:
        raise InvalidList(f"{_shown(text)} is not a list of ids: {_shown(digits)} is not an id")
    return int(digits)


def _list_text(ids: Sequence[int], has_ranges: bool) -> str:
    return ",".join(_run_text(first, last, has_ranges) for first, last in _runs(ids))


def _runs(ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for number in ids:
        if first is not None and last is not None:
            if number == last + 1:
                last = number
                continue
            yield first, last
        first = last = number
    if first is not None and last is not None:
        yield first, last


def _run_text(first: int, last: int, has_ranges: bool) -> str:
    if has_ranges and last - first + 1 >= _RUN_MIN:
        return f"{first}-{last}"
    return ",".join(map(str, range(first, last + 1)))


def _oldest_text(ids: ValidIds) -> int:
    return ID_MAX if ids.oldest_open is None else ids.oldest_open


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")
