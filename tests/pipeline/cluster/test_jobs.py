"""Jobs on a standalone cluster: by the commands of docs/pipeline.md, and with an executor that is killed."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

from hms_gateway.gateway.auth.tokens import create_token
from tests.pipeline.crawl.trees import plant
from tests.pipeline.faults import cases
from tests.pipeline.faults.killing import outcome, start, when
from tests.support import spark_cluster
from tests.support.readme import ROOT
from tests.support.spark_variables import VARIABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.whole]

SECONDS_MAX = 270
KILLS = 10
CONFIGURATION = {
    **spark_cluster.CONFIGURATION,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.log.level": "INFO",
}
# What is printed in the document, and which fixture has the place.
PRINTED = {
    "s3://lake/pipeline": "{folder}/state",
    "s3://lake/warehouse": "{folder}/lake",
    "/shared/state": "{folder}/state",
    "file:/shared/lake": "file:{folder}/lake",
    "spark://host:7077": "{master}",
    "spark://master.example.org:7077": "{master}",
    "https://gateway:30443/gateway/default/hmshttpthrift/api/hms": "{url}",
    "/srv/etl/conf": "{folder}/conf",
}


@pytest.fixture
def place(gateway, tmp_path):
    """A gateway of the test's own, and a folder with what the document names."""
    with cases.opened(tmp_path / "place", gateway) as opened:
        (opened.folder / "environment").symlink_to(sys.prefix)
        (opened.folder / "events").mkdir()
        yield opened


def block_with(part):
    """The indented lines of the document that a part of them is in."""
    text = (ROOT / "docs" / "pipeline.md").read_text("utf-8")
    [block] = [block for block in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE) if part in block]
    return block


def run(block, place, master, **variables):
    """In bash; what is printed. Places of the document are those of the test."""
    for printed, value in PRINTED.items():
        block = block.replace(printed, value.format(folder=place.folder, master=master, url=place.server.url))
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HMS_GATEWAY_", "SPARK_"))}
    own |= {"SPARK_LOCAL_IP": "127.0.0.1", "PATH": f"{sys.prefix}/bin:{own['PATH']}"}
    own |= {name: VARIABLES[name] for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")}
    ran = subprocess.run(
        ["bash", "-e", "-c", block],
        cwd=place.folder,
        env={**own, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr[-5_000:]
    return ran.stdout + ran.stderr


def configuration(place, file, **more):
    lines = {**CONFIGURATION, "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{place.folder}/events"}
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{name} {value}\n" for name, value in {**lines, **more}.items()))


def files_with(secret, *folders):
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in found if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "where",
    ["local", pytest.param("cluster", marks=pytest.mark.whole)],
)
def test_spark_submit_as_printed(request, archive, place, where):
    cluster = request.getfixturevalue("cluster") if where == "cluster" else None
    plant(place.lake, *(f"shop.db/orders/ds=2026-01-0{day}/n={n}/a" for day in range(1, 6) for n in range(8)))
    configuration(place, place.folder / "hms.properties", **{"spark.hms.password": place.server.password})
    (place.folder / "hms.tar.gz").symlink_to(archive)
    before = cluster.unpacked("environment") if cluster else 0
    printed = run(
        block_with("spark-submit --master spark://host:7077"),
        place,
        cluster.url if cluster else "local[2,4]",
        HMS_GATEWAY_CACERT=place.metastore.options["cafile"],
    )
    assert re.search(r"partitions registered +40$", printed, re.MULTILINE)
    with place.metastore.client() as client:
        assert len(client.call("get_partition_names", "shop", "orders", -1)) == 40
    assert files_with(place.server.password, place.folder / "state", place.folder / "events") == []
    assert place.server.password not in printed
    if cluster:
        assert cluster.unpacked("environment") > before
        assert place.server.password not in cluster.log_text()


@pytest.mark.whole
def test_a_command_on_a_cluster_as_printed(cluster, archive, place):
    plant(place.lake, *(f"shop.db/orders/n={number}/a" for number in range(20)))
    # One executor: it costs as much as the driver.
    more = {"spark.archives": f"{archive}#environment", "spark.cores.max": "1"}
    configuration(place, place.folder / "conf/spark-defaults.conf", **more)
    secret, _ = create_token(place.server.data_dir / "tokens", place.server.user, now=int(time.time()), seconds=600)
    (place.folder / "token").write_text(f"{secret}\n")
    (place.folder / "gateway.pem").write_text(Path(place.metastore.options["cafile"]).read_text())
    before = cluster.unpacked("environment")
    printed = run(block_with("--token-file token"), place, cluster.url, HMS_GATEWAY_URL=place.server.url)
    assert re.search(r"partitions registered +20$", printed, re.MULTILINE)
    assert cluster.unpacked("environment") > before
    assert files_with(secret, place.folder / "state", place.folder / "events") == []
    assert secret not in printed + cluster.log_text()


@pytest.mark.whole
@pytest.mark.parametrize("number", range(KILLS))
def test_an_executor_is_killed_and_its_work_done_by_others(cluster, place, number):
    given = cases.CASES["crawl"].given(place)
    conf = {name: value for name, value in CONFIGURATION.items() if name != "spark.driver.memory"}
    given = replace(given, options=replace(given.options, master=cluster.url, conf=conf, calls=2))
    chance = random.Random(number)
    # There are 16 calls.
    steps = chance.randint(1, 12)
    killed = []

    def kill():
        killed.append(chance.choice(sorted(cluster.executors())))
        os.kill(killed[0], signal.SIGKILL)

    process = start(given)
    with when(given.state, steps, kill):
        result = outcome(process)
    assert killed
    assert (result["status"], result["refused"], result["counts"]["partitions"]) == ("done", 0, 80)
    _, happened = cases.catalog(place, result["run"])
    assert set(happened.values()) == {1}
    assert sum(name[0] == "ADD_PARTITION" for name in happened) == 80
