"""We answer as the real metastore has answered, but for the declared differences. Needs no Java."""

from collections import Counter
from pathlib import Path

import pytest

from hms_gateway.rpc.call import Dialect
from tests.comparison import corpus
from tests.comparison.comparing import Comparison, Finding
from tests.comparison.differences import DIFFERENCES
from tests.comparison.servers import Metastore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen() -> dict[str, Counter[str]]:
    """The declared differences that each script has shown."""
    return {}


@pytest.mark.parametrize("script", [script for script in corpus.SCRIPTS if script not in corpus.LONG])
def test_answers_are_as_recorded(script: str, ours: Metastore, seen: dict[str, Counter[str]]) -> None:
    compare(script, ours, seen)


@pytest.mark.parametrize("script", corpus.LONG)
def test_answers_without_the_edge_are_as_recorded(script: str, tmp_path: Path, seen: dict[str, Counter[str]]) -> None:
    with Metastore.within(tmp_path, Dialect.HIVE_2_3) as ours:
        ours.clean()
        compare(script, ours, seen)


def compare(script: str, ours: Metastore, seen: dict[str, Counter[str]]) -> None:
    comparison = Comparison()
    findings = []
    for position, (step, theirs) in enumerate(corpus.read(script)):
        verdict = comparison.judge(position, step, theirs, ours.ask(step))
        if isinstance(verdict, Finding):
            findings.append(str(verdict))
    seen[script] = comparison.seen
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize("script", corpus.SCRIPTS)
def test_the_corpus_has_the_calls_of_the_script(script: str) -> None:
    assert [step for step, _ in corpus.read(script)] == corpus.steps_of(script), "record it again"


def test_every_declared_difference_is_shown(seen: dict[str, Counter[str]]) -> None:
    if set(seen) != set(corpus.SCRIPTS):
        pytest.skip("not all of the corpus has run")
    shown = sum(seen.values(), Counter())
    unshown = [entry.name for entry in DIFFERENCES if not shown[entry.name]]
    assert not unshown, unshown
