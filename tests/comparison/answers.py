"""Two answers to one call, an entry of the table of differences, and what the entries ask about answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.comparison.replies import Reply, different_places

INTERNAL_ERROR, PROTOCOL_ERROR = 6, 7


@dataclass(frozen=True, slots=True)
class Answers:
    """One call and what both servers answered; `earlier` are the calls of the script before it that matter to some."""

    method: str
    arguments: Mapping[str, Any]
    theirs: Reply
    ours: Reply
    earlier: "Sequence[Answers]" = ()

    @property
    def exceptions(self) -> tuple[str | None, str | None]:
        """The names of both exceptions, None for an answer that is none."""
        return exception(self.theirs), exception(self.ours)

    @property
    def texts(self) -> tuple[str, str]:
        """Both exceptions' texts, empty where there is none."""
        return text(self.theirs), text(self.ours)


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of the table. `applies` says whether it accounts for these answers, whole as they are.

    After one that `parts_catalogs` the two hold different things, so nothing later in the same script can be compared.
    """

    name: str
    methods: str
    hive: str
    ours: str
    why: str
    applies: Callable[[Answers], bool]
    parts_catalogs: bool = False

    def explains(self, answers: Answers) -> bool:
        return (self.methods == "*" or answers.method in self.methods.split()) and self.applies(answers)


def exception(reply: Reply) -> str | None:
    name = next(iter(reply), "")
    return name if name.endswith("Exception") else None


def text(reply: Reply) -> str:
    name = exception(reply)
    return "" if name is None else str(reply[name].get("message") or "")


def internal_error(reply: Reply) -> bool:
    return "closed" in reply or reply.get("TApplicationException", {}).get("type") == INTERNAL_ERROR


def declared(reply: Reply) -> bool:
    return exception(reply) not in (None, "TApplicationException")


def other_text(*beginnings: str) -> Callable[[Answers], bool]:
    """The same exception; Hive's text begins like one of these."""

    def applies(answers: Answers) -> bool:
        theirs, ours = answers.exceptions
        return theirs is not None and theirs == ours and answers.texts[0].startswith(beginnings)

    return applies


def with_sorted_lists(value: Any) -> Any:
    """Every list in it in one order."""
    if isinstance(value, dict):
        return {key: with_sorted_lists(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted(map(with_sorted_lists, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def only_at(accounts_for: Callable[[str, Any, Any], bool]) -> Callable[[Answers], bool]:
    """Both succeed, and every place that differs is accounted for: path, Hive's value, ours."""

    def applies(answers: Answers) -> bool:
        if "success" not in answers.theirs or "success" not in answers.ours:
            return False
        return all(accounts_for(*place) for place in different_places(answers.theirs, answers.ours))

    return applies


def succeeds_here(*beginnings: str) -> Callable[[Answers], bool]:
    """Hive refuses with a text that begins like one of these, we answer."""
    return lambda answers: answers.texts[0].startswith(beginnings) and answers.exceptions[1] is None


def request(answers: Answers) -> Mapping[str, Any]:
    """The only argument."""
    return next(iter(answers.arguments.values()), None) or {}
