"""Where we answer otherwise about transactions, locks, compactions and the notification log."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.comparison.answers import (
    Answers,
    Difference,
    internal_error,
    only_at,
    request,
    with_sorted_lists,
)
from tests.comparison.lock_history import Called, Request, followed, must_wait, passes, waits_for_itself
from tests.comparison.replies import Reply, different_places

ACQUIRED, WAITING = 1, 2
UPDATE, DELETE, UNSET, NO_TXN, EXCLUSIVE_WRITE = 3, 4, 5, 6, 4


def _was_committed(answers: Answers) -> bool:
    """We have committed that transaction before, and it had nothing to be remembered by."""
    asked = request(answers).get("txnid")
    known = any(
        one.method == "commit_txn" and request(one).get("txnid") == asked and one.ours == {} for one in answers.earlier
    )
    if not known or answers.texts[0] != f"No such transaction txnid:{asked}":
        return False
    if answers.method == "commit_txn":
        return answers.ours == {}
    return answers.texts[1] == f"Transaction txnid:{asked} is already committed."


def _told_why_aborted(answers: Answers) -> bool:
    theirs, ours = answers.texts
    is_aborted = answers.exceptions == ("TxnAbortedException", "TxnAbortedException")
    return is_aborted and theirs.endswith(" already aborted") and ours.startswith(f"{theirs}: ")


def _transaction_details(place: str, theirs: Any, ours: Any) -> bool:
    return (place.endswith(".agentInfo") and theirs == "Unknown") or (place.endswith(".metaInfo") and theirs is None)


def _blocker(place: str, theirs: Any, ours: Any) -> bool:
    return place.endswith((".blockedByExtId", ".blockedByIntId")) and ours is not None


def _has_no_operation(answers: Answers) -> bool:
    operation = request(answers).get("operationType", UNSET)
    return internal_error(answers.theirs) and answers.ours == {} and operation == UNSET


def _records_nothing(answers: Answers) -> bool:
    operations = {one.get("operationType") for one in request(answers).get("component", ())}
    return internal_error(answers.theirs) and "success" in answers.ours and NO_TXN in operations


def _exclusive_write(answers: Answers) -> bool:
    types = {one.get("type") for one in request(answers).get("component", ())}
    return "'type' is unset" in answers.texts[0] and "success" in answers.ours and EXCLUSIVE_WRITE in types


def _wrote_to_a_database(answers: Answers) -> bool:
    asked = request(answers).get("txnid")
    locks = (request(one) for one in answers.earlier if one.method == "lock" and "success" in one.ours)
    changed = any(
        part.get("operationType") in (UPDATE, DELETE) and "tablename" not in part
        for request in locks
        if request.get("txnid") == asked
        for part in request["component"]
    )
    return changed and internal_error(answers.theirs) and answers.ours == {}


def _heartbeat_of_transaction(place: str, ours: Any) -> bool:
    return place.endswith(".lastheartbeat") and ours == 0


def _state(reply: Reply) -> Any:
    return reply.get("success", {}).get("state")


def _granted_too_early(answers: Answers) -> bool:
    """Hive grants what conflicts with a lock that another one holds, or asked for earlier."""
    if (_state(answers.theirs), _state(answers.ours)) != (ACQUIRED, WAITING):
        return False
    requests = followed([*map(_called, answers.earlier), _called(answers)])
    return must_wait(requests[answers.ours["success"]["lockid"]], requests.values())


def _passed_its_followers(answers: Answers) -> bool:
    """Hive lets a request wait behind another, which waits for the very transaction that asks."""
    if (_state(answers.theirs), _state(answers.ours)) != (WAITING, ACQUIRED):
        return False
    requests = followed([*map(_called, answers.earlier), _called(answers)])
    request = requests[answers.ours["success"]["lockid"]]
    return passes(request, requests.values()) and not must_wait(request, requests.values())


def _called(answers: Answers) -> Called:
    return answers.method, answers.arguments, answers.ours


def _deadlock(answers: Answers) -> bool:
    """We say so, and the request would have closed a cycle; Hive may have let it pass somebody."""
    is_told = answers.exceptions[1] == "TxnAbortedException" and ": deadlock with " in answers.texts[1]
    if not is_told or "success" not in answers.theirs:
        return False
    asked = request(answers)
    requests = followed(map(_called, answers.earlier))
    requests["this"] = Request(len(answers.earlier), asked["component"], asked.get("txnid"), WAITING)
    return waits_for_itself("this", requests)


def _lost_its_lock(answers: Answers) -> bool:
    asked_for_none = any(one.method == "abort_txns" and 0 in request(one)["txn_ids"] for one in answers.earlier)
    return answers.exceptions[0] == "NoSuchLockException" and "success" in answers.ours and asked_for_none


NEWER_EVENT_KEYS = ("tableType", "dbJson", "isTruncateOp", "replace", "ptnObjJson", "subDirectoryList")
HIVE_EVENTS = [
    "CREATE_DATABASE",
    "DROP_DATABASE",
    "CREATE_TABLE",
    "DROP_TABLE",
    "ALTER_TABLE",
    "ADD_PARTITION",
    "DROP_PARTITION",
    "ALTER_PARTITION",
    "INSERT",
    "CREATE_FUNCTION",
    "DROP_FUNCTION",
    "CREATE_INDEX",
    "DROP_INDEX",
    "ALTER_INDEX",
]


def events_say_more(accounts_for: Callable[[str, Any, Any], bool]) -> Callable[[Answers], bool]:
    """Our events of Hive's kinds, in its order, say all that its events say but for what is accounted for."""

    def says_more(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
        return all(accounts_for(*place) for place in different_places(theirs, ours))

    def applies(answers: Answers) -> bool:
        if "success" not in answers.theirs or "success" not in answers.ours:
            return False
        theirs = answers.theirs["success"]["events"]
        ours = [event for event in answers.ours["success"]["events"] if _is_of_hive(event)]
        limit = request(answers).get("maxEvents") or 0
        if limit > 0:
            theirs, ours = theirs[: len(ours)], ours[: len(theirs)]
        return len(theirs) == len(ours) and all(map(says_more, _in_one_order(theirs), _in_one_order(ours)))

    return applies


def _is_of_hive(event: Mapping[str, Any]) -> bool:
    """Dropping an index drops its table too, of which Hive says nothing."""
    is_index_table = event["eventType"] == "DROP_TABLE" and event["message"].get("tableType") == "INDEX_TABLE"
    return event["eventType"] in HIVE_EVENTS and not is_index_table


def _in_one_order(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Tables of a database that is dropped go in the database's order in Hive: neighbours are sorted."""
    ordered = list(events)
    for place in range(1, len(ordered)):
        while place and ordered[place]["eventType"] == ordered[place - 1]["eventType"] == "DROP_TABLE":
            if ordered[place - 1].get("tableName", "").lower() <= ordered[place].get("tableName", "").lower():
                break
            ordered[place - 1], ordered[place] = ordered[place], ordered[place - 1]
            place -= 1
    return ordered


def accounted_in_event(place: str, theirs: Any, ours: Any) -> bool:
    key = place.rpartition(".")[2]
    if theirs is None:
        # Completed objects, the keys of later versions.
        return "ObjJson" in place or "ListJson" in place or "ObjAfterJson" in place or key in NEWER_EVENT_KEYS
    if key == "eventId" or place.endswith((".dbName", ".tableName", ".message.db", ".message.table")):
        return key == "eventId" or str(theirs).lower() == ours
    is_time = place.endswith(("Json.4.i32", "Json.5.i32"))
    return is_time and theirs == 0


def _more_events(answers: Answers) -> bool:
    numbers = [int(reply["success"]["eventId"].strip("{}").split()[1]) for reply in (answers.theirs, answers.ours)]
    return numbers[0] < numbers[1]


def _null_request_of_events(answers: Answers) -> bool:
    return answers.theirs == {} and answers.exceptions[1] == "TApplicationException"


def _event_of_no_kind(answers: Answers) -> bool:
    return "closed" in answers.theirs and "Event type null" in answers.texts[1]


def _compactions_left(answers: Answers) -> bool:
    """Hive has more entries, all of tables or partitions that were dropped."""
    if "success" not in answers.theirs or "success" not in answers.ours:
        return False
    ours = _without(answers.ours, ["enqueueTime"])["success"]["compacts"]
    theirs = answers.theirs["success"]["compacts"]
    dropped = {(one.arguments["db_name"], one.arguments["tbl_name"]) for one in answers.earlier if _drops(one)}
    more = [entry for entry in theirs if entry not in ours]
    are_gone = all((entry["dbname"], entry["tablename"]) in dropped for entry in more)
    return bool(more) and are_gone and all(entry in theirs for entry in ours)


def _drops(answers: Answers) -> bool:
    return answers.method == "drop_partition" and answers.ours == {"success": True}


def _same_but_for(*names: str) -> Callable[[Answers], bool]:
    """The same values in any order, but for fields that clients of 2.3 do not know."""

    def applies(answers: Answers) -> bool:
        ours = _without(answers.ours, names)
        return "success" in ours and with_sorted_lists(ours) == with_sorted_lists(answers.theirs)

    return applies


def _without(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(one, names) for key, one in value.items() if key not in names}
    return [_without(one, names) for one in value] if isinstance(value, list) else value


TRANSACTIONS: tuple[Difference, ...] = (
    Difference(
        "writes to a whole database",
        "commit_txn",
        "INTERNAL_ERROR (6) for a transaction that updates or deletes under the lock of a database.",
        "It is committed.",
        "Its locks were granted.",
        _wrote_to_a_database,
        parts_catalogs=True,
    ),
    Difference(
        "blocking locks and last heartbeats",
        "show_locks",
        "blockedByExtId and blockedByIntId are set by some answers only, and name any lock in the way. A heartbeat of "
        "a transaction's lock leaves a time of its own.",
        "Every waiting lock names the earliest one in its way. The heartbeat of a transaction is that of its locks.",
        "A waiting client needs to know what blocks it; a lock lives as long as its transaction.",
        only_at(lambda place, theirs, ours: _blocker(place, theirs, ours) or _heartbeat_of_transaction(place, ours)),
    ),
    Difference(
        "committed transactions that wrote nothing",
        "commit_txn abort_txn heartbeat lock add_dynamic_partitions",
        "Forgotten at once: NoSuchTxnException 'No such transaction', for a repeated commit too.",
        "Remembered for a while: committing again succeeds, everything else says 'is already committed'.",
        "A client whose answer got lost asks again, and must not hear that its commit failed.",
        _was_committed,
    ),
    Difference(
        "why a transaction was aborted",
        "commit_txn heartbeat lock check_lock add_dynamic_partitions",
        "TxnAbortedException 'Transaction txnid:… already aborted'.",
        "The same, followed by the reason when it was not the client's own wish.",
        "It is the question everybody asks next.",
        _told_why_aborted,
    ),
    Difference(
        "details of transactions",
        "get_open_txns_info",
        "agentInfo of open_txns is not kept, it is always 'Unknown'; metaInfo is not set.",
        "agentInfo is as the client sent it, metaInfo says why a transaction was aborted.",
        "They say who opened a transaction and how it ended.",
        only_at(_transaction_details),
    ),
    Difference(
        "dynamic partitions without an operation",
        "add_dynamic_partitions",
        "INTERNAL_ERROR (6) when operationType is not set.",
        "Counts as UPDATE, the strictest.",
        "The field is optional, and clients of newer versions leave it out.",
        _has_no_operation,
        parts_catalogs=True,
    ),
    Difference(
        "locks granted too early",
        "lock check_lock",
        "A request passes one that waits for the same thing; the one that waits may then be granted while the other "
        "holds its lock, so both have what only one may have.",
        "A request waits for requests that hold or earlier asked for what it cannot share. It passes only those that "
        "wait for what its own transaction holds.",
        "Locks must exclude each other, and no request may starve.",
        _granted_too_early,
        parts_catalogs=True,
    ),
    Difference(
        "waiting for oneself",
        "lock check_lock",
        "A request that waits for a transaction lets a later one of that transaction wait for it (not every type of "
        "lock), so both wait until one times out.",
        "What the transaction asks for passes the one that waits for it.",
        "A request that waits for a transaction waits for its end, so it gains when that end is not delayed.",
        _passed_its_followers,
        parts_catalogs=True,
    ),
    Difference(
        "deadlocks",
        "lock",
        "Transactions that wait for each other do so until one times out.",
        "The youngest of them is aborted; its exception names the others.",
        "The others go on at once.",
        _deadlock,
        parts_catalogs=True,
    ),
    Difference(
        "aborting transaction 0",
        "check_lock",
        "abort_txns of 0, which means no transaction, takes away every lock that belongs to none.",
        "There is no transaction 0, so nothing happens.",
        "The locks are other clients'.",
        _lost_its_lock,
        parts_catalogs=True,
    ),
    Difference(
        "locks that record nothing",
        "lock",
        "INTERNAL_ERROR (6) for operation NO_TXN within a transaction.",
        "The lock is taken and no write is recorded, as in Hive 3.1 and later.",
        "Newer clients send it.",
        _records_nothing,
        parts_catalogs=True,
    ),
    Difference(
        "locks of the newer type",
        "lock",
        "EXCL_WRITE is unknown.",
        "Means one writer and any readers, as in Hive 4.",
        "Newer clients send it.",
        _exclusive_write,
        parts_catalogs=True,
    ),
    Difference(
        "compactions say when they were asked for",
        "show_compact",
        "enqueueTime is unknown, and the order of the answer is not defined.",
        "enqueueTime is set and the latest come first, as in Hive 4.",
        "Older clients skip the field.",
        _same_but_for("enqueueTime"),
    ),
    Difference(
        "compactions of what is dropped",
        "show_compact",
        "Requests for a table or partition that is dropped stay in the queue, unless it is transactional.",
        "They go with it.",
        "They could not be carried out.",
        _compactions_left,
    ),
    Difference(
        "what events say",
        "get_next_notification",
        "Some changes write no event (tables of indexes, altered functions, statistics, grants). Messages have objects "
        "as they were sent, and names as they were spelled.",
        "Every change of the catalog writes one, so ids are further apart. Messages have the objects as they are "
        "stored, and the keys that Hive 3 added (tableType, isTruncateOp, replace, the database made, "
        "the table dropped or inserted into).",
        "What is written to the log is what a cache and a replica go by.",
        events_say_more(accounted_in_event),
    ),
    Difference(
        "how many events there are",
        "get_current_notificationEventId",
        "Some changes write no event.",
        "Every change of the catalog writes one.",
        "As above.",
        _more_events,
    ),
    Difference(
        "events without a request",
        "get_next_notification",
        "Without a request the result is missing.",
        "PROTOCOL_ERROR that says that the request must not be null.",
        "It says what was wrong.",
        _null_request_of_events,
    ),
    Difference(
        "events of no kind",
        "fire_listener_event",
        "An event without data breaks the connection.",
        "PROTOCOL_ERROR that says it, since the method declares no exception.",
        "The client's connection stays usable.",
        _event_of_no_kind,
    ),
)
