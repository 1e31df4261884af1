"""What is remembered of texts is bounded in number and in size."""

import sys

from app.metastore.locations import is_normalized
from app.metastore.partition_names import make_name
from app.metastore.typed_values import value_class
from app.remembering import CHARACTERS_MAX, remembered
from app.storage.lock_list import _client
from app.storage.txn_state import client_columns
from app.txn.ports import Client


def test_short_arguments_are_worked_out_once_and_long_ones_each_time() -> None:
    asked: list[str] = []

    @remembered(2, len)
    def shout(text: str) -> str:
        asked.append(text)
        return text.upper()

    assert [shout("a"), shout("b"), shout("a")] == ["A", "B", "A"]
    assert asked == ["a", "b"]
    long = "c" * (CHARACTERS_MAX + 1)
    assert [shout(long), shout(long)] == [long.upper()] * 2
    assert asked == ["a", "b", long, long]
    assert [shout("c" * CHARACTERS_MAX), shout("a"), shout("b")][1:] == ["A", "B"]
    assert asked[4:] == ["c" * CHARACTERS_MAX, "b"]


def test_long_texts_of_callers_are_kept_nowhere() -> None:
    """Each of these had kept a thousand of them, of up to string_bytes_max each."""
    text = "int" + "x" * 100_000
    before = sys.getrefcount(text)
    value_class(text)
    is_normalized(text)
    make_name([text], ["1"])
    client_columns(Client(text, "host", "agent"))
    _client(text, "host", "agent")
    assert sys.getrefcount(text) == before
