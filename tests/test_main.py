"""What putting a gateway together takes."""

import subprocess
import sys

import pytest

from app.main import build_metastore
from app.settings import Settings


def test_a_server_loads_nothing_it_may_never_need(tmp_path):
    """Other databases and file systems, migrations, certificates and metrics are loaded where they are used."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "import app.cli.serving\n"
        "from app.main import build_metastore\n"
        "from app.settings import Settings\n"
        "settings = Settings(data_dir=Path(sys.argv[1]), tls=False)\n"
        "build_metastore(settings).store.close()\n"
        "migrating = {'alembic', 'sqlalchemy.dialects.mysql', 'sqlalchemy.dialects.postgresql'}\n"
        "never = {'cryptography', 'fsspec', 'httpx', 'prometheus_client', 'psycopg', 'starlette'}\n"
        "never |= {'app.bridge', 'app.client'}\n"
        "print(sorted((never | (migrating if len(sys.argv) > 2 else set())) & set(sys.modules)))\n"
    )
    for words in ([], ["is a later start"]):
        command = [sys.executable, "-c", code, str(tmp_path), *words]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert said.stdout == "[]\n"


@pytest.mark.parametrize(("timeout_seconds", "every_seconds"), [(5, 5), (300, 30)])
def test_transactions_are_looked_at_as_often_as_they_end(tmp_path, timeout_seconds, every_seconds):
    metastore = build_metastore(Settings(data_dir=tmp_path, tls=False, txn_timeout_seconds=timeout_seconds))
    try:
        by_name = {chore.name: chore.every_seconds for chore in metastore.chores}
    finally:
        metastore.store.close()
    assert by_name["expire transactions and locks"] == every_seconds
