"""We answer callers of 3.1 as Hive 3.1.3 has answered, but for the declared differences. Needs no Java."""

from collections import Counter
from collections.abc import Iterator

import pytest

from hms_gateway.rpc.call import Dialect
from tests.comparison import corpus
from tests.comparison.comparing import Comparison, Finding
from tests.comparison.differences import DIFFERENCES
from tests.comparison.servers import Metastore
from tests.comparison.third_differences import THIRD, UNASKED, as_both_know, unasked
from tests.oracle.peer import PeerUnavailable
from tests.oracle.third_peer import ThirdMetastore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen() -> Counter[str]:
    """The declared differences that have been shown."""
    return Counter()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    """Without the edge, by which the other corpus is answered."""
    with Metastore.within(tmp_path_factory.mktemp("ours_as_hive_3"), Dialect.HIVE_4) as metastore:
        yield metastore


@pytest.mark.parametrize("script", corpus.THIRD_SCRIPTS)
def test_answers_are_as_recorded(script: str, ours: Metastore, seen: Counter[str]) -> None:
    ours.clean()
    comparison = Comparison((*THIRD, *DIFFERENCES), as_both_know)
    findings = []
    for position, (step, theirs) in enumerate(corpus.read(script, corpus.THIRD_FOLDER)):
        if (difference := unasked(step, theirs)) is not None:
            seen[difference.name] += 1
            continue
        verdict = comparison.judge(position, step, theirs, ours.ask(step))
        if isinstance(verdict, Finding):
            findings.append(str(verdict))
    seen.update(comparison.seen)
    assert not findings, "\n".join(findings)


@pytest.fixture(scope="module")
def third(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    try:
        with ThirdMetastore(tmp_path_factory.mktemp("third") / "metastore") as peer:
            metastore = Metastore.real(peer)
            yield metastore
            metastore.close()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.java
@pytest.mark.whole
@pytest.mark.parametrize("script", corpus.THIRD_SCRIPTS)
def test_hive_3_still_answers_so(script: str, third: Metastore) -> None:
    third.clean()
    comparison = Comparison((*THIRD, *DIFFERENCES), as_both_know)
    recorded = enumerate(corpus.read(script, corpus.THIRD_FOLDER))
    verdicts = [comparison.judge(position, step, theirs, third.ask(step)) for position, (step, theirs) in recorded]
    findings = [str(verdict) for verdict in verdicts if isinstance(verdict, Finding)]
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize("script", corpus.THIRD_SCRIPTS)
def test_the_corpus_has_the_calls_of_the_script(script: str) -> None:
    assert [step for step, _ in corpus.read(script, corpus.THIRD_FOLDER)] == corpus.steps_of(script), "record it again"


def test_every_declared_difference_is_shown(seen: Counter[str]) -> None:
    if not seen:
        pytest.skip("the corpus has not run")
    unshown = [entry.name for entry in (*THIRD, *UNASKED) if not seen[entry.name]]
    assert not unshown, unshown
