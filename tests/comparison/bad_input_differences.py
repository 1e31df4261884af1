"""Where we answer otherwise to requests that are wrong, whatever the method."""

import re
from collections.abc import Mapping
from typing import Any

from tests.comparison.answers import (
    INTERNAL_ERROR,
    PROTOCOL_ERROR,
    Answers,
    Difference,
    declared,
    internal_error,
)
from tests.comparison.missing import has_null, lacks

JAVA_NULLS = (
    "java.lang.NullPointerException",
    "Cannot invoke",
    "Cannot read field",
    "java.lang.RuntimeException: Cannot",
)
HIVE_NAME_MAX = 767
# What the exceptions say that Hive throws where its IDL declares none of them.
REASONS = (
    ("create_role", r"Role .* already exists\."),
    ("grant_role grant_revoke_role", r"Principal .* already has the role .*|.* role can not be found\."),
    ("grant_privileges grant_revoke_privileges", r".* is already granted.* by .*|There is no database named .*"),
    ("revoke_privileges grant_revoke_privileges", r"No \w+ grant found for privileges .*"),
    ("list_roles", r"There is no principal type .*"),
    ("add_primary_key add_foreign_key", r"(Parent|Child) (table|column) not found: .*"),
    ("add_primary_key add_foreign_key", r" Primary key already exists for: .*|Constraint name already exists: .*"),
    ("drop_constraint", r"The constraint: .* does not exist for the associated table: .*"),
    ("exchange_partition exchange_partitions", r"The (source|destination) table .* not found"),
    ("exchange_partition exchange_partitions", r"Invalid partition key & values; keys .*, values .*"),
    ("get_partition_names fire_listener_event", r".* table not found"),
    ("alter_function", r".* is not a valid object name|Function class name cannot be null|function .* doesn't exist"),
    (
        "grant_privileges revoke_privileges grant_revoke_privileges grant_role revoke_role grant_revoke_role",
        r"Role .* does not exist",
    ),
    ("update_partition_column_statistics set_aggr_stats_for", r"Column .* doesn't exist in table .* in database .*"),
    ("add_partitions_pspec", r"A partition spec must hold a partition list or a shared storage descriptor"),
    ("drop_partitions_req", r"Partition spec is not set"),
    ("get_partition_values", r"partitionKeys is empty; .*"),
    ("add_index", r"Index already exists:.*"),
    ("lock", r"a lock within a transaction must say its operation type|a lock request needs at least one component"),
    ("open_txns", r"Invalid input for number of txns: .*"),
    ("heartbeat_txn_range", r"the range of transactions ends before it begins: .*"),
    ("add_dynamic_partitions", r"partitions are added by a transaction: .*"),
    (
        "alter_partition alter_partition_with_environment_context alter_partitions"
        " alter_partitions_with_environment_context alter_table alter_table_with_environment_context"
        " alter_table_with_cascade rename_partition add_partition add_partitions add_partitions_req",
        r"java\.lang\.IllegalArgumentException: java\.net\.URISyntaxException: .*",
    ),
)
# Functions that are altered into a database that is missing: the text is that name alone.
NAMES_ALONE = "alter_function"
NULL = re.compile(r"(.+) must not be null|.* has no type|Partition does not belong to target table .*", re.DOTALL)
NO_KERBEROS = "delegation tokens are not switched on"
MISSING_FIELD = re.compile(r"Required field '(\w+)' is unset! Struct:(\w+)")


def _breaks_where_we_explain(answers: Answers) -> bool:
    return internal_error(answers.theirs) and declared(answers.ours) and _is_reason(answers, answers.texts[1])


def _is_reason(answers: Answers, text: str) -> bool:
    """Whether it says that something is null, which is, or what is known to be thrown by that method."""
    if NULL.fullmatch(text):
        return has_null(answers.method, answers.arguments)
    if answers.method == NAMES_ALONE and text == _argument(answers, "newFunc").get("dbName"):
        return True
    return any(
        answers.method in methods.split() and re.fullmatch(reason, text, re.DOTALL) for methods, reason in REASONS
    )


