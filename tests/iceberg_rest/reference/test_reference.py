"""The gateway's answers beside those that Iceberg's own REST adapter gave to the same requests (`record.py`)."""

from hms_gateway.iceberg.routes import OPERATIONS, routed
from tests.iceberg_rest.reference.answers import played, recorded
from tests.iceberg_rest.reference.differences import FIELDS, REQUESTS, difference
from tests.iceberg_rest.reference.requests import steps


def test_answers_are_those_of_the_reference_but_for_named_differences(rest):
    ours = played(lambda step: rest.send(step.method, step.path, step.body, query=step.query))
    found = {}
    for one, other in zip(ours, recorded(), strict=True):
        assert one.step == other.step
        what = difference(one, other)
        if what is not None:
            found[one.step] = what
    assert found == {name: what for name, (what, _) in REQUESTS.items()}


def test_every_difference_has_a_reason():
    assert all(FIELDS.values())
    assert all(reason for _, reason in REQUESTS.values())


def test_the_requests_cover_every_operation_and_have_names_of_their_own():
    asked = list(steps())
    assert len({one.name for one in asked}) == len(asked) > 200
    found = {routed(one.method, f"/v1/{one.path}".encode(), b"", None).operation.id for one in asked if served(one)}
    assert {one.id for one in OPERATIONS} <= found


def served(step):
    return step.name not in ("a method that is not there", "a route that is not there")
