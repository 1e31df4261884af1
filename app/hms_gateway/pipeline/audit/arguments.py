"""What job `audit` is given, and what it hands back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hms_gateway.pipeline.audit.rules.values import Severity
from hms_gateway.pipeline.jobs.results import JobResult


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditArguments:
    """Arguments of job `audit`.

    fix             file for a plan of what `apply` can do about the findings; empty is none
    html            file for a page about the findings; empty is none
    all_footers     read all footers, and not only those of directories that changed since the last audit
    no_footers      read none
    delete_orphans  let the plan delete directories that belong to no table
    quiet_seconds   what changed later than so long ago may be work that goes on
    small_bytes     mean size below which files are small
    small_files     so many small files in a directory are a finding
    fail_on         the least severity that counts for the exit status
    """

    fix: str = ""
    html: str = ""
    all_footers: bool = False
    no_footers: bool = False
    delete_orphans: bool = False
    quiet_seconds: float = 86_400.0
    small_bytes: int = 16 * 1024 * 1024
    small_files: int = 10
    fail_on: Severity = Severity.WARNING


@dataclass(frozen=True, kw_only=True)
class AuditResult(JobResult):
    """What an audit found.

    severities  findings by severity; `kinds` by severity and kind: "error missing"
    examples    some findings, the worst first
    actions     lines of the plan
    table       folder with all findings as Parquet
    """

    severities: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)
    examples: Sequence[Mapping[str, Any]] = ()
    actions: int = 0
    plan: str = ""
    html: str = ""
    table: str = ""
