"""CPU time, waits and memory of processes and their children, out of /proc."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
# Positions in /proc/PID/stat behind the name: ppid, utime, stime, cutime, cstime.
_PARENT, _TIMES = 1, slice(11, 15)


class Used(NamedTuple):
    """CPU time of the servers and of their database server, and how often each process of that has waited."""

    server_seconds: float = 0.0
    database_seconds: float = 0.0
    waits_of: Mapping[int, int] = MappingProxyType({})

    @property
    def cpu_seconds(self) -> float:
        return self.server_seconds + self.database_seconds

    @property
    def database_waits(self) -> int:
        return sum(self.waits_of.values())

    def since(self, before: "Used") -> "Used":
        return Used(
            self.server_seconds - before.server_seconds,
            self.database_seconds - before.database_seconds,
            # One that has ended meanwhile is left out, as it cannot be read any more.
            {pid: waits - before.waits_of.get(pid, 0) for pid, waits in self.waits_of.items()},
        )

    def plus(self, other: "Used") -> "Used":
        return Used(
            self.server_seconds + other.server_seconds,
            self.database_seconds + other.database_seconds,
            Counter(self.waits_of) + Counter(other.waits_of),
        )


def waits_of(roots: Iterable[int]) -> dict[int, int]:
    """Of the processes and of all below them that run now: about one for each message that a database answers."""
    return {pid: _voluntary_switches(pid) for pid in _with_children(roots)}


def cpu_seconds(roots: Iterable[int]) -> float:
    """Of the processes, of all below them, and of children that have ended."""
    fields = {pid: _stat(pid) for pid in _with_children(roots)}
    return sum(sum(map(int, of_one[_TIMES])) for of_one in fields.values() if of_one) / _TICKS_A_SECOND


def resident_bytes(roots: Iterable[int]) -> int:
    """Memory that only these processes have, plus their share of what they share, as far as the kernel tells."""
    return sum(_proportional_bytes(pid) for pid in _with_children(roots))


def _with_children(roots: Iterable[int]) -> list[int]:
    children = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children[int(fields[_PARENT])].append(int(entry.name))
    found = list(roots)
    for pid in found:
        found += children[pid]
    return found


def _stat(pid: int) -> list[str]:
    """Empty when the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _voluntary_switches(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("voluntary_ctxt_switches")), 0)


def _proportional_bytes(pid: int) -> int:
    for name, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            text = Path(f"/proc/{pid}/{name}").read_text()
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0
