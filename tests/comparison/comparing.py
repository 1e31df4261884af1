"""Judges two answers to one call: equal, differing as declared, or a finding."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.comparison.answers import Answers, Difference
from tests.comparison.differences import DIFFERENCES, REMEMBERED
from tests.comparison.lock_history import followed, waits_for_itself
from tests.comparison.replies import Reply, different_places
from tests.comparison.servers import Metastore, Step, ask_both

SHOWN_CHARACTERS = 1_000
PLACES_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Finding:
    """An undeclared difference, as text for people."""

    position: int
    step: Step
    theirs: Reply
    ours: Reply

    def __str__(self) -> str:
        places = list(different_places(self.theirs, self.ours))[:PLACES_SHOWN]
        shown = "\n".join(
            f"    {place}\n      Hive: {_short(hive)}\n      ours: {_short(us)}" for place, hive, us in places
        )
        return f"call {self.position}: {str(self.step)[:SHOWN_CHARACTERS]}\n{shown}"


class Comparison:
    """Runs calls on both sides and counts which declared differences were seen."""

    def __init__(
        self,
        differences: Iterable[Difference] = DIFFERENCES,
        as_both_know: Callable[[Reply, Reply], tuple[Reply, Reply]] = lambda theirs, ours: (theirs, ours),
    ) -> None:
        """A comparison by a table of differences, whose rules see the two replies `as_both_know`."""
        self._differences, self._as_both_know = tuple(differences), as_both_know
        self.seen: Counter[str] = Counter()
        self.calls = 0
        self._earlier: list[Answers] = []

    def judge(self, position: int, step: Step, theirs: Reply, ours: Reply) -> Difference | Finding | None:
        """None when equal, the entry of the table that explains the difference, or the finding."""
        self.calls += 1
        is_equal = theirs == ours
        if is_equal and step.method not in REMEMBERED:
            return None
        theirs, ours = self._as_both_know(theirs, ours)
        answers = Answers(step.method, step.arguments, theirs, ours, self._earlier)
        self._earlier = [*self._earlier, answers] if step.method in REMEMBERED else self._earlier
        if is_equal:
            return None
        for difference in self._differences:
            if difference.explains(answers):
                self.seen[difference.name] += 1
                return difference
        return Finding(position, step, theirs, ours)

    def run(self, theirs: Metastore, ours: Metastore, steps: Iterable[Step]) -> Iterator[Finding]:
        """The findings of one script on two clean metastores. Ends where a declared difference parts the two."""
        self._earlier = []
        for position, step in enumerate(steps):
            verdict = self.judge(position, step, *ask_both(theirs, ours, step))
            if isinstance(verdict, Finding):
                yield verdict
            elif (verdict is not None and verdict.parts_catalogs) or (step.method == "lock" and self._is_deadlock()):
                return

    def _is_deadlock(self) -> bool:
        """Whether the last request has closed a circle. Hive leaves it waiting, we have aborted one of it."""
        newest = self._earlier[-1].ours.get("success")
        calls = ((one.method, one.arguments, one.ours) for one in self._earlier)
        return newest is not None and waits_for_itself(newest["lockid"], followed(calls))


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:SHOWN_CHARACTERS]
