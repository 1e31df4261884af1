"""The command `hms-gateway` where settings and limits that are fixed can be set: a test of them would take too long."""

from typing import get_type_hints

from hms_gateway.cli import main
from hms_gateway.runtime import limits, settings, settings_reading


def free_fixed_settings() -> None:
    settings_reading._KINDS.update(get_type_hints(settings.Settings, include_extras=True))
    settings_reading._LIMITS.update(get_type_hints(limits.Limits, include_extras=True))


if __name__ == "__main__":
    free_fixed_settings()
    main()
