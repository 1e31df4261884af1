"""A standalone cluster for the tests of this folder, and the package as an archive."""

import shutil
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from tests.spark.spark_session import why_not
from tests.support.readme import ROOT
from tests.support.spark_cluster import SparkCluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    if reason := why_not():
        pytest.skip(reason)
    pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    """An environment with the package; libraries are those of the tests, which would take long to pack."""
    folder = tmp_path_factory.mktemp("environment")
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    for name in ("hms_gateway", "pyspark_hms"):
        shutil.copytree(ROOT / "app" / name, packages / name)
    shutil.copytree(ROOT / "schema", packages / "hms_gateway" / "schema")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = Path(sys.executable).resolve()
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(python)
    (folder / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    file = folder.parent / "environment.tar.gz"
    with tarfile.open(file, "w:gz", compresslevel=1) as tar:
        tar.add(folder, ".")
    return file
