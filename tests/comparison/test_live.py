"""The scripts on both metastores at the same time, and whether the corpus still says what the real one says."""

from collections.abc import Iterator

import pytest

from tests.comparison import corpus
from tests.comparison.comparing import Comparison, Finding
from tests.comparison.servers import Metastore, ask_both
from tests.support.server import GatewayServer

# Every run compares ours with what is recorded of all.
pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.whole]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """One of its own: options that a script has set stay for as long as a server runs."""
    with Metastore.gateway(tmp_path_factory.mktemp("gateway_beside_the_real_one")) as server:
        yield server


@pytest.mark.parametrize("script", corpus.SCRIPTS)
def test_both_answer_alike(script: str, theirs: Metastore, ours: Metastore) -> None:
    comparison = Comparison()
    findings = []
    for position, (step, recorded) in enumerate(corpus.read(script)):
        real, gateway = ask_both(theirs, ours, step)
        verdicts = comparison.judge(position, step, real, gateway), comparison.judge(position, step, recorded, real)
        findings += [str(verdict) for verdict in verdicts if isinstance(verdict, Finding)]
    assert not findings, "\n".join(findings)
