"""Differences of our answers to callers of Hive 3.1 and later from Hive 3.1.3, beside those from 2.3.10.

Two answers are compared without what 3.1.3 does not know, and without the catalog that it puts before names in texts.
"""

import re
from typing import Any

from tests.comparison.answers import (
    Answers,
    Difference,
    internal_error,
    only_at,
    other_text,
    request,
    with_sorted_lists,
)
from tests.comparison.replies import Reply
from tests.comparison.servers import Step
from tests.comparison.transactions_differences import accounted_in_event, events_say_more

# Fields of Hive 4, which our answers to newer callers have.
LATER_FIELDS = frozenset({"id", "createTime", "engine", "catName", "ownerName", "eventIds"})
# How texts begin that say the same as those of 2.3.
CHANGED = (
    "Can not drop default database",
    "Specified catalog.database.table",
    "Table ",
    "Column stats doesn't",
    "Unable to add partitions because",
    "Incorrect number of partition values",
    "The partition ",
    "alter is not possible: ",
    "Alter partition operation failed",
    "No partition is found with the values",
    "The destination table",
    "Got exception: org.apache.hadoop.hive.metastore.api.",
    "public role implicitly",
    "No user can be added",
    "The table must be stored using",
)
# How texts about names that are null begin.
NULL_NAMES = (
    "Database name cannot be null.",
    "The DB name cannot be null.",
    "The table name cannot be null.",
    "The DB and table name for the source and destination tables, and the partition specs must not be null.",
)
_HYPHEN = re.compile(r"^\S*-\S* is not a valid")
_CATALOG = re.compile(r"(?<![\w.@])hive\.(?=[\w.{} ])")


def as_both_know(theirs: Reply, ours: Reply) -> tuple[Reply, Reply]:
    """Both answers without what one of the two servers cannot say."""
    plain = _without_catalog(_without_owner_type(theirs))
    return plain, _known(plain, _without_owner_type(ours))


def _known(theirs: Any, ours: Any) -> Any:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        kept = {key: value for key, value in ours.items() if key in theirs or key not in LATER_FIELDS}
        return {key: _known(theirs.get(key), value) for key, value in kept.items()}
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [_known(one, other) for one, other in zip(theirs, ours, strict=True)]
    return ours


def _without_owner_type(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_owner_type(one) for key, one in value.items() if key != "ownerType"}
    return [_without_owner_type(one) for one in value] if isinstance(value, list) else value


def _without_catalog(reply: Reply) -> Reply:
    """The texts of exceptions without `hive.` before the name of a database, and without it in objects."""
    return {
        name: {**value, "message": _CATALOG.sub("", value["message"]).replace(", catName:hive", "")}
        if name.endswith("Exception") and isinstance(value.get("message"), str)
        else value
        for name, value in reply.items()
    }


def _only_the_database(answers: Answers) -> bool:
    """The text is the name of the database that is missing; ours names the table too."""
    theirs, ours = answers.exceptions
    return theirs is not None and theirs == ours and answers.texts[1].startswith(f"{answers.texts[0]}.")


def _small_letters(answers: Answers) -> bool:
    theirs, ours = answers.theirs.get("success"), answers.ours.get("success")
    if isinstance(theirs, list) and isinstance(ours, list):
        names = [{one["tableName"] if isinstance(one, dict) else one for one in some} for some in (theirs, ours)]
        return "lower_mark" in names[0] ^ names[1] <= {"lower_mark", "no_type"}
    return only_at(lambda *place: place == ("reply.success.tableType", "EXTERNAL_TABLE", "MANAGED_TABLE"))(answers)


def _deadlock_before(answers: Answers) -> bool:
    return any(one.method == "lock" and one.exceptions == (None, "TxnAbortedException") for one in answers.earlier)


