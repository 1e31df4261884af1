"""The catalog that the aggregates are tested on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.catalog import Catalog, open_catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with open_catalog(tmp_path) as catalog:
        yield catalog
