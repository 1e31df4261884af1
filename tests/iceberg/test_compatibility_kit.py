"""Iceberg's own compatibility kit for REST catalogs.

`HMS_TESTS_ICEBERG_KIT` names a folder with Iceberg's sources (tag apache-iceberg-1.10.2, which is the library's), and
in its folder `lib` the jars of JUnit 5 with its launcher and of AssertJ, from 3.24 on.
"""

import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.iceberg.java_library import TRUST_PASSWORD, library_jars, spark_jars, trust_store
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer

pytestmark = [pytest.mark.whole, pytest.mark.java, pytest.mark.slow]

_ICEBERG = "java/org/apache/iceberg"
SOURCES = (
    f"api/src/test/{_ICEBERG}/TestHelpers.java",
    f"core/src/test/{_ICEBERG}/catalog/CatalogTests.java",
    f"core/src/test/{_ICEBERG}/view/ViewCatalogTests.java",
    f"open-api/src/test/{_ICEBERG}/rest/RESTCompatibilityKitCatalogTests.java",
    f"open-api/src/test/{_ICEBERG}/rest/RESTCompatibilityKitViewCatalogTests.java",
    f"open-api/src/testFixtures/{_ICEBERG}/rest/RCKUtils.java",
)
# Namespaces for whose tables the kit asks for places there.
PLACES = [Path("/tmp", name) for name in ("ns", "newdb", "other_ns")]
# The gateway has Hive's rule for the names of databases. HiveCatalog leaves this case out.
REFUSED = {"testNamespaceWithSlash"}


@pytest.fixture
def kit():
    folder = os.environ.get("HMS_TESTS_ICEBERG_KIT")
    if folder is None:
        pytest.skip("no sources of Iceberg's compatibility kit (HMS_TESTS_ICEBERG_KIT)")
    return Path(folder)


@pytest.fixture
def places(kit):
    for each in PLACES:
        each.mkdir()
    yield [f"file:{each}" for each in PLACES]
    for each in PLACES:
        shutil.rmtree(each)


def test_a_gateway_with_rights_passes_the_kit(tmp_path, kit, places):
    classes, files = tmp_path / "classes", tmp_path / "files"
    class_path = ":".join([str(classes), *map(str, library_jars()), f"{spark_jars()}/*", f"{kit}/lib/*"])
    sources = [Path(__file__).with_name("java") / "Kit.java", *(kit / each for each in SOURCES)]
    javac = ["javac", "-nowarn", "-proc:none", "-d", classes, "-cp", class_path, *sources]
    subprocess.run(list(map(str, javac)), check=True, timeout=PATIENCE_SECONDS)
    files.mkdir()
    roots = [*places, f"file:{files}"]
    with GatewayServer(tmp_path / "gateway", settings={"authorization": None, "file_roots": roots}) as gateway:
        properties = {
            "java.io.tmpdir": files,
            "javax.net.ssl.trustStore": trust_store(tmp_path, gateway),
            "javax.net.ssl.trustStorePassword": TRUST_PASSWORD,
            "uri": f"https://127.0.0.1:{gateway.port}/iceberg",
            "warehouse": "hive",
            "rest.auth.type": "basic",
            "rest.auth.basic.username": gateway.user,
            "rest.auth.basic.password": gateway.password,
            "rck.requires-namespace-create": "true",
        }
        options = [f"-D{name}={value}" for name, value in properties.items()]
        command = ["java", "-XX:TieredStopAtLevel=1", *options, "-cp", class_path, "org.apache.iceberg.rest.Kit"]
        ran = subprocess.run(command, check=True, timeout=PATIENCE_SECONDS, stdout=subprocess.PIPE, text=True)
    found = defaultdict(list)
    for line in ran.stdout.splitlines():
        result, name, _ = line.split(" ", 2)
        found[result].append(name)
    assert set(found["FAILED"]) == REFUSED, ran.stdout
    assert len(found["SUCCESSFUL"]) > 100
