"""Names for constraints that come without one, as Hive makes them (semantics §2.15)."""

from collections.abc import Container, MutableMapping, Sequence
from itertools import count


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
    """What Java's String.hashCode gives, as a number of 32 bits."""
    units = text.encode("utf-16-be", errors="surrogatepass")
    digest = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        digest = (31 * digest + (high << 8 | low)) & 0xFFFFFFFF
    return digest
