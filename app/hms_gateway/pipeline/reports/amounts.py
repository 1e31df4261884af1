"""Numbers as people read them: counts, bytes, seconds, shares."""

from typing import Final

from hms_gateway.pipeline.reports.page import Unit

_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SECOND_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_SCALE: Final = 1_024


def amount_text(value: float, unit: Unit | None = None) -> str:
    """A number in its unit."""
    if unit is Unit.BYTES:
        return bytes_text(value)
    if unit is Unit.SECONDS:
        return duration_text(value)
    if unit is Unit.PERCENT:
        return f"{value:.1f} %".replace(".0 %", " %")
    return count_text(value)


def count_text(value: float) -> str:
    """`1,234`, `0.25`."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}"


def bytes_text(value: float) -> str:
    """`17 B`, `1.5 GiB`: three digits at most, as long as there is a larger unit."""
    size, steps = float(value), 0
    while abs(size) >= _SCALE - 0.5 and steps < len(_BYTE_UNITS) - 1:
        size /= _SCALE
        steps += 1
    digits = 1 if steps and abs(size) < 9.95 else 0
    return f"{size:,.{digits}f}".removesuffix(".0") + f" {_BYTE_UNITS[steps]}"


def duration_text(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `2.5 h`."""
    for length, name in _SECOND_UNITS:
        if abs(seconds) >= length:
            return f"{seconds / length:,.1f}".removesuffix(".0") + f" {name}"
    return (f"{seconds:.1f}".removesuffix(".0") if abs(seconds) < 10 else f"{seconds:.0f}") + " s"
