"""The pytest plugin: fixtures `metastore`, `metastore_iceberg` and `metastore_spark`. docs/testing.md explains them.

pytest loads this module in every session, so it imports nothing that pytest has not.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

import hms_gateway.testing as testing

if TYPE_CHECKING:
    from hms_gateway.testing.spark import SharedSpark

PLACE = "pytest"


class MissingPackage(Exception):
    """A fixture needs what is not installed; the text says how to install it."""


@pytest.fixture(scope="session")
def metastore_settings() -> Mapping[str, object]:
    """Settings of `metastore`, as in docs/settings.md. Define a fixture of this name to change them."""
    return {}


@pytest.fixture(scope="session")
def metastore_spark_settings() -> Mapping[str, str]:
    """More settings of the session of `metastore_spark`. Define a fixture of this name to change them."""
    return {}


@pytest.fixture
def metastore(metastore_settings: Mapping[str, object]) -> Iterator[testing.RunningMetastore]:
    """A metastore with an empty catalog and an empty warehouse, for one test."""
    with testing.running(metastore_settings, PLACE) as running:
        yield running


@pytest.fixture
def metastore_iceberg(metastore: testing.RunningMetastore) -> Iterator[Any]:
    """A PyIceberg catalog on `metastore`. Raises MissingPackage."""
    try:
        from pyiceberg.catalog.hive import HiveCatalog
    except ImportError as error:
        raise _missing("metastore_iceberg", "PyIceberg", "pyiceberg", error) from error
    catalog = HiveCatalog("metastore", **metastore.iceberg_properties)
    yield catalog
    catalog.close()


@pytest.fixture(scope="session")
def _metastore_spark(
    metastore_spark_settings: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator["SharedSpark"]:
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise _missing("metastore_spark", "PySpark", "spark", error) from error
    from hms_gateway.testing.spark import SharedSpark

    shared = SharedSpark(metastore_spark_settings, tmp_path_factory.mktemp("metastore-spark"))
    yield shared
    shared.stop()


@pytest.fixture
def metastore_spark(metastore: testing.RunningMetastore, _metastore_spark: "SharedSpark") -> Iterator[Any]:
    """A new SparkSession whose catalog is `metastore`; all tests share one SparkContext. Raises MissingPackage."""
    with _metastore_spark.session(metastore) as session:
        yield session


# A test may run a session within its own.
_sessions: list[pytest.Config] = []


def pytest_configure(config: pytest.Config) -> None:
    _sessions.append(config)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    # Where another plugin had refused to begin, `pytest_configure` was not called.
    if config in _sessions:
        _sessions.remove(config)
    if not _sessions:
        testing.end_host()


def _missing(fixture: str, package: str, extra: str, error: ImportError) -> MissingPackage:
    return MissingPackage(
        f"{fixture} needs {package}: {sys.executable} -m pip install 'hms-gateway[{extra}]' ({error})"
    )