def _argument(answers: Answers, name: str) -> Mapping[str, Any]:
    return answers.arguments.get(name) or {}


def _malformed(answers: Answers) -> bool:
    """We name the field, and it is missing."""
    ours = answers.ours.get("TApplicationException", {})
    found = MISSING_FIELD.fullmatch(ours.get("message", ""))
    if not internal_error(answers.theirs) or ours.get("type") != PROTOCOL_ERROR or found is None:
        return False
    return lacks(answers.method, answers.arguments, found[2], found[1])


def _null_pointer(answers: Answers) -> bool:
    """Hive stumbles over something that is null; we say what. Tokens are null for want of Kerberos."""
    theirs, ours = answers.exceptions
    if not (theirs == ours == "MetaException" and answers.texts[0].startswith(JAVA_NULLS)):
        return False
    text = answers.texts[1]
    is_null = bool(NULL.fullmatch(text)) and has_null(answers.method, answers.arguments)
    # A recorded answer is held against the real one, too, whose texts change while Java compiles.
    return is_null or text.startswith((NO_KERBEROS, *JAVA_NULLS))


def _empty_text_is_none(answers: Answers) -> bool:
    theirs, ours = answers.exceptions
    return theirs is not None and theirs == ours and answers.texts == ("", "")


def _reason_is_told(answers: Answers) -> bool:
    theirs, ours = (reply.get("TApplicationException", {}) for reply in (answers.theirs, answers.ours))
    if theirs.get("type") != INTERNAL_ERROR or ours.get("type") != PROTOCOL_ERROR:
        return False
    before, _, reason = str(ours["message"]).partition(": ")
    return before == answers.method and _is_reason(answers, reason)


def _missing_field(answers: Answers) -> bool:
    theirs, ours = (reply.get("TApplicationException", {}) for reply in (answers.theirs, answers.ours))
    if theirs.get("type") != PROTOCOL_ERROR or ours.get("type") != PROTOCOL_ERROR:
        return False
    return str(theirs["message"]).startswith(f"{ours['message']}(")


def _unknown_type(answers: Answers) -> bool:
    is_unset = "Required field 'type' is unset!" in answers.texts[0] or "closed" in answers.theirs
    return is_unset and ": unknown " in answers.texts[1]


def _too_long_for_hive(answers: Answers) -> bool:
    """Some text of the request is longer than any of Hive's columns, and Hive says so, or fails without a word."""
    is_refused = answers.texts[0].startswith("Attempt to store value") or internal_error(answers.theirs)
    return is_refused and _longest(answers.arguments) > HIVE_NAME_MAX


def _longest(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(_longest, parts), default=0)


BAD_INPUT: tuple[Difference, ...] = (
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
        "Some exceptions inside Hive (names not found or taken, nulls) are not declared for the method, or are "
        "Java's own: the client gets INTERNAL_ERROR (6) with no reason.",
        "Answers with a declared exception that says what is wrong.",
        "Nothing a client sends is our internal error.",
        _breaks_where_we_explain,
    ),
    Difference(
        "internal errors of methods that declare none",
        "*",
        "Where the IDL declares no exception that fits, the client gets INTERNAL_ERROR (6), 'Internal error …' "
        "and the method's name.",
        "PROTOCOL_ERROR (7) with the method's name, a colon and the reason.",
        "INTERNAL_ERROR means a bug here, so that operators can count it. Clients treat both types alike and show the "
        "text.",
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
        "PROTOCOL_ERROR with a text that names the number; these methods declare no exception for it.",
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
        "texts longer than columns",
        "*",
        "MetaException 'Attempt to store value …', or INTERNAL_ERROR, for names, owners and types that are too long "
        "for its database.",
        "Kept, up to the length that the gateway's own limits allow.",
        "How long a text may be does not depend on the database behind.",
        _too_long_for_hive,
        parts_catalogs=True,
    ),
)
