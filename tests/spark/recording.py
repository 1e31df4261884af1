"""What the real metastore answered to each scenario, as it lies in `recorded/`.

    python -m tests.spark.recording [NAME …]

starts the real metastore and writes the records of the named scenarios anew, of all when none is named.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.oracle.peer import RealMetastore
from tests.spark.scenario_run import Place, outcome
from tests.spark.scenarios import SCENARIOS
from tests.spark.spark_session import SparkSessionProcess

FOLDER = Path(__file__).with_name("recorded")


def load(name: str) -> dict[str, Any]:
    """The recorded outcome of a scenario."""
    found: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return found


def save(name: str, found: dict[str, Any]) -> None:
    text = json.dumps(found, ensure_ascii=False, sort_keys=True, indent=0)
    # Without a time inside, equal content is an equal file.
    (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, RealMetastore(Path(folder) / "real", notifies=False) as real:
        uri = f"thrift://127.0.0.1:{real.port}"
        with SparkSessionProcess(uri, real.warehouse, Path(folder) / "spark") as spark:
            for name in sys.argv[1:] or SCENARIOS:
                save(name, outcome(Place(real, spark, real.warehouse), SCENARIOS[name], is_whole=True))
                print(name)


if __name__ == "__main__":
    main()
