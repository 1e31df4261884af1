"""Random programs of calls on both metastores: HMS_COMPARED_CALLS of them in all, from seed HMS_COMPARED_SEED on.

The real metastore cannot tell apart catalogs that have gone different ways, so a program ends at a declared difference
that parts them.
"""

import os
from collections.abc import Iterator, Sequence

import pytest

from tests.comparison.comparing import Comparison, Finding
from tests.comparison.random_calls import PROGRAM_CALLS, Program
from tests.comparison.servers import Metastore, Step
from tests.comparison.shrinking import shrunk

CALLS = int(os.environ.get("HMS_COMPARED_CALLS", "3000"))
FIRST_SEED = int(os.environ.get("HMS_COMPARED_SEED", "0"))

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(params=["sqlite", "postgres"])
def gateway_of_each_database(request: pytest.FixtureRequest) -> Iterator[Metastore]:
    fixture = {"sqlite": "gateway", "postgres": "gateway_on_postgres"}[request.param]
    metastore = Metastore.ours(request.getfixturevalue(fixture))
    yield metastore
    metastore.close()


def test_random_programs(theirs: Metastore, gateway_of_each_database: Metastore) -> None:
    ours = gateway_of_each_database
    comparison = Comparison()

    def findings(steps: Sequence[Step]) -> list[Finding]:
        theirs.clean()
        ours.clean()
        return list(comparison.run(theirs, ours, steps))

    for seed in range(FIRST_SEED, FIRST_SEED + CALLS // 2 // PROGRAM_CALLS):
        program = Program(seed).steps()
        if findings(program):
            short = shrunk(program, lambda steps: bool(findings(steps)))
            calls = "\n".join(map(str, short))
            texts = "\n".join(map(str, findings(short)))
            pytest.fail(f"seed {seed}, shrunk to\n{calls}\n{texts}", pytrace=False)