def _reordered_but_for(answers: Answers, *names: str) -> bool:
    """The same values in any order without these fields."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(one) for key, one in value.items() if key not in names}
        return [without(one) for one in value] if isinstance(value, list) else value

    if not any(name in one for one in answers.theirs.get("success", ()) for name in names):
        return False
    both = with_sorted_lists(without(answers.theirs)), with_sorted_lists(without(answers.ours))
    return bool(both[0] == both[1])


def _in_event_of_3(place: str, theirs: Any, ours: Any) -> bool:
    key = place.rpartition(".")[2]
    if ours is None:
        # The catalog, and the kind of an owner.
        return theirs in ({"str": "hive"}, {"i32": 1}) or key == "isTruncateOp"
    if key in ("isTruncateOp", "partitionFiles"):
        return bool(theirs == str(ours).lower() or not theirs)
    is_more = theirs is None and (".message.dbJson." in place or key == "partKeyVals")
    return is_more or accounted_in_event(place, theirs, ours)


def _constraint_names(place: str, theirs: Any, ours: Any) -> bool:
    if place.endswith((".pk_name", ".fk_name")):
        return bool(theirs == ours.lower())
    # Lists of unlike length: only ours has what refers to a table without keys.
    return place.endswith(".foreignKeys") and [one["fk_name"].lower() for one in ours][: len(theirs)] == [
        one["fk_name"] for one in theirs
    ]


def _bucketed_before(answers: Answers) -> bool:
    return bool((answers.theirs.get("success") or {}).get("sd", {}).get("bucketCols") == ["ID"])


_says_more_of_3 = events_say_more(_in_event_of_3)


def _same_but_for_dropped_tables(answers: Answers) -> bool:
    """A page may begin behind any table of a dropped database; 3.1.3 drops them in another order each time."""
    if "success" not in answers.theirs or "success" not in answers.ours:
        return False
    (theirs, dropped), (ours, also) = map(_without_dropped_tables, (answers.theirs, answers.ours))
    return dropped == also and _says_more_of_3(Answers(answers.method, answers.arguments, theirs, ours))


def _without_dropped_tables(reply: Reply) -> tuple[Reply, int]:
    events = reply["success"]["events"]
    kept = [event for event in events if event["eventType"] != "DROP_TABLE"]
    return {"success": {"events": kept}}, len(events) - len(kept)


def _unknown_column(place: str, theirs: Any, ours: Any) -> bool:
    return place.endswith(".COLUMN_STATS_ACCURATE") and '"nosuch"' in str(theirs) and ours is None


def _exchanged(place: str, theirs: Any, ours: Any) -> bool:
    if place.endswith((".parameters.numFiles", ".parameters.totalSize")):
        return (theirs, ours) == ("0", None)
    return place.endswith(".createTime") and theirs == 0


def _mark_is_gone(answers: Answers) -> bool:
    theirs, ours = (dict(reply.get("success") or {}) for reply in (answers.theirs, answers.ours))
    kept = {key: value for key, value in (ours.get("parameters") or {}).items() if key != "DO_NOT_UPDATE_STATS"}
    return bool(theirs) and {**ours, "parameters": kept} == theirs


THIRD: tuple[Difference, ...] = (
    Difference(
        "what Hive 3.1 does not know",
        "*",
        "Texts name the catalog before the database (`hive.sales.t`); a table without an owner's kind has USER. Fields "
        "of Hive 4 are unknown.",
        "Texts name the database first; ownerType is as it was sent. Answers at /metastore have the fields of Hive 4: "
        "the id of a table, the time when a database was made, the engine of statistics, owners in get_table_meta, the "
        "catalog of what is granted.",
        "Clients of Hive 3.1 skip the fields.",
        lambda answers: answers.theirs == answers.ours,
    ),
    Difference(
        "the catalog hive",
        "get_catalog create_database",
        "Its description is `Default catalog, for Hive`. A database with a marker in its name is refused by that name.",
        "`Default catalog for Hive`; the text for such a name has a dot: `spark.b is not a valid database name`.",
        "Names of other catalogs are written as in other texts.",
        lambda answers: (
            other_text("@")(answers)
            if answers.method == "create_database"
            else only_at(lambda place, *_: place == "reply.success.catalog.description")(answers)
        ),
    ),
    Difference(
        "databases without a name",
        "get_database get_databases drop_database",
        "MetaException: `Database name cannot be null.`, or Java's NullPointerException for a pattern.",
        "MetaException with the text for 2.3; no pattern means every database, as in 2.3.",
        "One text for all callers.",
        lambda answers: (
            answers.exceptions[0] == "MetaException"
            and answers.texts[0].startswith(("Database name cannot be null", "java.lang.NullPointerException"))
            and not (answers.arguments.get("name") or answers.arguments.get("pattern"))
        ),
    ),
    Difference(
        "texts that changed in 3.1",
        "*",
        "Other words for the same exception: `Can not drop default database in catalog hive`, `Table sales.t already "
        "exists`, `The partition values must not be null or empty.`, `alter is not possible: partition values=[a]`, "
        "`No partition is found with the values {ds=a} for the table t`, `Got exception: org.apache.hadoop.hive."
        "metastore.api.NoSuchObjectException nosuch role can not be found.`, `implicitly` for `implictly`.",
        "The texts of 2.3.",
        "One text for all callers.",
        lambda answers: other_text(*CHANGED)(answers) or _only_the_database(answers),
    ),
    Difference(
        "names that are null",
        "*",
        "InvalidObjectException or NoSuchObjectException with the text of a NullPointerException, or a text that does "
        "not say which name it is.",
        "MetaException that names what must not be null, as for callers of 2.3.",
        "The text helps; no client can rely on Java's.",
        lambda answers: (
            answers.texts[0].startswith(("null: Cannot invoke", *NULL_NAMES))
            and answers.exceptions[1] == "MetaException"
            and (answers.texts[1].endswith("must not be null") or answers.texts[1].startswith("Invalid partition key"))
        ),
    ),
    Difference(
        "partition keys that are not sent",
        "alter_table alter_table_with_environment_context alter_table_with_cascade",
        "InvalidOperationException 'partition keys can not be changed.' for a table without keys whose new shape "
        "leaves the field out.",
        "None and no field are the same, as in 2.3.",
        "The keys do not change.",
        lambda answers: (
            answers.texts[0] == "partition keys can not be changed."
            and answers.ours == {}
            and "partitionKeys" not in answers.arguments["new_tbl"]
        ),
    ),
    Difference(
        "marks of statistics on partitioned tables",
        "get_table",
        "Takes the parameter DO_NOT_UPDATE_STATS out of every new table.",
        "Leaves it on partitioned tables, as 2.3 does.",
        "The parameter is the caller's.",
        _mark_is_gone,
    ),
    Difference(
        "external tables that say so in small letters",
        "get_table get_tables_by_type get_table_meta",
        "The parameter EXTERNAL = true makes a table external.",
        "The type stays as it was sent, as in 2.3, which wants capitals. Neither deletes the files of such a table.",
        "The type that a caller reads does not depend on its version.",
        _small_letters,
    ),
    Difference(
        "kinds of tables that do not exist",
        "get_tables_by_type",
        "MetaException with the text of Java's IllegalArgumentException.",
        "No table is of that kind.",
        "Callers of 2.3 and 4 know other kinds.",
        lambda answers: "No enum constant" in answers.texts[0] and answers.ours == {"success": []},
    ),
    Difference(
        "tables by name",
        "get_table_objects_by_name",
        "INTERNAL_ERROR (6): the method declares no exceptions any more.",
        "PROTOCOL_ERROR (7) with the reason.",
        "INTERNAL_ERROR means a bug here, and the text helps.",
        lambda answers: internal_error(answers.theirs) and answers.exceptions[1] == "TApplicationException",
    ),
    Difference(
        "databases of tables, not said",
        "get_table_meta",
        "No pattern means no database.",
        "It means every one, as in 2.3.",
        "One rule for all callers.",
        lambda answers: "db_patterns" not in answers.arguments and answers.theirs == {"success": []},
    ),
    Difference(
        "types of elements",
        "alter_table alter_table_with_environment_context",
        "array<int> may become array<string>: what is within brackets is not compared.",
        "An incompatible type, as in 2.3.",
        "Files have the old elements.",
        lambda answers: (
            answers.exceptions == ("InvalidOperationException", "InvalidOperationException")
            and {*answers.texts[0].split(",")} < {*answers.texts[1].split(",")}
        ),
    ),
    Difference(
        "transactions that nobody asked for",
        "open_txns",
        "INTERNAL_ERROR (6) for 0 transactions.",
        "None are opened, as in 2.3.",
        "What was asked for holds.",
        lambda answers: request(answers).get("num_txns") == 0 and answers.ours == {"success": {"txn_ids": []}},
    ),
    Difference(
        "numbers of locks after a deadlock",
        "lock",
        "A request that closes a circle of transactions has a number.",
        "It has none, so later ones have others.",
        "See `Deadlocks`.",
        lambda answers: _deadlock_before(answers) and only_at(lambda place, *_: place.endswith(".lockid"))(answers),
    ),
    Difference(
        "roles to revoke, unknown to 3.1",
        "revoke_role",
        "MetaException: the role can not be found.",
        "True, as for a role that was not granted.",
        "What was asked for holds.",
        lambda answers: "role can not be found." in answers.texts[0] and answers.ours == {"success": True},
    ),
    Difference(
        "authorizers of grants",
        "list_privileges",
        "The first grants of a server name `SQL` as their authorizer.",
        "They name none, as in 2.3.",
        "One service answers for all versions.",
        lambda answers: _reordered_but_for(answers, "authorizer"),
    ),
    Difference(
        "tokens that do not exist",
        "get_token",
        "An empty token.",
        "None, as in 2.3.",
        "An empty text is no token.",
        lambda answers: (answers.theirs, answers.ours) == ({"success": ""}, {}),
    ),
    Difference(
        "names of settings that 3.1 does not have",
        "get_config_value",
        "Names of 2.3 that 3.1's metastore no longer has are unknown: the default of the request. A setting that is "
        "empty has an empty value.",
        "The values that 2.3 gives; a setting without a value has the default of the request.",
        "One list of names for all callers.",
        lambda answers: answers.theirs.get("success") in ("", answers.arguments.get("defaultValue")),
    ),
    Difference(
        "owners of altered functions",
        "get_all_functions",
        "A function altered without an owner belongs to the account that the server runs under.",
        "It belongs to nobody, as it was sent.",
        "The account is not a user.",
        only_at(lambda place, theirs, ours: place.endswith(".ownerName") and ours is None),
    ),
    Difference(
        "statistics of columns that do not exist",
        "update_partition_column_statistics set_aggr_stats_for get_partitions get_partitions_pspec",
        "Kept for partitions.",
        "MetaException, as for tables and as in 2.3.",
        "They describe nothing.",
        lambda answers: (
            (answers.theirs == {"success": True} and " doesn't exist in table " in answers.texts[1])
            or only_at(_unknown_column)(answers)
        ),
    ),
    Difference(
        "foreign keys to tables without keys",
        "add_foreign_key",
        "MetaException: no primary keys or unique keys for referenced table, or the text of a NullPointerException "
        "where that is the table itself.",
        "Looked at and kept, as in 2.3.",
        "Keys are not enforced.",
        lambda answers: (
            answers.texts[0].startswith("Trying to define foreign key but")
            or '"existingTablePrimaryKeys" is null' in answers.texts[0]
        ),
    ),
    Difference(
        "what events of 3.1 say",
        "get_next_notification",
        "Objects in messages name their catalog and the kind of their owner; isTruncateOp is a text, and an alteration "
        "of a partition says it. Tables of a database that is dropped go in any order.",
        "Objects have neither, and are complete as stored; isTruncateOp is a boolean, which 3.1 reads too. Tables go "
        "in the order of their names.",
        "Clients of 2.3 read the same log.",
        lambda answers: _says_more_of_3(answers) or _same_but_for_dropped_tables(answers),
    ),
    Difference(
        "inserts in the shape of 2.3",
        "fire_listener_event",
        "A request whose data has no filesAdded where 3.1 looks for it ends the connection.",
        "PROTOCOL_ERROR (7) that names the field.",
        "The client's connection stays usable.",
        lambda answers: internal_error(answers.theirs) and "'filesAdded' is unset" in answers.texts[1],
    ),
    Difference(
        "names of constraints in 3.1",
        "get_primary_keys get_foreign_keys",
        "Written in small letters.",
        "As they were sent, like 2.3. A foreign key to a table without keys is there, see above.",
        "Names are found in any case.",
        only_at(_constraint_names),
    ),
    Difference(
        "partitions with privileges, none of them",
        "get_partitions_with_auth",
        "A limit of 0 is none.",
        "It is 0, as without privileges.",
        "One rule for all calls.",
        lambda answers: answers.arguments.get("max_parts") == 0 and answers.ours == {"success": []},
    ),
    Difference(
        "bucketing columns that no longer exist",
        "alter_table get_table",
        "Kept.",
        "Refused to callers of 3.1 and later, as in 4.",
        "One dialect serves 3.1 and 4.",
        lambda answers: answers.texts[1].startswith("Bucket columns - ") or _bucketed_before(answers),
    ),
    Difference(
        "exchanged partitions",
        "get_partition",
        "They have neither a creation time nor, in their new place, files that are counted.",
        "They keep the time; a directory is counted when it is asked for.",
        "The time is set once and stays.",
        only_at(_exchanged),
    ),
)

# What the other answer says alone: ours would hold something else afterwards, and is not asked.
UNASKED: tuple[Difference, ...] = (
    Difference(
        "names with hyphens",
        "create_database create_table alter_table",
        "Refused: not a valid name.",
        "Allowed to callers of /metastore, as in Hive 4.",
        "One dialect serves 3.1 and 4.",
        lambda answers: bool(_HYPHEN.search(answers.texts[0])),
        parts_catalogs=True,
    ),
    Difference(
        "methods of indexes",
        "add_index get_index_by_name get_indexes get_index_names alter_index drop_index_by_name",
        "UNKNOWN_METHOD: 3.1 knows no indexes.",
        "Answered as in 2.3.",
        "One service serves all versions.",
        lambda answers: answers.texts[0].startswith("Invalid method name"),
        parts_catalogs=True,
    ),
    Difference(
        "partition specs without a catalog",
        "add_partitions_pspec",
        "INTERNAL_ERROR (6) where the spec names no catalog and its partitions none either.",
        "They are added to the only catalog.",
        "Clients of 2.3 name none.",
        lambda answers: internal_error(answers.theirs),
        parts_catalogs=True,
    ),
    Difference(
        "expressions without a compiler",
        "get_partitions_by_expr drop_partitions_req",
        "Hive's compiler evaluates expressions; the recorded metastore lacks its jars and refuses all of them.",
        "As above, `Expressions over partitions`.",
        "There is nothing to compare.",
        lambda answers: (
            answers.texts[0] == "java.lang.UnsupportedOperationException"
            or (answers.method == "drop_partitions_req" and internal_error(answers.theirs))
        ),
        parts_catalogs=True,
    ),
)


def unasked(step: Step, theirs: Reply) -> Difference | None:
    """The entry that explains why ours is not asked."""
    answers = Answers(step.method, step.arguments, theirs, {})
    return next((entry for entry in UNASKED if entry.explains(answers)), None)
