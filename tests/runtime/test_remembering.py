"""What is remembered of texts is bounded in number and in size."""

import sys

from hms_gateway.metastore.vocabulary.locations import is_normalized
from hms_gateway.metastore.vocabulary.partition_names import make_name
from hms_gateway.metastore.vocabulary.texts import CHARACTERS_MAX, remembered
from hms_gateway.metastore.vocabulary.typed_values import value_class
from hms_gateway.storage.txn.locks import _client
from hms_gateway.storage.txn.state import client_columns
from hms_gateway.txn.ports.txn import Client


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
