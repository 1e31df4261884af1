"""Calls that wait for a gateway: what is repeated, with which key, and when that ends."""

from itertools import pairwise
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")

from hms_gateway.cli.pipeline.jobs import source_of
from hms_gateway.client.metastore_client import Busy, MetastoreClient, NotAuthorized, NotReached
from hms_gateway.pipeline.errors import CallsRefused, GatewayAway, LeaseLost
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.rpc.structs import InvalidOperationException, NoSuchObjectException


class Answers(MetastoreClient):
    """A client that has one answer or error for each call."""

    def __init__(self, answers, keys):
        self._answers, self.keys = answers, keys

    def close(self):
        self._answers.append("closed") if not self._answers else None

    def call(self, name, /, *arguments, on_progress=None, idempotency_key=None, **named):
        self.keys.append(idempotency_key)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client(*answers, patience_seconds=60.0, scope="run", lease_id=None):
    """With the keys that were sent and the pauses that were made."""
    left, keys, pauses = list(answers), [], []
    connection = SimpleNamespace(
        url="https://gateway", option_prefix="--", catalog=None, open=lambda headers: Answers(left, keys)
    )
    made = PatientClient(connection, patience_seconds, scope, lease_id, pauses.append)
    return made, keys, pauses


def test_a_gateway_that_is_away_is_waited_for_with_longer_and_longer_pauses():
    asked, keys, pauses = client(*[NotReached("away")] * 5, "done")
    assert asked.call("create_table", "t") == "done"
    assert len(set(keys)) == 1
    assert None not in keys
    assert all(later > 1.2 * earlier for earlier, later in pairwise(pauses))


def test_what_the_server_asks_for_is_waited():
    asked, _, pauses = client(Busy("busy", retry_after_seconds=7), "done")
    asked.call("get_table", "a", "b")
    assert 5 < pauses[0] < 9


def test_patience_ends():
    asked, _, _ = client(*[NotReached("away")] * 3, patience_seconds=1e-9)
    with pytest.raises(GatewayAway, match="https://gateway was away for 0 s: away") as caught:
        asked.call("get_table", "a", "b")
    assert "resume the run" in caught.value.hint


def test_a_job_that_cannot_begin_has_no_run_to_resume():
    asked, _, _ = client(NotReached("https://gateway cannot be reached"), patience_seconds=0)
    with pytest.raises(GatewayAway, match=r"^https://gateway cannot be reached$") as caught:
        asked.call("get_table", "a", "b")
    assert "resume" not in caught.value.hint


def test_a_call_that_reads_has_no_key():
    asked, keys, _ = client("one")
    asked.call("get_table", "a", "b")
    assert keys == [None]


def test_keys_differ_by_scope_place_lease_and_message():
    def key(*, scope="run", lease_id=1, before=0, argument="t"):
        asked, keys, _ = client(*["done"] * (before + 1), scope=scope, lease_id=lease_id)
        for _ in range(before):
            asked.call("drop_table", "a", "x")
        asked.call("drop_table", "a", argument)
        return keys[-1]

    assert key() == key()
    assert len({key(), key(scope="other"), key(lease_id=2), key(before=1), key(argument="u")}) == 5


def test_refusals_are_not_repeated():
    asked, keys, _ = client(NotAuthorized("https://gateway answers 401"), NoSuchObjectException("no such table"))
    with pytest.raises(CallsRefused, match="answers 401"):
        asked.call("get_table", "a", "b")
    with pytest.raises(NoSuchObjectException):
        asked.call("get_table", "a", "b")
    assert len(keys) == 2


@pytest.mark.slow
def test_a_hint_names_the_options_of_the_source(gateway, tmp_path):
    (tmp_path / "password").write_text(gateway.options["password"])
    nothing = dict.fromkeys(("certificate", "key", "cacert"))
    flags = dict.fromkeys(("negotiate", "insecure", "framed"), False)
    login = {"user": gateway.options["user"], "password_file": tmp_path / "password"}
    source = source_of(url=gateway.options["url"], catalog="", **login, **nothing, **flags)
    with PatientClient(source, 0) as asked, pytest.raises(CallsRefused, match="is not trusted") as caught:
        asked.call("get_all_databases")
    assert "give its certificate with --source-cacert, or --source-insecure" in caught.value.hint


def test_a_lost_lease_differs_from_other_refusals():
    lost = InvalidOperationException("Refused: lease 7 is not held any more: it ended, was dropped, or never was")
    other = InvalidOperationException("Refused: lease 7 does not hold sales")
    asked, _, _ = client(lost, other, lease_id=7)
    with pytest.raises(LeaseLost, match="lease 7 is lost"):
        asked.call("drop_table", "a", "b")
    with pytest.raises(InvalidOperationException):
        asked.call("drop_table", "a", "b")
