"""What counts as a test that calls a method."""

import gzip
from pathlib import Path

from tools.method_proofs import proofs

HANDLER_TESTS = '''
def test_by_name(peer):
    peer.ask("get_table", "a")
    peer.refused("get_database", "nowhere")

def test_of_a_handler(tables):
    tables.drop_table(CALL, "a")

def test_through_what_helps(world):
    world.make()

def test_says_it_only():
    """get_type"""
    name = "get_type"

class World:
    def make(self):
        self.client.create_table(1)
'''


def test_tests_are_found_by_what_they_call(tmp_path: Path) -> None:
    corpus = tmp_path / "tests/comparison/corpus"
    corpus.mkdir(parents=True)
    for script, methods in (("a", ["get_table"]), ("b", ["get_table", "get_table", "unknown"])):
        lines = "".join(f'{{"method":"{name}","request":{{}},"reply":{{}}}}\n' for name in methods)
        if script == "a":
            (corpus / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        else:
            (corpus / f"{script}.jsonl").write_text(lines)
    handlers = tmp_path / "tests/handlers"
    handlers.mkdir()
    for name in ("test_tables.py", "test_bad_input.py", "helper.py"):
        (handlers / name).write_text(HANDLER_TESTS)
    names = ("get_table", "drop_table", "create_table", "get_type", "get_database")
    recorded = "tests/comparison/test_corpus.py::test_answers_are_as_recorded"
    assert proofs(tmp_path, names) == {
        "get_table": [f"{recorded}[b]", f"{recorded}[a]", "tests/handlers/test_tables.py::test_by_name"],
        "drop_table": ["tests/handlers/test_tables.py::test_of_a_handler"],
        "create_table": ["tests/handlers/test_tables.py::test_through_what_helps"],
        "get_type": [],
        "get_database": ["tests/handlers/test_tables.py::test_by_name"],
    }
