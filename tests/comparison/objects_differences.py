"""Where we answer otherwise about statistics, functions, grants, constraints, indexes, and about the server itself."""

from collections.abc import Callable
from typing import Any

from tests.comparison.answers import (
    Answers,
    Difference,
    declared,
    internal_error,
    only_at,
    other_text,
    request,
    succeeds_here,
)

REVOKE = 2


def _nothing_found(answers: Answers) -> bool:
    """Hive's null result is a missing result for clients."""
    return answers.theirs == {} and answers.exceptions[1] == "NoSuchObjectException"


def _descriptor_completed(place: str, theirs: Any, ours: Any) -> bool:
    return theirs is None and place.endswith((".sd.skewedInfo", ".sd.storedAsSubDirectories"))


def _exceptions(theirs: str, ours: str) -> Callable[[Answers], bool]:
    return lambda answers: answers.exceptions == (theirs, ours)


def _revoked_in_part(answers: Answers) -> bool:
    return "success" in answers.theirs and " grant found for privileges " in answers.texts[1]


def _role_is_revoked(answers: Answers) -> bool:
    is_revoked = answers.ours == {"success": True} or (
        answers.ours == {"success": {"success": True}} and request(answers).get("requestType") == REVOKE
    )
    return internal_error(answers.theirs) and is_revoked


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
    limit = request(answers).get("maxParts", -1)
    return limit >= 0 or all(one in ours["partitions"] for one in theirs["partitions"])


def _none_of_them(answers: Answers) -> bool:
    is_of_none = "success" in answers.theirs and request(answers).get("maxParts") == 0
    return is_of_none and answers.ours.get("success", {}).get("partitions") == []


def _not_dropped_by_expression(answers: Answers) -> bool:
    has_expressions = "exprs" in request(answers).get("parts", {})
    return "success" in answers.theirs and answers.exceptions[1] == "MetaException" and has_expressions


def _nothing_to_clear(answers: Answers) -> bool:
    return internal_error(answers.theirs) and answers.ours == {"success": {}}


def _constraint_named_twice(answers: Answers) -> bool:
    if answers.method == "drop_constraint":
        return internal_error(answers.theirs) and answers.ours == {}
    if answers.theirs == {}:
        return answers.texts[1].startswith("Constraint name already exists: ")
    is_refused = answers.texts[0].startswith("One or more instances could not be made persistent")
    return is_refused and (answers.ours == {} or answers.exceptions[1] == "MetaException")


def _null_name_refused(answers: Answers) -> bool:
    return "success" in answers.theirs and answers.texts[1].endswith(" name must not be null")


def _keys_of_unkeyed_parents(answers: Answers) -> bool:
    """We list all that Hive lists."""
    theirs, ours = (reply.get("success", {}).get("foreignKeys") for reply in (answers.theirs, answers.ours))
    return theirs is not None and ours is not None and all(one in ours for one in theirs)


