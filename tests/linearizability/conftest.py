"""An empty, migrated database for client processes."""

from pathlib import Path

import pytest

from tests.linearizability.playing import MARIADB_OF_THE_WHOLE
from tests.support.catalog import place_empty_database


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres), MARIADB_OF_THE_WHOLE])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        place_empty_database(tmp_path / "catalog.sqlite")
        return f"sqlite:///{tmp_path}/catalog.sqlite"
    url: str = request.getfixturevalue(f"migrated_{request.param}_database")
    return url
