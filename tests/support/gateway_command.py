"""The command `hms-gateway` where settings and limits that are fixed can be set: a test of them would take too long.

With the variable CLOCK the clock is ahead by the seconds in the file that it names.
"""

import os
from pathlib import Path
from typing import Final, get_type_hints

from hms_gateway.cli import main
from hms_gateway.runtime import limits, settings, settings_reading
from hms_gateway.runtime.clock import SystemClock

CLOCK: Final = "HMS_TESTS_CLOCK"


def take_liberties() -> None:
    """As the variables say, from now on in this process."""
    _free_fixed_settings()
    if CLOCK in os.environ:
        _shift_clock(Path(os.environ[CLOCK]))


def _free_fixed_settings() -> None:
    settings_reading._KINDS.update(get_type_hints(settings.Settings, include_extras=True))
    settings_reading._LIMITS.update(get_type_hints(limits.Limits, include_extras=True))


def _shift_clock(file: Path) -> None:
    milliseconds = SystemClock.milliseconds

    def shifted(clock: SystemClock) -> int:
        # It is empty while it is written.
        return milliseconds(clock) + 1000 * int(file.read_text() or 0)

    setattr(SystemClock, "milliseconds", shifted)  # noqa: B010
    setattr(SystemClock, "seconds", lambda clock: shifted(clock) // 1000)  # noqa: B010


if __name__ == "__main__":
    take_liberties()
    main()
