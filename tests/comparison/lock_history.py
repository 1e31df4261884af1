"""Who holds and who waits for which lock, followed from the calls and our answers alone.

It knows nothing of the gateway's own rules: the table of differences asks it whether we had to let somebody wait.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.comparison.replies import Reply

ACQUIRED, WAITING = 1, 2
SHARED_READ, SHARED_WRITE, EXCLUSIVE = 1, 2, 3
TOGETHER = {(SHARED_READ, SHARED_READ), (SHARED_READ, SHARED_WRITE), (SHARED_WRITE, SHARED_READ)}

Called = tuple[str, Mapping[str, Any], Reply]
"""A method, its arguments with ids as replies call them, and our answer."""


@dataclass(slots=True)
class Request:
    """A lock request as somebody made it; `order` is the order of arrival."""

    order: int
    components: list[Mapping[str, Any]]
    txn: str | None
    state: int


def followed(calls: Iterable[Called]) -> dict[str, Request]:
    """The requests that hold or wait for something after these calls, by the lock's name."""
    requests: dict[str, Request] = {}
    for order, (method, arguments, reply) in enumerate(calls):
        match method:
            case "lock" if "success" in reply:
                asked = arguments["rqst"]
                answer = reply["success"]
                txn = asked.get("txnid") or None
                requests[answer["lockid"]] = Request(order, asked["component"], txn, answer["state"])
            case "check_lock" if "success" in reply:
                requests[reply["success"]["lockid"]].state = reply["success"]["state"]
            case "unlock" if not reply:
                requests.pop(arguments["rqst"]["lockid"], None)
            case "commit_txn" | "abort_txn" if _has_ended(reply):
                _end(requests, [arguments["rqst"]["txnid"]])
            case "abort_txns" if not reply:
                _end(requests, arguments["rqst"]["txn_ids"])
    return requests


def must_wait(request: Request, all_requests: Collection[Request]) -> bool:
    """Whether somebody holds what the request cannot have at the same time, or came earlier and waits for it.

    Not whoever waits for something that the request's own transaction holds.
    """
    return bool(_in_the_way(request, all_requests))


def passes(request: Request, all_requests: Collection[Request]) -> bool:
    """Whether somebody came earlier and waits for what the request cannot share, and is let wait."""
    return any(_came_before(request, one) and _waits_for_owner_of(request, one, all_requests) for one in all_requests)


def waits_for_itself(name: str, requests: Mapping[str, Request]) -> bool:
    """Whether the owner of a request, if he had to wait, waits for somebody who waits, however far around, for him."""
    start = _owner(requests[name])
    reached: set[object] = set()
    owners = {start}
    while owners:
        waiting = [
            one
            for one in requests.values()
            if (one.state == WAITING or one is requests[name]) and _owner(one) in owners
        ]
        found = {_owner(other) for one in waiting for other in _in_the_way(one, requests.values())}
        if start in found:
            return True
        owners = found - reached
        reached |= found
    return False


def _in_the_way(request: Request, all_requests: Collection[Request]) -> list[Request]:
    holding = [one for one in all_requests if one.state == ACQUIRED and _collide(request, one)]
    queueing = [
        one
        for one in all_requests
        if _came_before(request, one) and not _waits_for_owner_of(request, one, all_requests)
    ]
    return holding + queueing


def _came_before(request: Request, existing: Request) -> bool:
    return existing.state == WAITING and existing.order < request.order and _collide(request, existing)


def _waits_for_owner_of(request: Request, waiting: Request, all_requests: Iterable[Request]) -> bool:
    own = (one for one in all_requests if request.txn and one.txn == request.txn and one.state == ACQUIRED)
    return any(_collide(waiting, one) for one in own if one is not request)


def _collide(request: Request, existing: Request) -> bool:
    return _owner(existing) != _owner(request) and any(
        _conflict(one, other) for one in request.components for other in existing.components
    )


def _owner(request: Request) -> object:
    return request.txn or request.order


def _has_ended(reply: Reply) -> bool:
    return not reply or "TxnAbortedException" in reply


def _end(requests: dict[str, Request], txns: Iterable[str]) -> None:
    for name in [name for name, request in requests.items() if request.txn in txns]:
        del requests[name]


def _conflict(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return _overlap(one, other) and (one["type"], other["type"]) not in TOGETHER and not _exempt(one, other)


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one["dbname"] != other["dbname"]:
        return False
    return all(one.get(name) in (None, other.get(name)) or other.get(name) is None for name in PARTS)


PARTS = ("tablename", "partitionname")


def _exempt(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """A database that is read and something inside of it that is changed."""
    return any(
        upper["type"] == SHARED_READ and upper.get("tablename") is None and lower.get("tablename") is not None
        for upper, lower in ((one, other), (other, one))
    )
