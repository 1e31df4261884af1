"""How many connections fit below the limit of open files, which is raised as far as the system allows."""

import contextlib
import resource

import structlog

from hms_gateway.gateway.admission.refusals import Refusals
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.runtime.connections import Connections
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, parts

# Files besides connections: database, log, libraries.
OTHER_FILES = 200

_log = structlog.get_logger("hms_gateway.server")


def bounded_connections(limits: Limits, metrics: Metrics) -> Connections:
    """What counts the connections of a process; says so where fewer fit than the limit allows."""
    refusals = Refusals(metrics)

    def refused(limit: str, holder: Holder) -> None:
        metrics.connections_refused += 1
        refusals.note(limit, user=holder.user or "", address=holder.address or "")

    total = Bound("connections_max", _connections_that_fit(limits.connections_max))
    per_user, per_address = parts(total, limits)
    return Connections(total, per_address, refused, per_user=per_user)


def _connections_that_fit(wanted: int) -> int:
    files = _files_allowed(wanted + OTHER_FILES)
    fitting = max(files - OTHER_FILES, files // 4)
    if fitting >= wanted:
        return wanted
    _log.warning(
        "fewer connections fit than connections_max; raise the limit of open files (ulimit -n, LimitNOFILE)",
        connections_max=wanted,
        connections=fitting,
        open_files=files,
    )
    return fitting


def _files_allowed(needed: int) -> int:
    """Raise the limit of open files as far as it goes; the limit that holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return needed
    wanted = max(soft, needed) if hard == resource.RLIM_INFINITY else hard
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
