"""fb303: who answers, and how it is (semantics §2.1)."""

from collections.abc import Callable, Mapping
from typing import Final

from hms_gateway.rpc.call import Call
from hms_gateway.runtime.clock import Clock
from hms_gateway.structs import fb_status

# Options mean nothing to the metastore, so the oldest one makes room.
_OPTIONS_MAX: Final = 1000


class Service:
    """`counters` gives the number of calls by method."""

    def __init__(self, clock: Clock, counters: Callable[[], Mapping[str, int]] = dict) -> None:
        self._started = clock.seconds()
        self._counters = counters
        self._options: dict[str, str] = {}

    def getName(self, call: Call) -> str:
        return "new db based metaserver"

    def getVersion(self, call: Call) -> str:
        return "3.0"

    def getStatus(self, call: Call) -> int:
        return fb_status.ALIVE

    def getStatusDetails(self, call: Call) -> str:
        return ""

    def getCounters(self, call: Call) -> dict[str, int]:
        return dict(self._counters())

    def getCounter(self, call: Call, key: str) -> int:
        return self._counters().get(key, 0)

    def setOption(self, call: Call, key: str | None, value: str | None) -> None:
        if key is None or value is None:
            return
        self._options[key] = value
        if len(self._options) > _OPTIONS_MAX:
            self._options.pop(next(iter(self._options)), None)

    def getOption(self, call: Call, key: str) -> str | None:
        """None for a key that is not set, which clients see as a missing result."""
        return self._options.get(key)

    def getOptions(self, call: Call) -> dict[str, str]:
        return dict(self._options)

    def getCpuProfile(self, call: Call, profileDurationInSec: int) -> str:
        return ""

    def aliveSince(self, call: Call) -> int:
        return self._started

    def reinitialize(self, call: Call) -> None:
        """Nothing: every call starts afresh."""

    def shutdown(self, call: Call) -> None:
        """Nothing: Java clients send it whenever they close a connection (clients §0 rule 9)."""
