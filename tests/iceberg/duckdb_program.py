"""DuckDB with its extensions for Iceberg, in an environment of its own (`scripts/peers all`)."""

import json
import subprocess
from typing import Any, Final

from tests.support.readme import ROOT

ENVIRONMENT: Final = ROOT / ".venv" / "engines" / "duckdb"
# Each statement of the argument, and the rows that the last one gives.
PROGRAM: Final = """
import duckdb, glob, json, sys
connection = duckdb.connect(config={"allow_unsigned_extensions": True})
for name in ("httpfs", "avro", "iceberg"):
    places = f"{sys.prefix}/lib/*/site-packages/duckdb_extension_{name}/extensions/*/*.duckdb_extension"
    (file,) = glob.glob(places)
    connection.execute(f"LOAD '{file}'")
for statement in json.loads(sys.argv[1]):
    found = connection.execute(statement)
print(json.dumps(found.fetchall()))
"""


def rows_of(*statements: str) -> Any:
    """The rows of the last statement."""
    program = [str(ENVIRONMENT / "bin" / "python"), "-c", PROGRAM, json.dumps(statements)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
