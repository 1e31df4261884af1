"""The digest of rows: the same for the same rows in any pieces, another for any other rows."""

import random
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

import pytest

pytest.importorskip("pyarrow", reason="no pyarrow (requirements/spark.txt)")

import pyarrow

from hms_gateway.pipeline.compact.content import content_of

TYPES = {
    "n": pyarrow.int32(),
    "x": pyarrow.float64(),
    "b": pyarrow.bool_(),
    "s": pyarrow.string(),
    "raw": pyarrow.binary(),
    "d": pyarrow.date32(),
    "t": pyarrow.timestamp("us"),
    "m": pyarrow.decimal128(9, 2),
    "list": pyarrow.list_(pyarrow.string()),
    "map": pyarrow.map_(pyarrow.string(), pyarrow.int64()),
    "in": pyarrow.struct([("a", pyarrow.int8()), ("b", pyarrow.list_(pyarrow.struct([("c", pyarrow.string())])))]),
    "none": pyarrow.null(),
}


def value(chance, name):
    if chance.random() < 0.2 or name == "none":
        return None
    text = "".join(chance.choice("abé") for _ in range(chance.randrange(4)))
    return {
        "n": chance.randrange(-5, 5),
        "x": chance.choice((0.0, 1.5, float("nan"), float("inf"))),
        "b": chance.random() < 0.5,
        "s": text,
        "raw": text.encode(),
        "d": date(2024, 1, chance.randrange(1, 29)),
        "t": datetime(2024, 1, 1, chance.randrange(24)),
        "m": Decimal(chance.randrange(10**6)).scaleb(-2),
        "list": [text, None][: chance.randrange(3)],
        "map": [("k", 1), (text + "_", None)][: chance.randrange(3)],
        "in": {"a": 1, "b": [{"c": text}, None][: chance.randrange(3)]},
    }[name]


def table(seed, rows):
    chance = random.Random(seed)
    arrays = [pyarrow.array([value(chance, name) for _ in range(rows)], type) for name, type in TYPES.items()]
    return pyarrow.table(arrays, names=list(TYPES))


def digest(*tables):
    return content_of(batch for one in tables for batch in one.to_batches()).digest


def test_pieces_do_not_matter():
    rows = table(1, 97)
    whole = digest(rows)
    chance = random.Random(2)
    for _ in range(20):
        cuts = sorted({0, 97, *(chance.randrange(97) for _ in range(5))})
        pieces = [rows.slice(begin, end - begin) for begin, end in pairwise(cuts)]
        assert digest(*pieces) == whole
        assert (
            digest(*(pyarrow.table([c.combine_chunks() for c in p.columns], names=list(TYPES)) for p in pieces))
            == whole
        )
    assert content_of(rows.to_batches()).rows == 97


@pytest.mark.parametrize("name", [name for name in TYPES if name != "none"])
def test_one_other_value_is_another_digest(name):
    rows = table(1, 50)
    column = rows.column(name).to_pylist()
    at = next(number for number, one in enumerate(column) if one is not None)
    column[at] = None
    changed = rows.set_column(rows.schema.get_field_index(name), name, pyarrow.array(column, TYPES[name]))
    assert digest(changed) != digest(rows)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([["a"], ["b"]], [["a", "b"], []]),
        ([["ab"], ["c"]], [["a"], ["bc"]]),
        ([[], None], [None, []]),
        ([[None], []], [[], [None]]),
    ],
)
def test_where_values_are_cut_matters(one, other):
    def of(values):
        return digest(pyarrow.table({"c": pyarrow.array(values, pyarrow.list_(pyarrow.string()))}))

    assert of(one) != of(other)


def test_order_and_number_of_rows_matter():
    rows = table(1, 30)
    assert digest(rows.slice(1), rows.slice(0, 1)) != digest(rows)
    assert digest(rows.slice(0, 29)) != digest(rows)
    assert digest(rows, rows) != digest(rows)


def test_words_of_a_dictionary_are_as_plain_ones():
    plain = pyarrow.table({"c": ["a", None, "b", "a"]})
    assert digest(pyarrow.table({"c": plain.column(0).dictionary_encode()})) == digest(plain)
