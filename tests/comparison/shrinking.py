"""Makes a failing program shorter, so that a failure shows the calls that matter."""

from collections.abc import Callable, Sequence

from tests.comparison.servers import Step

RUNS_MAX = 80


def shrunk(steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool], runs_max: int = RUNS_MAX) -> list[Step]:
    """Fewer of the steps that still fail. Leaves out pieces, large ones first, and runs what is left."""
    left = list(steps)
    size = len(left) // 2
    runs = 0
    while size and runs < runs_max:
        start = 0
        while start < len(left) and runs < runs_max:
            shorter = left[:start] + left[start + size :]
            runs += 1
            if shorter and fails(shorter):
                left = shorter
            else:
                start += size
        size //= 2
    return left
