"""Time-outs of drivers are for networks that are cut: a busy machine may take longer."""

from hms_gateway.storage.dialects import mysql_engines
from tests.support.patience import PATIENCE_SECONDS

setattr(mysql_engines, "_READ_SECONDS_MAX", PATIENCE_SECONDS)  # noqa: B010
