"""Names for constraints that come without one, as Hive makes them (semantics §2.15)."""

from collections.abc import Container, Sequence
from itertools import count


def generated_name(prefix: str, names: Sequence[str], now_milliseconds: int, taken: Container[str]) -> str:
    """`pk_554944422_1795214686664_0`: a hash of what it is on, the time, and a number that makes it unique."""
    digest = java_hash("{" + ",".join([*names, prefix]) + "}") & 0x7FFFFFFF
    candidates = (f"{prefix}_{digest}_{now_milliseconds}_{number}" for number in count())
    return next(name for name in candidates if name not in taken)


def java_hash(text: str) -> int:
    """What Java's String.hashCode gives, as a number of 32 bits."""
    units = text.encode("utf-16-be", errors="surrogatepass")
    digest = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        digest = (31 * digest + (high << 8 | low)) & 0xFFFFFFFF
    return digest
