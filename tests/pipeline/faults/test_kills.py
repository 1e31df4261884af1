"""Kill -9 of driver, workers and gateway at random moments of every job, and a state folder that becomes full: after
a resume all is as after an undisturbed run.

`make test` hits a crawl in each way; `make test-all` each job ten times. The seed of each is its number.
"""

import random

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from tests.pipeline.content import filled_gateway
from tests.pipeline.faults.cases import CASES, fill_source, opened
from tests.pipeline.faults.killing import VICTIMS, Blow, DiskUnavailable, steps_done

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RUNS = 10
# A crawl by each of VICTIMS is the sample.
HITS = [
    pytest.param(name, number, marks=[] if name == "crawl" and number < len(VICTIMS) else [pytest.mark.whole])
    for name in CASES
    for number in range(RUNS)
]
LATER_SECONDS_MAX = 0.3


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Where a catalog is migrated from."""
    with filled_gateway(tmp_path_factory.mktemp("source")) as metastore:
        fill_source(metastore)
        yield metastore


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("faults") / "place"


@pytest.fixture(scope="module")
def undisturbed(spark, folder):
    """What a job leaves behind that nobody disturbs, and how many batches it has; each done once."""
    known = {}

    def of(name, source):
        if name not in known:
            with opened(folder, source) as place:
                given = CASES[name].given(place)
                result = given.run(spark)
                known[name] = CASES[name].left(place, result), result, steps_done(given.state)
        return known[name]

    return of


@pytest.mark.parametrize(("name", "number"), HITS)
def test_a_run_that_was_hit_ends_like_an_undisturbed_one(request, spark, gateway, folder, undisturbed, name, number):
    source = request.getfixturevalue("source") if name == "migrate" else gateway
    left, result, steps = undisturbed(name, source)
    chance = random.Random(f"{name} {number}")
    victim = VICTIMS[(list(CASES).index(name) + number) % len(VICTIMS)]
    blow = Blow(victim, chance.randint(1, steps), chance.uniform(0, LATER_SECONDS_MAX))
    print(f"{blow} of {steps} batches")
    with opened(folder, source) as place:
        given = CASES[name].given(place)
        try:
            after = blow.on(given, spark, place.server)
        except DiskUnavailable:
            pytest.skip("no right to mount a small file system")
        assert CASES[name].left(place, after) == left
        fields = ("status", "findings", "refused")
        assert [after[field] for field in fields] == [result[field] for field in fields]
        with place.metastore.client() as client:
            assert client.call("list_lease", []) == []
