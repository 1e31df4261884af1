"""Random programs on both metastores, a sample of them.

The real metastore cannot tell apart catalogs that have gone different ways, so a program ends at a declared difference
that parts them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count

import pytest

from tests.comparison.comparing import Comparison, Finding
from tests.comparison.random_calls import program
from tests.comparison.servers import Metastore, Step
from tests.comparison.shrinking import shrunk
from tests.support.sample import FIRST_SEED

CALLS = 100_000
# The real metastore keeps what it was told about names, grants for instance, so no two programs share any.
NUMBERS = count(1)

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.whole]


@pytest.fixture(params=["sqlite", "postgres"])
def gateway_of_each_database(request: pytest.FixtureRequest) -> Iterator[Metastore]:
    fixture = {"sqlite": "gateway", "postgres": "gateway_on_postgres"}[request.param]
    metastore = Metastore.ours(request.getfixturevalue(fixture))
    yield metastore
    metastore.close()


def test_random_programs(theirs: Metastore, gateway_of_each_database: Metastore) -> None:
    ours = gateway_of_each_database
    ours.clean()
    comparison = Comparison()

    def findings(steps: Sequence[Step], *, counts: bool) -> list[Finding]:
        number = next(NUMBERS)
        for metastore in (theirs, ours):
            metastore.begin(number, counts=counts)
        return list(comparison.run(theirs, ours, steps))

    seeds = count(FIRST_SEED)
    while comparison.calls < CALLS // 2:
        seed = next(seeds)
        made = program(seed)
        fails = partial(findings, counts=made.counts)
        steps = made.steps()
        found = fails(steps)
        if found:
            short = shrunk(steps, partial(_any, fails))
            calls = "\n".join(map(str, short))
            texts = "\n".join(map(str, (found[0], "again:", *fails(short))))
            pytest.fail(f"seed {seed}, shrunk to\n{calls}\n{texts}", pytrace=False)


def _any(findings: Callable[[Sequence[Step]], list[Finding]], steps: Sequence[Step]) -> bool:
    return bool(findings(steps))
