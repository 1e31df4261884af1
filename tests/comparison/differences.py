"""Every deliberate difference between Apache Hive Metastore 2.3 and this one, in one table that the comparison reads.

`docs/differences.md` is written from it (`python -m tests.comparison.document`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.comparison.lock_history import Called, followed, must_wait
from tests.comparison.replies import Reply, different_places

INTERNAL_ERROR, PROTOCOL_ERROR = 6, 7
JAVA_NULLS = (
    "java.lang.NullPointerException",
    "Cannot invoke",
    "Cannot read field",
    "java.lang.RuntimeException: Cannot",
)
# What the answers to calls about transactions and locks depend on.
REMEMBERED = frozenset(
    ("lock", "check_lock", "unlock", "commit_txn", "abort_txn", "abort_txns", "drop_table", "drop_partition")
)
ACQUIRED, WAITING = 1, 2
REVOKE = 2
UPDATE, DELETE, UNSET, NO_TXN, EXCLUSIVE_WRITE = 3, 4, 5, 6, 4
HIVE_NAME_MAX = 767
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Answers:
    """One call and what both servers answered; `earlier` are the calls of the script before it that matter to some."""

    method: str
    arguments: Mapping[str, Any]
    theirs: Reply
    ours: Reply
    earlier: "Sequence[Answers]" = ()

    @property
    def exceptions(self) -> tuple[str | None, str | None]:
        """The names of both exceptions, None for an answer that is none."""
        return _exception(self.theirs), _exception(self.ours)

    @property
    def texts(self) -> tuple[str, str]:
        """Both exceptions' texts, empty where there is none."""
        return _text(self.theirs), _text(self.ours)


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of the table. `applies` says whether it accounts for these answers, whole as they are.

    After one that `parts_catalogs` the two hold different things, so nothing later in the same script can be compared.
    """

    name: str
    methods: str
    hive: str
    ours: str
    why: str
    applies: Callable[[Answers], bool]
    parts_catalogs: bool = False

    def explains(self, answers: Answers) -> bool:
        return (self.methods == "*" or answers.method in self.methods.split()) and self.applies(answers)


def _exception(reply: Reply) -> str | None:
    name = next(iter(reply), "")
    return name if name.endswith("Exception") else None


def _text(reply: Reply) -> str:
    name = _exception(reply)
    return "" if name is None else str(reply[name].get("message") or "")


def _internal_error(reply: Reply) -> bool:
    return "closed" in reply or reply.get("TApplicationException", {}).get("type") == INTERNAL_ERROR


def _declared(reply: Reply) -> bool:
    return _exception(reply) not in (None, "TApplicationException")


def _other_text(*beginnings: str) -> Callable[[Answers], bool]:
    """The same exception; Hive's text begins like one of these."""

    def applies(answers: Answers) -> bool:
        theirs, ours = answers.exceptions
        return theirs is not None and theirs == ours and answers.texts[0].startswith(beginnings)

    return applies


def _reordered(answers: Answers) -> bool:
    """The same values in another order."""
    return "success" in answers.theirs and _sorted(answers.theirs) == _sorted(answers.ours)


