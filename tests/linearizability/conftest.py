"""An empty, migrated database of each kind for client processes."""

from pathlib import Path

import pytest

from app.storage import migrate


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    if request.param == "postgres":
        url = request.getfixturevalue("fresh_postgres_database")
    migrate(url)
    return url
