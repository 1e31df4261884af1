"""Names of databases, tables and other objects: normalising and validating.

The ids under which storage keeps them, and the names that Hive makes for constraints without one (semantics §2.15).
"""

import re
from collections.abc import Container, MutableMapping, Sequence
from itertools import count
from typing import Final, NewType

from hms_gateway.rpc.structs.catalogs import TRIMMED

DEFAULT_DATABASE: Final = "default"

# Kinds of names that are found, beside the types of tables.
DATABASE: Final = "DATABASE"
FUNCTION: Final = "FUNCTION"

_WORD = re.compile(r"[A-Za-z0-9_]+")
_WORD_OR_SLASH = re.compile(r"[A-Za-z0-9_/]+")


class InvalidName(ValueError):
    """A name breaks the rule for its kind of object; the text is the one clients see."""


def trim(text: str) -> str:
    """`text` without leading and trailing blanks and control characters, as Java trims."""
    return text.strip(TRIMMED)


def normalize(name: str) -> str:
    """The form under which a database, table, column, index or function is stored and found (semantics §0.2)."""
    return trim(name).lower()


def check_database_name(name: str, *, allows_hyphen: bool = False) -> None:
    """Raise InvalidName unless `name` may be given to a new database (semantics §1.1).

    Hive 4 allows every special character in names of databases and tables; of these the hyphen is safe in directories,
    patterns and texts like `db.table`, and is what its clients use.
    """
    if not _WORD.fullmatch(_without_hyphens(name, allows_hyphen)):
        raise InvalidName(f"{name} is not a valid database name")


def check_catalog_name(name: str) -> None:
    """Raise InvalidName unless `name` may be given to a new catalog (semantics §1.1)."""
    if not _WORD.fullmatch(name):
        raise InvalidName(f"{name} is not a valid catalog name")


def check_table_name(name: str, *, allows_hyphen: bool = False) -> None:
    """Raise InvalidName unless `name` may be given to a table, on create and on rename alike (semantics §1.1)."""
    if not _WORD_OR_SLASH.fullmatch(_without_hyphens(name, allows_hyphen)):
        raise InvalidName(f"{name} is not a valid object name")


def check_function_name(name: str) -> None:
    """Raise InvalidName unless `name` may be given to a function (semantics §1.1)."""
    if not _WORD.fullmatch(name):
        raise InvalidName(f"{name} is not a valid object name")


def check_type_name(name: str) -> None:
    """Raise InvalidName unless `name` may be given to a type of `create_type` (semantics §1.1)."""
    if not _WORD.fullmatch(name):
        raise InvalidName("Invalid type name")


def is_default_database(name: str) -> bool:
    """Whether `name`, however spelled, is the database that cannot be dropped (semantics §1.3)."""
    return normalize(name) == DEFAULT_DATABASE


def display_name(database: str | None, name: str | None) -> str:
    """`database.name` as error texts show it: the caller's spelling, absent parts as `null`."""
    return f"{_shown(database)}.{_shown(name)}"


def _shown(part: str | None) -> str:
    return "null" if part is None else part


def _without_hyphens(name: str, allows_hyphen: bool) -> str:
    return name.replace("-", "") if allows_hyphen else name


DatabaseId = NewType("DatabaseId", int)
TableId = NewType("TableId", int)
PartitionId = NewType("PartitionId", int)
EventId = NewType("EventId", int)
FunctionId = NewType("FunctionId", int)
IndexId = NewType("IndexId", int)


def generated_name(
    prefix: str, names: Sequence[str], now_milliseconds: int, taken: Container[str], tried: MutableMapping[str, int]
) -> str:
    """`pk_554944422_1795214686664_0`: a hash of what it is on, the time, and a number that makes it unique.

    `tried` remembers from call to call which numbers need not be tried again.
    """
    digest = java_hash("{" + ",".join([*names, prefix]) + "}") & 0x7FFFFFFF
    stem = f"{prefix}_{digest}_{now_milliseconds}_"
    number = next(number for number in count(tried.get(stem, 0)) if f"{stem}{number}" not in taken)
    tried[stem] = number + 1
    return f"{stem}{number}"


def java_hash(text: str) -> int:
    """Result of Java's String.hashCode, as a number of 32 bits."""
    units = text.encode("utf-16-be", errors="surrogatepass")
    digest = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        digest = (31 * digest + (high << 8 | low)) & 0xFFFFFFFF
    return digest
