"""What a job hands back: one JSON document, and an exit status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

EXIT_DONE: Final = 0
EXIT_FOUND: Final = 1


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """Jobs add fields of their own.

    run        id of the run
    kind       which job
    status     "done", or "planned" after a dry run
    findings   what the job found that a person should look at
    refused    items that could not be done, each with a reason in `refusals` of the result folder
    counts     what was done
    passed_over  tables and partitions that were not looked at: outside of the roots, or without a library
    folder     where the run keeps plan and result
    """

    run: str
    kind: str
    status: str
    findings: int = 0
    refused: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    passed_over: int = 0
    folder: str = ""
    seconds: float = 0.0

    @property
    def exit_status(self) -> int:
        """0: done, and nothing was found. 1: done, with findings or refusals."""
        return EXIT_FOUND if self.findings or self.refused else EXIT_DONE

    def as_json(self) -> str:
        values: dict[str, Any] = msgspec.to_builtins(self)
        return msgspec.json.format(msgspec.json.encode(values), indent=2).decode()
