"""Records the corpus anew: `python -m tests.comparison.record [--third] [SCRIPT ...]`. Needs Java (tests/oracle)."""

import sys
import tempfile
from pathlib import Path

from tests.comparison import corpus
from tests.comparison.servers import Metastore
from tests.oracle.peer import RealMetastore
from tests.oracle.third_peer import ThirdMetastore


def record(scripts: list[str], kind: type[RealMetastore] | type[ThirdMetastore], into: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, kind(Path(folder) / "real") as peer:
        metastore = Metastore.real(peer)
        for script in scripts:
            metastore.clean()
            answered = [(step, metastore.ask(step)) for step in corpus.steps_of(script)]
            corpus.write(script, answered, into)
            print(f"{script}: {len(answered)} calls")
        metastore.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--third"]:
        record(sys.argv[2:] or list(corpus.THIRD_SCRIPTS), ThirdMetastore, corpus.THIRD_FOLDER)
    else:
        record(sys.argv[1:] or list(corpus.SCRIPTS), RealMetastore, corpus.FOLDER)