OBJECTS: tuple[Difference, ...] = (
    Difference(
        "functions without types",
        "create_function alter_function",
        "INTERNAL_ERROR (6) without a type of owner or a type of function.",
        "A new function belongs to a user and is one in Java; an altered function keeps the type that is not sent.",
        "Java is the only type there is, and a field that is not sent is not a change.",
        lambda answers: internal_error(answers.theirs) and answers.ours == {},
        parts_catalogs=True,
    ),
    Difference(
        "functions renamed onto others",
        "alter_function",
        "MetaException with the SQL statement that failed.",
        "MetaException 'Function … already exists'.",
        "The statement is that of another schema.",
        other_text("Update of object "),
    ),
    Difference(
        "foreign keys to tables without a primary key",
        "get_foreign_keys",
        "They can be added, and are not listed.",
        "They are listed, with pk_name as it was sent.",
        "What was added must be there.",
        _keys_of_unkeyed_parents,
    ),
    Difference(
        "names of constraints",
        "add_primary_key add_foreign_key create_table_with_constraints drop_constraint",
        "One name cannot be used twice in all databases, unless it is spelled otherwise: MetaException 'One or more "
        "instances could not be made persistent'. A name with capitals cannot be dropped.",
        "A name is one table's, however it is spelled.",
        "Clients make names like pk that other tables have too, and drop what they have made.",
        _constraint_named_twice,
        parts_catalogs=True,
    ),
    Difference(
        "null names of roles and principals",
        "create_role drop_role grant_role revoke_role list_roles grant_privileges revoke_privileges"
        " get_principals_in_role get_role_grants_for_principal grant_revoke_role grant_revoke_privileges",
        "The call has no effect for the name null, and counts as success.",
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
        lambda answers: internal_error(answers.theirs) and answers.ours == {"success": True},
    ),
    Difference(
        "null names of options, counters and users",
        "getOption setOption getCounter set_ugi",
        "INTERNAL_ERROR (6).",
        "Nothing is set, there is nothing, it is 0, there are no groups.",
        "There is none by the name null.",
        lambda answers: internal_error(answers.theirs) and answers.ours in ({}, {"success": 0}, {"success": []}),
    ),
    Difference(
        "what is altered of an index",
        "alter_index",
        "Looks at all of the new index, and takes only its parameters.",
        "Takes its parameters.",
        "The rest has no effect.",
        lambda answers: declared(answers.theirs) and answers.ours == {},
        parts_catalogs=True,
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
        lambda answers: internal_error(answers.theirs) and answers.ours == {},
        parts_catalogs=True,
    ),
    Difference(
        "databases in which there are indexes",
        "drop_database",
        "Cannot be dropped: NoSuchObjectException for the index's table, which went with the indexed one, or "
        "MetaException, which says to drop the index, where the index's table comes first.",
        "They are dropped, indexes and all.",
        "It is what cascade means.",
        lambda answers: (
            answers.ours == {}
            and answers.texts[0].endswith(
                ("idx_table table not found", "is an index table. Please do drop index instead.")
            )
        ),
        parts_catalogs=True,
    ),
    Difference(
        "tables with keys dropped",
        "drop_table drop_table_with_environment_context drop_database",
        "A table with constraints cannot be dropped under a name that is spelled otherwise: MetaException 'One or more "
        "instances could not be deleted'.",
        "It is dropped, its constraints with it.",
        "Everywhere else names are found however they are written.",
        lambda answers: answers.ours == {} and answers.texts[0] == "One or more instances could not be deleted",
        parts_catalogs=True,
    ),
    Difference(
        "several mistakes in a new index",
        "add_index",
        "Reports that its table exists before all else.",
        "Reports what the index lacks first.",
        "The call has no effect either way.",
        lambda answers: declared(answers.theirs) and declared(answers.ours),
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
        "column statistics that are not there",
        "get_table_column_statistics get_partition_column_statistics",
        "A null result, which clients report as a missing result.",
        "NoSuchObjectException.",
        "The IDL promises it.",
        _nothing_found,
    ),
    Difference(
        "statistics for an invalid partition name",
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
        succeeds_here("java.lang.NullPointerException"),
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
        only_at(_descriptor_completed),
    ),
    Difference(
        "values of settings that are not numbers",
        "setMetaConf",
        "The text ends with that of Java's NumberFormatException.",
        "The text ends with what the value should be.",
        "No client can rely on Java's texts.",
        other_text("Invalid configuration value"),
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
        "new indexes that lack something",
        "add_index",
        "Without a descriptor, a serde, or the table that it names, an index is answered as made, and nothing is kept. "
        "One whose table is in another database can never be dropped, nor can its database.",
        "InvalidObjectException or MetaException that says what is wrong.",
        "A change that is lost must not look done.",
        lambda answers: "success" in answers.theirs and declared(answers.ours),
        parts_catalogs=True,
    ),
    Difference(
        "expressions that cannot be read",
        "get_partitions_by_expr",
        "MetaException with a text of its deserializer.",
        "All partitions, and hasUnknownPartitions.",
        "Only Java can say whether they are Java objects.",
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
