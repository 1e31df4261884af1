import pickle

import pytest

from app.storage.kept_values import KEPT_BYTES_MAX, packed_value, unpacked_value
from app.structs import FieldSchema, LockState, NoSuchTxnException
from app.txn.errors import Refused
from app.txn.lock_service import LockAnswer
from app.txn.locks import LockId


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        [1, 2**63 - 1],
        {7: 1},
        {"ä", "\U0001f600"},
        FieldSchema("a", "int"),
        LockAnswer(LockId(1), LockState.WAITING),
        [FieldSchema(str(number), "string", "x" * 100) for number in range(1000)],
    ],
)
def test_values_come_back(value):
    packed = packed_value(value)
    assert packed is not None
    kept = unpacked_value(packed)
    assert kept is not None
    assert kept.value == value


def test_a_refusal_comes_back_with_its_reason():
    kept = unpacked_value(packed_value(Refused(NoSuchTxnException("gone"))))
    assert kept.value.reason == NoSuchTxnException("gone")


class Evil:
    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize(
    "content", [pickle.dumps(Evil()), pickle.dumps(print), b"no pickle", b"", b"\x80\x04capp.main\nbuild\n."]
)
def test_nothing_but_values_is_read(content, capsys):
    assert unpacked_value(b"p" + content) is None
    assert "run" not in capsys.readouterr().out


def test_what_is_too_large_is_not_kept():
    assert packed_value("x" * KEPT_BYTES_MAX) is None
