"""An empty, migrated database for client processes."""

from pathlib import Path

import pytest

from hms_gateway.storage import migrate
from tests.linearizability.playing import MARIADB_OF_THE_WHOLE


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres), MARIADB_OF_THE_WHOLE])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    if request.param != "sqlite":
        url = request.getfixturevalue(f"fresh_{request.param}_database")
    migrate(url)
    return url
