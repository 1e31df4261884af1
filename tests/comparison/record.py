"""Records the corpus anew: `python -m tests.comparison.record [SCRIPT ...]`. Needs Java (see tests/oracle)."""

import sys
import tempfile
from pathlib import Path

from tests.comparison import corpus
from tests.comparison.servers import Metastore
from tests.oracle.peer import RealMetastore


def record(scripts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, RealMetastore(Path(folder) / "real") as peer:
        metastore = Metastore.real(peer)
        for script in scripts:
            metastore.clean()
            answered = [(step, metastore.ask(step)) for step in corpus.steps_of(script)]
            corpus.write(script, answered)
            print(f"{script}: {len(answered)} calls")
        metastore.close()


if __name__ == "__main__":
    record(sys.argv[1:] or list(corpus.SCRIPTS))
