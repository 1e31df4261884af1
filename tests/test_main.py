"""What putting a gateway together takes."""

import subprocess
import sys


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