def _sorted(value: Any) -> Any:
    """Every list in it in one order."""
    if isinstance(value, dict):
        return {key: _sorted(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def _breaks_where_we_explain(answers: Answers) -> bool:
    return _internal_error(answers.theirs) and _declared(answers.ours)


def _malformed(answers: Answers) -> bool:
    ours = answers.ours.get("TApplicationException", {})
    return _internal_error(answers.theirs) and ours.get("type") == PROTOCOL_ERROR


def _null_pointer(answers: Answers) -> bool:
    theirs, ours = answers.exceptions
    return theirs == ours == "MetaException" and answers.texts[0].startswith(JAVA_NULLS)


def _empty_text_is_none(answers: Answers) -> bool:
    theirs, ours = answers.exceptions
    return theirs is not None and theirs == ours and answers.texts == ("", "")


def _nothing_between_bars(answers: Answers) -> bool:
    return answers.texts[0].startswith("Method/Identifier expected") and answers.ours == {"success": []}


def _owners_beside(answers: Answers) -> bool:
    ours = [{name: value for name, value in table.items() if name != "ownerName"} for table in answers.ours["success"]]
    return _reordered(Answers(answers.method, answers.arguments, answers.theirs, {"success": ours}))


def _only_untyped_more(answers: Answers) -> bool:
    """We list tables of type null as managed ones."""
    theirs, ours = (reply.get("success") for reply in (answers.theirs, answers.ours))
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return False
    wanted = answers.arguments.get("tableType") or answers.arguments.get("tbl_types")
    names = [entry["tableName"] if isinstance(entry, dict) else entry for entry in ours]
    hives = {entry["tableName"] if isinstance(entry, dict) else entry for entry in theirs}
    return "MANAGED_TABLE" in wanted and all("no_type" in name for name in {*names} - hives)


def _succeeds_without_location(answers: Answers) -> bool:
    return answers.texts[0].startswith("java.lang.IllegalArgumentException: Can not create a Path from a") and (
        answers.ours == {}
    )


def _missing_database(answers: Answers) -> bool:
    return answers.exceptions == ("MetaException", "NoSuchObjectException") and answers.texts[0].startswith(
        "java.lang.NullPointerException"
    )


def _only_at(accounts_for: Callable[[str, Any, Any], bool]) -> Callable[[Answers], bool]:
    """Both succeed, and every place that differs is accounted for: path, Hive's value, ours."""

    def applies(answers: Answers) -> bool:
        if "success" not in answers.theirs or "success" not in answers.ours:
            return False
        return all(accounts_for(*place) for place in different_places(answers.theirs, answers.ours))

    return applies


def _creation_forgotten(place: str, theirs: Any, ours: Any) -> bool:
    if place.endswith(".createTime"):
        return bool(theirs == 0)
    return place.endswith(".parameters.transient_lastDdlTime") and theirs is None


def _names_spelled_otherwise(answers: Answers) -> bool:
    theirs, ours = ("".join(text.lower().split()) for text in answers.texts)
    return answers.exceptions[0] == answers.exceptions[1] and bool(theirs) and theirs == ours


def _another_of_several(answers: Answers) -> bool:
    return answers.exceptions == ("InvalidOperationException", "MetaException") and answers.texts[1].startswith(
        "Invalid partition key & values"
    )


def _nothing_found(answers: Answers) -> bool:
    """Hive's null result is a missing result for clients."""
    return answers.theirs == {} and answers.exceptions[1] == "NoSuchObjectException"


def _descriptor_completed(place: str, theirs: Any, ours: Any) -> bool:
    return theirs is None and place.endswith((".sd.skewedInfo", ".sd.storedAsSubDirectories"))


def _exceptions(theirs: str, ours: str) -> Callable[[Answers], bool]:
    return lambda answers: answers.exceptions == (theirs, ours)


def _left_directory(place: str, theirs: Any, ours: Any) -> bool:
    return place.endswith((".parameters.numFiles", ".parameters.totalSize")) and (theirs, ours) == ("0", None)


def _asked_spelling(place: str, theirs: Any, ours: Any) -> bool:
    return ".values[" in place and {theirs, ours} == {"", DEFAULT_PARTITION}


def _name_as_sent(place: str, theirs: Any, ours: Any) -> bool:
    is_name = place.removeprefix("reply.success").removeprefix("[0]") in (".dbName", ".tableName")
    return is_name and str(theirs).strip().lower() == ours


def _succeeds_here(*beginnings: str) -> Callable[[Answers], bool]:
    """Hive refuses with a text that begins like one of these, we answer."""
    return lambda answers: answers.texts[0].startswith(beginnings) and answers.exceptions[1] is None


def _text_behind_filter(answers: Answers) -> bool:
    return "success" in answers.theirs and "expected AND, OR or the end" in answers.texts[1]


def _more_by_prefix(answers: Answers) -> bool:
    """All we find is among what Hive finds; with a limit, it may have taken others."""
    theirs, ours = answers.theirs.get("success"), answers.ours.get("success")
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return False
    if answers.arguments["max_parts"] == 0:
        return not ours
    if answers.arguments["max_parts"] > 0:
        return len(ours) <= len(theirs) <= answers.arguments["max_parts"]
    return all(one in theirs for one in ours)


def _partitions_of_the_default_one(answers: Answers) -> bool:
    theirs, ours = answers.theirs.get("success"), answers.ours.get("success")
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return False
    unlike = [one for one in theirs if one not in ours] + [one for one in ours if one not in theirs]
    return all({"", DEFAULT_PARTITION} & {*one["values"]} for one in unlike)


def _empty_for_missing_table(answers: Answers) -> bool:
    return answers.theirs == {"success": []} and answers.exceptions[1] == "NoSuchObjectException"


def _no_error_at_all(exception: str) -> Callable[[Answers], bool]:
    return lambda answers: answers.theirs == {} and answers.exceptions[1] == exception


def _reason_is_told(answers: Answers) -> bool:
    theirs, ours = (reply.get("TApplicationException", {}) for reply in (answers.theirs, answers.ours))
    if theirs.get("type") != INTERNAL_ERROR or ours.get("type") != INTERNAL_ERROR:
        return False
    return str(ours["message"]).startswith(f"{theirs['message']}: ")


def _missing_field(answers: Answers) -> bool:
    theirs, ours = (reply.get("TApplicationException", {}) for reply in (answers.theirs, answers.ours))
    if theirs.get("type") != PROTOCOL_ERROR or ours.get("type") != PROTOCOL_ERROR:
        return False
    return str(theirs["message"]).startswith(f"{ours['message']}(")


def _request(answers: Answers) -> Mapping[str, Any]:
    """The only argument."""
    return next(iter(answers.arguments.values()), None) or {}


def _was_committed(answers: Answers) -> bool:
    """We have committed that transaction before, and it had nothing to be remembered by."""
    asked = _request(answers).get("txnid")
    known = any(
        one.method == "commit_txn" and _request(one).get("txnid") == asked and one.ours == {} for one in answers.earlier
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
    operation = _request(answers).get("operationType", UNSET)
    return _internal_error(answers.theirs) and answers.ours == {} and operation == UNSET


def _records_nothing(answers: Answers) -> bool:
    operations = {one.get("operationType") for one in _request(answers).get("component", ())}
    return _internal_error(answers.theirs) and "success" in answers.ours and NO_TXN in operations


def _exclusive_write(answers: Answers) -> bool:
    types = {one.get("type") for one in _request(answers).get("component", ())}
    return "'type' is unset" in answers.texts[0] and "success" in answers.ours and EXCLUSIVE_WRITE in types


def _unknown_type(answers: Answers) -> bool:
    is_unset = "Required field 'type' is unset!" in answers.texts[0] or "closed" in answers.theirs
    return is_unset and ": unknown " in answers.texts[1]


def _revoked_in_part(answers: Answers) -> bool:
    return "success" in answers.theirs and " grant found for privileges " in answers.texts[1]


def _wrote_to_a_database(answers: Answers) -> bool:
    asked = _request(answers).get("txnid")
    locks = (_request(one) for one in answers.earlier if one.method == "lock" and "success" in one.ours)
    changed = any(
        part.get("operationType") in (UPDATE, DELETE) and "tablename" not in part
        for request in locks
        if request.get("txnid") == asked
        for part in request["component"]
    )
    return changed and _internal_error(answers.theirs) and answers.ours == {}


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


def _called(answers: Answers) -> Called:
    return answers.method, answers.arguments, answers.ours


def _role_is_revoked(answers: Answers) -> bool:
    is_revoked = answers.ours == {"success": True} or (
        answers.ours == {"success": {"success": True}} and _request(answers).get("requestType") == REVOKE
    )
    return _internal_error(answers.theirs) and is_revoked


def _deadlock(answers: Answers) -> bool:
    is_told = answers.exceptions[1] == "TxnAbortedException" and ": deadlock with " in answers.texts[1]
    return is_told and _state(answers.theirs) == WAITING


def _lost_its_lock(answers: Answers) -> bool:
    asked_for_none = any(one.method == "abort_txns" and 0 in _request(one)["txn_ids"] for one in answers.earlier)
    return answers.exceptions[0] == "NoSuchLockException" and "success" in answers.ours and asked_for_none


NEWER_EVENT_KEYS = ("tableType", "isTruncateOp", "replace", "ptnObjJson", "subDirectoryList")
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


def _events_say_more(answers: Answers) -> bool:
    """Our events of the kinds that Hive has, in its order, say all that its events say."""
    if "success" not in answers.theirs or "success" not in answers.ours:
        return False
    theirs = answers.theirs["success"]["events"]
    ours = [event for event in answers.ours["success"]["events"] if _is_of_hive(event)]
    limit = _request(answers).get("maxEvents") or 0
    if limit > 0:
        theirs, ours = theirs[: len(ours)], ours[: len(theirs)]
    return len(theirs) == len(ours) and all(map(_says_more, _in_one_order(theirs), _in_one_order(ours)))


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


def _says_more(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    return all(_accounted_in_event(*place) for place in different_places(theirs, ours))


def _accounted_in_event(place: str, theirs: Any, ours: Any) -> bool:
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


def _counts_of_calls(answers: Answers) -> bool:
    return all(isinstance(reply.get("success"), dict | int) for reply in (answers.theirs, answers.ours))


def _groups_and_user(answers: Answers) -> bool:
    user = answers.arguments.get("user_name")
    return "success" in answers.ours and answers.theirs == {"success": [*answers.ours["success"], user]}


def _marked_however_spelled(answers: Answers) -> bool:
    names = (answers.arguments.get("db_name"), answers.arguments.get("tbl_name"))
    replies = (answers.theirs.get("success"), answers.ours.get("success"))
    return replies == (False, True) and any(name != name.strip().lower() for name in names if name)


def _mark_of_a_former_table(answers: Answers) -> bool:
    names = (answers.arguments.get("db_name"), answers.arguments.get("tbl_name"))
    was_dropped = any(
        one.method == "drop_table" and (one.arguments["dbname"], one.arguments["name"]) == names
        for one in answers.earlier
    )
    return was_dropped and (answers.theirs.get("success"), answers.ours.get("success")) == (True, False)


def _unreadable_expression(answers: Answers) -> bool:
    success = answers.ours.get("success", {})
    return answers.exceptions[0] == "MetaException" and success.get("hasUnknownPartitions") is True


def _all_that_may_match(answers: Answers) -> bool:
    """We tell all partitions, and that some may not match. The real one may lack the classes to evaluate anything."""
    theirs, ours = answers.theirs.get("success"), answers.ours.get("success")
    if not ours or not ours.get("hasUnknownPartitions"):
        return False
    if not theirs:
        return "NoClassDefFoundError" in answers.theirs.get("closed", "")
    limit = _request(answers).get("maxParts", -1)
    return limit >= 0 or all(one in ours["partitions"] for one in theirs["partitions"])


def _none_of_them(answers: Answers) -> bool:
    is_of_none = "success" in answers.theirs and _request(answers).get("maxParts") == 0
    return is_of_none and answers.ours.get("success", {}).get("partitions") == []


def _not_dropped_by_expression(answers: Answers) -> bool:
    has_expressions = "exprs" in _request(answers).get("parts", {})
    return "success" in answers.theirs and answers.exceptions[1] == "MetaException" and has_expressions


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


def _nothing_to_clear(answers: Answers) -> bool:
    return _internal_error(answers.theirs) and answers.ours == {"success": {}}


def _same_but_for(*names: str) -> Callable[[Answers], bool]:
    """The same values in any order, but for fields that clients of 2.3 do not know."""

    def applies(answers: Answers) -> bool:
        ours = _without(answers.ours, names)
        return "success" in ours and _sorted(ours) == _sorted(answers.theirs)

    return applies


def _without(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(one, names) for key, one in value.items() if key not in names}
    return [_without(one, names) for one in value] if isinstance(value, list) else value


def _stays_where_it_is(answers: Answers) -> bool:
    texts = ("java.lang.NullPointerException", "Unable to change partition or table. Database", "new table ")
    names = (answers.arguments.get("dbname"), answers.arguments.get("new_tbl", {}).get("dbName"))
    asked, said = ((name or "").strip().lower() for name in names)
    return answers.texts[0].startswith(texts) and answers.ours == {} and said in ("", asked)


def _location_is_none(answers: Answers) -> bool:
    prefix = "java.lang.IllegalArgumentException: java.net.URISyntaxException"
    is_refused = answers.exceptions[1] == "MetaException" and answers.texts[1].startswith(prefix)
    return is_refused and (answers.theirs == {} or answers.texts[0].startswith(prefix))


def _too_long_for_hive(answers: Answers) -> bool:
    """Some text of the request is longer than any of Hive's columns, and Hive says so, or fails without a word."""
    is_refused = answers.texts[0].startswith("Attempt to store value") or _internal_error(answers.theirs)
    return is_refused and _longest(answers.arguments) > HIVE_NAME_MAX


def _longest(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(_longest, parts), default=0)


def _constraint_named_twice(answers: Answers) -> bool:
    if answers.theirs == {}:
        return answers.texts[1].startswith("Constraint name already exists: ")
    is_refused = answers.texts[0].startswith("One or more instances could not be made persistent")
    return is_refused and (answers.ours == {} or answers.exceptions[1] == "MetaException")


def _null_name_refused(answers: Answers) -> bool:
    return "success" in answers.theirs and answers.texts[1].endswith(" name must not be null")


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "malformed arguments",
        "*",
        "A required field that is missing ends the connection, or the HTTP request with status 500.",
        "Answers with the application exception PROTOCOL_ERROR (7), which names the field.",
        "A client learns what was wrong, and its connection stays usable.",
        _malformed,
    ),
    Difference(
        "internal errors",
        "*",
        "Some exceptions inside Hive are not declared for the method, or are Java's own: the client gets "
        "INTERNAL_ERROR (6) with no reason.",
        "Answers with a declared exception that says what is wrong.",
        "Nothing a client sends is our internal error.",
        _breaks_where_we_explain,
    ),
    Difference(
        "internal errors of methods that declare none",
        "*",
        "Where the IDL declares no exception that fits, the client gets INTERNAL_ERROR (6), 'Internal error …' "
        "and the method's name.",
        "The same, followed by a colon and the reason.",
        "Every Thrift client shows the text.",
        _reason_is_told,
    ),
    Difference(
        "fields that are missing deep inside",
        "lock open_txns compact compact2 add_dynamic_partitions update_table_column_statistics"
        " update_partition_column_statistics set_aggr_stats_for",
        "The text of the PROTOCOL_ERROR ends with the whole struct as Java prints it.",
        "It ends with the struct's name.",
        "What the caller sent, it knows.",
        _missing_field,
    ),
    Difference(
        "unknown numbers of types",
        "lock compact compact2",
        "PROTOCOL_ERROR, or a broken connection: an enum value that Java does not know counts as not set.",
        "INTERNAL_ERROR with a text that names the number; these methods declare no exception for it.",
        "The field was set, and the text says what was wrong with it.",
        _unknown_type,
    ),
    Difference(
        "null arguments",
        "*",
        "MetaException with the text of Java's NullPointerException, which differs between Java versions.",
        "MetaException that names what must not be null.",
        "The text helps; no client can rely on Java's.",
        _null_pointer,
    ),
    Difference(
        "texts that are empty",
        "*",
        "An exception about the name '' has an empty text or none, depending on the database behind it.",
        "Such an exception has no text.",
        "Both read the same in every client.",
        _empty_text_is_none,
    ),
    Difference(
        "database to drop is missing",
        "drop_database",
        "With a listener configured: MetaException of a NullPointerException, from its cleaning up.",
        "NoSuchObjectException with the name.",
        "The IDL declares it, Hive 3 and later do it, and every client expects it.",
        _missing_database,
    ),
    Difference(
        "database to alter is missing",
        "alter_database",
        "Nothing happens, and it counts as success.",
        "NoSuchObjectException with the name, as Hive 3 and later.",
        "A change that is lost must not look done.",
        _no_error_at_all("NoSuchObjectException"),
    ),
    Difference(
        "database to alter is null",
        "alter_database",
        "Nothing happens, and it counts as success.",
        "MetaException that says so.",
        "A change that is lost must not look done.",
        _no_error_at_all("MetaException"),
    ),
    Difference(
        "patterns without alternatives",
        "get_databases get_tables get_tables_by_type get_functions get_table_meta",
        "A pattern of bars only, such as '|', is an error of its query language.",
        "Matches nothing.",
        "It asks for the names that match none of no alternatives.",
        _nothing_between_bars,
    ),
    Difference(
        "owners in get_table_meta",
        "get_table_meta",
        "Hive 2.3 knows no ownerName there, and the order of the answer is not defined.",
        "ownerName is set as Hive 4 does; ordered by name.",
        "Older clients skip the field.",
        _owners_beside,
    ),
    Difference(
        "tables without a type",
        "get_tables_by_type get_table_meta",
        "A table created without tableType is found under no type, though it reads as MANAGED_TABLE.",
        "It is found under the type that it reads as.",
        "A listing of managed tables must have all of them.",
        _only_untyped_more,
    ),
    Difference(
        "undefined order",
        "get_table_names_by_filter get_table_objects_by_name get_table_objects_by_name_req get_table_meta"
        " get_all_functions get_role_names list_roles get_privilege_set list_privileges get_partitions_statistics_req",
        "The order is the database's.",
        "Ordered by name.",
        "The same question gets the same answer everywhere.",
        _reordered,
    ),
    Difference(
        "texts of the filter parser",
        "get_table_names_by_filter get_partitions_by_filter get_num_partitions_by_filter get_part_specs_by_filter",
        "MetaException 'Error parsing partition filter …' with the names of its parser's internal classes.",
        "The same beginning, then what was expected where.",
        "No client reads further than the beginning.",
        _other_text("Error parsing partition filter"),
    ),
    Difference(
        "texts made of sets",
        "get_table_names_by_filter",
        "Lists the operators in the order of a Java hash set.",
        "Lists them in one order.",
        "The order means nothing.",
        _other_text("Only ["),
    ),
    Difference(
        "null filter for tables",
        "get_table_names_by_filter",
        "InvalidOperationException 'null cannot apply null filter': meant was the database's name.",
        "InvalidOperationException with the database's name.",
        "A slip.",
        _other_text("null cannot apply null filter"),
    ),
    Difference(
        "names that come twice in one list",
        "create_table create_table_with_environment_context create_table_with_constraints alter_table"
        " alter_table_with_environment_context alter_table_with_cascade add_partition",
        "MetaException with the SQL statement that failed.",
        "MetaException that names the column.",
        "The statement is that of another schema.",
        _other_text("Add request failed : INSERT INTO"),
    ),
    Difference(
        "columns without a type",
        "create_table alter_table",
        "MetaException with the text of Java's StringIndexOutOfBoundsException.",
        "MetaException that says it.",
        "The text helps; no client can rely on Java's.",
        _other_text("java.lang.StringIndexOutOfBoundsException"),
    ),
    Difference(
        "tables altered without a location",
        "alter_table alter_table_with_environment_context alter_table_with_cascade",
        "A null or empty location is an error for unpartitioned tables, whose files are counted. For others "
        "it is stored as it is, and the table's database can no longer be dropped.",
        "The table keeps its location.",
        "A location nobody named is not a wish to lose the old one.",
        _succeeds_without_location,
    ),
    Difference(
        "rename into a database that is missing",
        "alter_table alter_table_with_environment_context alter_table_with_cascade",
        "InvalidOperationException 'Unable to change partition or table. …'; the end depends on the database.",
        "The text that Hive has over PostgreSQL.",
        "The exception and its beginning are the same.",
        _other_text("Unable to change partition or table."),
    ),
    Difference(
        "partitions in texts",
        "append_partition append_partition_by_name append_partition_with_environment_context"
        " append_partition_by_name_with_environment_context add_partitions add_partitions_req",
        "AlreadyExistsException and MetaException quote the partition with the location it was to get.",
        "They quote it as it was sent.",
        "The exception and the text's beginning are the same.",
        _other_text("Partition already exists:", "java.io.IOException: Duplicate partitions in the list"),
    ),
    Difference(
        "creation times of partitions",
        "get_partition get_partition_by_name get_partitions get_partitions_by_names get_partitions_ps"
        " get_partitions_by_filter get_partitions_pspec get_part_specs_by_filter get_partition_with_auth"
        " get_partitions_ps_with_auth get_partitions_with_auth",
        "add_partitions_pspec stores no times, and alter_partition resets createTime to 0 for clients that send none.",
        "The creation time is set once and stays.",
        "Clients that do not know a field must not erase it.",
        _only_at(_creation_forgotten),
    ),
    Difference(
        "spelling of the default partition",
        "get_partition get_partition_with_auth get_partition_by_name",
        "'' and __HIVE_DEFAULT_PARTITION__ are the same partition; the answer has the spelling that was asked for.",
        "The answer has the spelling that is stored.",
        "A partition reads the same whoever asks.",
        _only_at(_asked_spelling),
    ),
    Difference(
        "names in what is returned",
        "get_partitions_pspec get_part_specs_by_filter append_partition append_partition_by_name"
        " append_partition_with_environment_context append_partition_by_name_with_environment_context",
        "The names of database and table as the request spells them.",
        "The names as they are stored.",
        "The next read says so too.",
        _only_at(_name_as_sent),
    ),
    Difference(
        "partial partition values",
        "get_partitions_ps get_partitions_ps_with_auth get_partition_names_ps",
        "Matches the last value that is given by its beginning (ds=p finds ds=p2), a dot in a value as any character; "
        "in no defined order, so a limit takes any; over Derby a limit of 0 is none.",
        "Compares value by value; ordered by name; a limit of 0 takes none, as Hive over PostgreSQL.",
        "Nobody who asks for ds=p wants ds=p2.",
        _more_by_prefix,
    ),
    Difference(
        "partitions of a missing table, with privileges",
        "get_partitions_with_auth",
        "An empty list.",
        "NoSuchObjectException as get_partitions.",
        "The IDL declares it, and the twin method does it.",
        _empty_for_missing_table,
    ),
    Difference(
        "partitions altered without names",
        "alter_partition alter_partition_with_environment_context alter_partitions"
        " alter_partitions_with_environment_context",
        "MetaException when the partition does not name its database and table as the request does.",
        "The request names them already.",
        "There is nothing to doubt.",
        _succeeds_here("java.lang.NullPointerException", "The transaction for alter partition did not commit"),
        parts_catalogs=True,
    ),
    Difference(
        "partitions renamed into other tables",
        "rename_partition",
        "A new partition that names another table fails at its directory.",
        "It fails at once; the exception is the same.",
        "No directory is looked for.",
        _other_text("java.lang.IllegalArgumentException: Can not create a Path from a null string"),
    ),
    Difference(
        "tables altered, their database spelled otherwise",
        "alter_table alter_table_with_environment_context alter_table_with_cascade",
        "A table that names no database, or spells it otherwise than the request, cannot be altered.",
        "It stays where it is.",
        "Everywhere else names are found however they are written.",
        _stays_where_it_is,
        parts_catalogs=True,
    ),
    Difference(
        "locations of several partitions",
        "alter_partitions alter_partitions_with_environment_context",
        "Locations are not checked; texts quote a location with its blanks encoded.",
        "MetaException for a location that is none, as for one partition.",
        "Nothing could be read from there.",
        _location_is_none,
        parts_catalogs=True,
    ),
    Difference(
        "texts longer than columns",
        "*",
        "MetaException 'Attempt to store value …', or INTERNAL_ERROR, for names, owners and types that are too long "
        "for its database.",
        "Kept, up to the length that the gateway's own limits allow.",
        "How long a text may be does not depend on the database behind.",
        _too_long_for_hive,
        parts_catalogs=True,
    ),
    Difference(
        "directories that cannot be made",
        "add_partitions add_partitions_req",
        "The text begins with the name of Java's exception.",
        "It begins with the directory.",
        "As for one partition.",
        _other_text("java.io.IOException: "),
    ),
    Difference(
        "names of constraints",
        "add_primary_key add_foreign_key create_table_with_constraints",
        "One name cannot be used twice in all databases, unless it is spelled otherwise: MetaException 'One or more "
        "instances could not be made persistent'.",
        "A name is one table's, however it is spelled.",
        "Clients make names like pk that other tables have too.",
        _constraint_named_twice,
        parts_catalogs=True,
    ),
    Difference(
        "null names of roles and principals",
        "create_role drop_role grant_role revoke_role list_roles grant_privileges revoke_privileges"
        " get_principals_in_role get_role_grants_for_principal grant_revoke_role grant_revoke_privileges",
        "Nobody by the name null is granted, asked for or removed, and it counts as success.",
        "MetaException that says what must not be null.",
        "A change that is lost must not look done.",
        _null_name_refused,
        parts_catalogs=True,
    ),
    Difference(
        "empty statistics",
        "update_table_column_statistics update_partition_column_statistics set_aggr_stats_for",
        "INTERNAL_ERROR (6) when there are statistics of no column.",
        "Nothing is done.",
        "Nothing was asked for.",
        lambda answers: _internal_error(answers.theirs) and answers.ours == {"success": True},
    ),
    Difference(
        "null names of options, counters and users",
        "getOption setOption getCounter set_ugi",
        "INTERNAL_ERROR (6).",
        "Nothing is set, there is nothing, it is 0, there are no groups.",
        "There is none by the name null.",
        lambda answers: _internal_error(answers.theirs) and answers.ours in ({}, {"success": 0}, {"success": []}),
    ),
    Difference(
        "what is altered of an index",
        "alter_index",
        "Looks at all of the new index, and takes only its parameters.",
        "Takes its parameters.",
        "The rest has no effect.",
        lambda answers: _declared(answers.theirs) and answers.ours == {},
        parts_catalogs=True,
    ),
    Difference(
        "values of partitions that nobody can have",
        "get_partition_values",
        "MetaException 'Error retrieving partition values: …' with Java's exception or the failing statement; for a "
        "missing table with a filter none.",
        "MetaException that names the key or the table.",
        "The text helps; no client can rely on Java's.",
        lambda answers: (
            answers.exceptions[1] == "MetaException"
            and (answers.theirs == {"success": {"partitionValues": []}} or answers.exceptions[0] == "MetaException")
        ),
    ),
    Difference(
        "expressions for partitions to drop that cannot be read",
        "drop_partitions_req",
        "MetaException with a text of its deserializer.",
        "MetaException that says it.",
        "The text helps; no client can rely on Java's.",
        _other_text("Index "),
    ),
    Difference(
        "privileges revoked together",
        "revoke_privileges grant_revoke_privileges",
        "Once one of several privileges has been found, the others need not have been granted.",
        "Each of them must have been granted, or none is revoked: MetaException 'No … grant found'.",
        "A call does all it is asked for or nothing.",
        _revoked_in_part,
        parts_catalogs=True,
    ),
    Difference(
        "keys on partition keys",
        "add_primary_key add_foreign_key",
        "INTERNAL_ERROR (6): only columns of the table can have constraints.",
        "Keys of its partitions can, too, as in Hive 3 and later.",
        "Newer clients send them.",
        lambda answers: _internal_error(answers.theirs) and answers.ours == {},
        parts_catalogs=True,
    ),
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
        "who is in the way, and when he was heard of",
        "show_locks",
        "blockedByExtId and blockedByIntId are set by some answers only, and name any lock in the way. A heartbeat of a "
        "transaction's lock leaves a time of its own.",
        "Every waiting lock names the earliest one in its way. The heartbeat of a transaction is that of its locks.",
        "Whoever waits wants to know for whom; a lock lives as long as its transaction.",
        _only_at(lambda place, theirs, ours: _blocker(place, theirs, ours) or _heartbeat_of_transaction(place, ours)),
    ),
    Difference(
        "databases in which there are indexes",
        "drop_database",
        "Cannot be dropped: NoSuchObjectException for the index's table, which went with the indexed one.",
        "They are dropped, indexes and all.",
        "It is what cascade means.",
        lambda answers: answers.ours == {} and answers.texts[0].endswith("idx_table table not found"),
        parts_catalogs=True,
    ),
    Difference(
        "several mistakes in a new index",
        "add_index",
        "Reports that its table exists before all else.",
        "Reports what the index lacks first.",
        "The call has no effect either way.",
        lambda answers: _declared(answers.theirs) and _declared(answers.ours),
    ),
    Difference(
        "columns spelled with blanks",
        "update_table_column_statistics update_partition_column_statistics",
        "Blanks around a column's name are part of it.",
        "They are not.",
        "Nor are they in other calls.",
        lambda answers: answers.texts[0].startswith("Column  ") and answers.ours == {"success": True},
    ),
    Difference(
        "foreign keys of any table",
        "get_foreign_keys",
        "Without the foreign table none, or MetaException of a NullPointerException; it depends on the database.",
        "MetaException that says it.",
        "It is not known whose keys are meant.",
        lambda answers: answers.theirs == {"success": {"foreignKeys": []}} and answers.exceptions[1] == "MetaException",
    ),
    Difference(
        "exchange over a partition that exists",
        "exchange_partition exchange_partitions",
        "MetaException with the SQL statement that failed.",
        "MetaException 'Partition already exists:…'.",
        "The statement is that of another schema.",
        _other_text("Insert of object"),
    ),
    Difference(
        "filters on keys of every type",
        "get_partitions_by_filter get_num_partitions_by_filter get_part_specs_by_filter",
        "MetaException 'Filtering is supported only on partition keys of type string' unless key and literal are both "
        "strings, integers or dates, and for LIKE beside any other condition.",
        "Every comparison of the grammar works on every type of key, converting literals.",
        "Spark reads the whole table where a filter is refused.",
        _succeeds_here("Filtering is supported only"),
    ),
    Difference(
        "newer filter grammar",
        "get_partitions_by_filter get_num_partitions_by_filter get_part_specs_by_filter",
        "Decimals, DATE '…' and names in backquotes are parse errors.",
        "They work as in Hive 4.",
        "Newer clients send them.",
        _succeeds_here("Error parsing partition filter"),
    ),
    Difference(
        "text behind a filter",
        "get_partitions_by_filter get_num_partitions_by_filter get_part_specs_by_filter",
        "What follows a complete filter is ignored, a second quoted string or a closing bracket too.",
        "MetaException 'Error parsing partition filter …', as Hive 4.",
        "Half a filter selects, and drops, the wrong partitions.",
        _text_behind_filter,
    ),
    Difference(
        "default partition in filters",
        "get_partitions_by_filter",
        "A partition stored as '' compares as '' in one kind of query and as __HIVE_DEFAULT_PARTITION__ in another.",
        "Both spellings compare as __HIVE_DEFAULT_PARTITION__.",
        "They are the same partition.",
        _partitions_of_the_default_one,
    ),
    Difference(
        "integers too long for a filter",
        "get_partitions_by_filter get_num_partitions_by_filter get_part_specs_by_filter",
        "MetaException with the text of Java's NumberFormatException.",
        "MetaException 'Error parsing partition filter …'.",
        "The text helps; no client can rely on Java's.",
        _other_text("java.lang.NumberFormatException"),
    ),
    Difference(
        "spelling of names in texts",
        "get_partitions_pspec get_num_partitions_by_filter get_table_objects_by_name get_table_objects_by_name_req"
        " get_aggr_stats_for get_table_statistics_req get_partitions_statistics_req get_table_column_statistics"
        " get_partition_column_statistics update_table_column_statistics add_primary_key delete_table_column_statistics"
        " delete_partition_column_statistics alter_table"
        " alter_table_with_environment_context alter_table_with_cascade",
        "Some texts have names as the request spells them, some in lower case.",
        "Names of databases and tables are spelled as in the request, names of columns in lower case.",
        "The names are the same.",
        _names_spelled_otherwise,
    ),
    Difference(
        "directories that failing calls leave behind",
        "add_partition add_partition_with_environment_context add_partitions_req append_partition"
        " append_partition_by_name get_partition get_partition_by_name get_partitions get_partitions_by_names"
        " get_partitions_ps get_partitions_by_filter get_partitions_pspec drop_partitions_req",
        "An add_partitions that fails may leave directories, so partitions added there later start with numFiles=0.",
        "A call that fails takes its directories back.",
        "What failed has no effect.",
        _only_at(_left_directory),
    ),
    Difference(
        "several mistakes in one list",
        "alter_partitions",
        "Reports the first partition with a mistake.",
        "Reports a wrong number of values before a partition that is missing.",
        "All names are looked up at once; the call has no effect either way.",
        _another_of_several,
    ),
    Difference(
        "column statistics that are not there",
        "get_table_column_statistics get_partition_column_statistics",
        "A null result, which clients report as a missing result.",
        "NoSuchObjectException.",
        "The IDL promises it.",
        _nothing_found,
    ),
    Difference(
        "statistics for a partition name that is none",
        "update_partition_column_statistics delete_partition_column_statistics set_aggr_stats_for",
        "MetaException 'Partition name is invalid. '.",
        "InvalidObjectException that names the key which is missing.",
        "It says what to correct, in the words of the other calls by name.",
        _exceptions("MetaException", "InvalidObjectException"),
    ),
    Difference(
        "all statistics of a table that has none",
        "delete_table_column_statistics delete_partition_column_statistics",
        "Deleting all of none succeeds, deleting those of one column that has none does not.",
        "NoSuchObjectException either way.",
        "One rule for both.",
        lambda answers: answers.theirs == {"success": True} and answers.exceptions[1] == "NoSuchObjectException",
    ),
    Difference(
        "one list of constraints",
        "create_table_with_constraints",
        "MetaException of a NullPointerException when one list is null and the other is not.",
        "A list that is null is empty.",
        "Newer clients send only the lists they have.",
        _succeeds_here("java.lang.NullPointerException"),
        parts_catalogs=True,
    ),
    Difference(
        "roles to revoke that do not exist",
        "revoke_role grant_revoke_role",
        "INTERNAL_ERROR (6), as its exception is not declared.",
        "True, as for a role that was not granted.",
        "What was asked for holds.",
        _role_is_revoked,
    ),
    Difference(
        "index as it is returned",
        "add_index",
        "The index as it was sent.",
        "The index as it is stored, its descriptor complete.",
        "The next read says so too.",
        _only_at(_descriptor_completed),
    ),
    Difference(
        "values of settings that are no numbers",
        "setMetaConf",
        "The text ends with that of Java's NumberFormatException.",
        "The text ends with what the value should be.",
        "No client can rely on Java's texts.",
        _other_text("Invalid configuration value"),
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
        "They tell who left a transaction open, and what became of it.",
        _only_at(_transaction_details),
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
        "A request waits for whoever holds or earlier asked for what it cannot share.",
        "Locks exclude each other, or they are none; and nobody starves.",
        _granted_too_early,
        parts_catalogs=True,
    ),
    Difference(
        "deadlocks",
        "lock",
        "Transactions that wait for each other do so until one times out.",
        "The youngest of them is aborted, and told with whom it collided.",
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
        "Nobody could carry them out.",
        _compactions_left,
    ),
    Difference(
        "what events say",
        "get_next_notification",
        "Some changes write no event (tables of indexes, altered functions, statistics, grants). Messages have objects "
        "as they were sent, and names as they were spelled.",
        "Every change of the catalog writes one, so ids are further apart. Messages have the objects as they are "
        "stored, and the keys that Hive 3 added (tableType, isTruncateOp, replace, the table of an insertion).",
        "What is written to the log is what a cache and a replica go by.",
        _events_say_more,
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
        "events that nobody asked for",
        "get_next_notification",
        "Without a request the result is missing.",
        "INTERNAL_ERROR that says that the request must not be null.",
        "It says what was wrong.",
        _null_request_of_events,
    ),
    Difference(
        "events of no kind",
        "fire_listener_event",
        "An event without data breaks the connection.",
        "INTERNAL_ERROR that says it, since the method declares no exception.",
        "The client's connection stays usable.",
        _event_of_no_kind,
    ),
    Difference(
        "numbers of calls",
        "getCounters getCounter",
        "Counts calls under names that differ from the methods' for some (a point at the end, names of databases), and "
        "calls within calls; those about transactions and locks not at all.",
        "The number of calls of each method.",
        "That is what is asked.",
        _counts_of_calls,
    ),
    Difference(
        "identity of the connection",
        "set_ugi",
        "Over TCP the groups; what answers behind it, which the comparison asks, adds the user.",
        "The groups.",
        "It is what clients see.",
        _groups_and_user,
    ),
    Difference(
        "file metadata to clear",
        "clear_file_metadata",
        "INTERNAL_ERROR (6): not supported by its store.",
        "There is none, so it is cleared.",
        "What was asked for holds.",
        _nothing_to_clear,
    ),
    Difference(
        "marks of partitions",
        "isPartitionMarkedForEvent",
        "Names of databases and tables are compared as they are spelled.",
        "A table is the same however its name is spelled.",
        "Everywhere else it is.",
        _marked_however_spelled,
    ),
    Difference(
        "marks of tables that were dropped",
        "isPartitionMarkedForEvent",
        "They stay, and are those of the next table of that name.",
        "They go with the table.",
        "The new table's data was never loaded.",
        _mark_of_a_former_table,
    ),
    Difference(
        "indexes without a table",
        "add_index",
        "INTERNAL_ERROR (6) without a table to keep the index in.",
        "The index is kept, as its declaration allows.",
        "Nothing of it is used by any client that still runs.",
        lambda answers: _internal_error(answers.theirs) and "success" in answers.ours,
        parts_catalogs=True,
    ),
    Difference(
        "expressions that cannot be read",
        "get_partitions_by_expr",
        "MetaException with a text of its deserializer.",
        "All partitions, and hasUnknownPartitions.",
        "Only Java can tell whether they are Java objects.",
        _unreadable_expression,
    ),
    Difference(
        "expressions over no partitions",
        "get_partitions_by_expr",
        "Over Derby a limit of 0 is none.",
        "It is 0, as Hive over PostgreSQL.",
        "It does not depend on the database behind.",
        _none_of_them,
    ),
    Difference(
        "expressions over partitions",
        "get_partitions_by_expr drop_partitions_req",
        "Expressions are Java objects of its compiler; it evaluates all of them.",
        "Comparisons are read out of the bytes. For other expressions, such as calls of functions: all partitions, and "
        "hasUnknownPartitions, on which the caller evaluates the expression itself; nothing is dropped by them.",
        "There is no Java here, and what cannot be evaluated must not drop anything.",
        lambda answers: _all_that_may_match(answers) or _not_dropped_by_expression(answers),
    ),
)
