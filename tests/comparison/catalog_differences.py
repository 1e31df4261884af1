"""Where we answer otherwise about databases, tables and partitions."""

from collections.abc import Callable
from typing import Any

from tests.comparison.answers import (
    Answers,
    Difference,
    internal_error,
    only_at,
    other_text,
    succeeds_here,
    with_sorted_lists,
)

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def _reordered(answers: Answers) -> bool:
    """The same values in another order."""
    return "success" in answers.theirs and with_sorted_lists(answers.theirs) == with_sorted_lists(answers.ours)


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
    wanted = answers.arguments.get("tableType") or answers.arguments.get("tbl_types") or ()
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


def _left_directory(place: str, theirs: Any, ours: Any) -> bool:
    return place.endswith((".parameters.numFiles", ".parameters.totalSize")) and (theirs, ours) == ("0", None)


def _shared_elsewhere(answers: Answers) -> bool:
    """Refused with another text or only here, or read back from where the text that is appended does not lead."""
    if answers.method == "add_partitions_pspec":
        ours = answers.texts[1]
        return answers.exceptions[1] == "MetaException" and ("location" in ours or "Relative path" in ours)
    return only_at(_place_appended)(answers)


def _place_appended(place: str, theirs: Any, ours: Any) -> bool:
    if not place.endswith(".sd.location"):
        return _creation_forgotten(place, theirs, ours)
    return str(theirs).endswith("null") or theirs == "".join(ours.rsplit("/", 1))


def _asked_spelling(place: str, theirs: Any, ours: Any) -> bool:
    return ".values[" in place and {theirs, ours} == {"", DEFAULT_PARTITION}


def _name_as_sent(place: str, theirs: Any, ours: Any) -> bool:
    is_name = place.removeprefix("reply.success").removeprefix("[0]") in (".dbName", ".tableName")
    return is_name and str(theirs).strip().lower() == ours


def _text_behind_filter(answers: Answers) -> bool:
    return "success" in answers.theirs and "expected AND, OR or the end" in answers.texts[1]


def _more_by_prefix(answers: Answers) -> bool:
    """All we find is among what Hive finds; with a limit, it may have taken others."""
    theirs, ours = answers.theirs.get("success"), answers.ours.get("success")
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return False
    if answers.arguments["max_parts"] == 0:
        return not ours
    if answers.arguments["max_parts"] > 0 and any(answers.arguments["part_vals"]):
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


def _stays_where_it_is(answers: Answers) -> bool:
    texts = ("java.lang.NullPointerException", "Unable to change partition or table. Database", "new table ")
    names = (answers.arguments.get("dbname"), answers.arguments.get("new_tbl", {}).get("dbName"))
    asked, said = ((name or "").strip().lower() for name in names)
    return answers.texts[0].startswith(texts) and answers.ours == {} and said in ("", asked)


def _location_is_none(answers: Answers) -> bool:
    prefix = "java.lang.IllegalArgumentException: java.net.URISyntaxException"
    is_refused = answers.exceptions[1] == "MetaException" and answers.texts[1].startswith(prefix)
    return is_refused and (answers.theirs == {} or answers.texts[0].startswith(prefix))


def _all_values_empty(answers: Answers) -> bool:
    is_count = answers.texts[1].startswith("Incorrect number of partition values.")
    return "success" in answers.theirs and is_count and not any(answers.arguments.get("part_vals", ["?"]))


def _part_is_missing(answers: Answers) -> bool:
    parts = ("column name must not be null", "column type must not be null", "Invalid SerDeInfo object")
    return answers.exceptions == ("MetaException", "MetaException") and answers.texts[1] in parts


def _more_alternatives(answers: Answers) -> bool:
    theirs, ours = answers.theirs.get("success"), answers.ours.get("success")
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return False
    return " or " in answers.arguments["filter"].lower() and {*theirs} <= {*ours}


def _owner_type_beside(place: str, theirs: Any, ours: Any) -> bool:
    return place.endswith(".ownerType") and theirs is None


def _leftover_counted(place: str, theirs: Any, ours: Any) -> bool:
    return place.endswith((".parameters.numFiles", ".parameters.totalSize")) and theirs is None and ours is not None


def _legacy(answers: Answers) -> bool:
    """Made there, so that there is nothing to drop here."""
    if answers.method == "drop_table":
        return answers.exceptions == (None, "NoSuchObjectException") and answers.arguments["name"] == "legacy"
    return answers.exceptions[0] is None and "unknown value legacy for transactional_properties" in answers.texts[1]


def _default_properties(place: str, theirs: Any, ours: Any) -> bool:
    return place.endswith(".parameters.transactional_properties") and (theirs, ours) == (None, "default")


CATALOG: tuple[Difference, ...] = (
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
        " get_all_functions get_role_names list_roles get_privilege_set list_privileges get_partitions_statistics_req"
        " get_table_statistics_req",
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
        other_text("Error parsing partition filter"),
    ),
    Difference(
        "texts made of sets",
        "get_table_names_by_filter",
        "Lists the operators in the order of a Java hash set.",
        "Lists them in one order.",
        "The order means nothing.",
        other_text("Only ["),
    ),
    Difference(
        "alternatives in filters for tables",
        "get_table_names_by_filter",
        "A condition on a parameter leaves out every table without that parameter, also where it is one of several "
        "alternatives.",
        "A table is found when one of the alternatives is true.",
        "It is what OR means.",
        _more_alternatives,
    ),
    Difference(
        "types of the owners of tables",
        "get_table get_table_req get_table_objects_by_name get_table_objects_by_name_req",
        "Hive 2.3 knows no ownerType of a table.",
        "ownerType is kept and returned where a client sent it.",
        "Newer clients need it; older clients skip the field.",
        only_at(_owner_type_beside),
    ),
    Difference(
        "directories of external tables in a database",
        "get_table",
        "drop_database with deleteData and cascade deletes the whole directory of the database, with the files of "
        "external tables in it.",
        "The directory of an external table stays, and so do those around it. A table that is made there later finds "
        "what is in it: numFiles and totalSize count it.",
        "The catalog does not own external data, wherever it lies.",
        only_at(_leftover_counted),
    ),
    Difference(
        "null filter for tables",
        "get_table_names_by_filter",
        "InvalidOperationException 'null cannot apply null filter': meant was the database's name.",
        "InvalidOperationException with the database's name.",
        "A slip.",
        other_text("null cannot apply null filter"),
    ),
    Difference(
        "names that come twice in one list",
        "create_table create_table_with_environment_context create_table_with_constraints alter_table"
        " alter_table_with_environment_context alter_table_with_cascade add_partition",
        "MetaException with the SQL statement that failed.",
        "MetaException that names the column.",
        "The statement is that of another schema.",
        other_text("Add request failed : INSERT INTO"),
    ),
    Difference(
        "columns without a type",
        "create_table alter_table",
        "MetaException with the text of Java's StringIndexOutOfBoundsException.",
        "MetaException that says it.",
        "The text helps; no client can rely on Java's.",
        other_text("java.lang.StringIndexOutOfBoundsException"),
    ),
    Difference(
        "tables altered without a location",
        "alter_table alter_table_with_environment_context alter_table_with_cascade",
        "A null or empty location is an error for unpartitioned tables, whose files are counted. For others "
        "it is stored as it is, and the table's database can no longer be dropped.",
        "The table keeps its location.",
        "A missing location does not mean that the old one should be lost.",
        _succeeds_without_location,
    ),
    Difference(
        "tables with keys altered",
        "alter_table alter_table_with_environment_context alter_table_with_cascade",
        "Columns of a primary key, or to which a foreign key refers, cannot be replaced, renamed or dropped, and no "
        "column added beside them: MetaException with the SQL statement that the database refused.",
        "The key stays with its columns. It goes when one of them is renamed or dropped.",
        "The statement is that of another schema, and a table must stay changeable: keys are not enforced.",
        lambda answers: answers.texts[0].startswith("Clear request failed : ") and not internal_error(answers.ours),
        parts_catalogs=True,
    ),
    Difference(
        "partitions by name in views without keys",
        "append_partition_by_name append_partition_by_name_with_environment_context",
        "Reports that the name does not fit the keys.",
        "Reports that it is a view.",
        "Both are wrong, and the call has no effect.",
        lambda answers: (
            answers.exceptions == ("MetaException", "MetaException")
            and answers.texts[1] == "Cannot append a partition to a view"
        ),
    ),
    Difference(
        "rename into a database that is missing",
        "alter_table alter_table_with_environment_context alter_table_with_cascade",
        "InvalidOperationException 'Unable to change partition or table. …'; the end depends on the database.",
        "The text that Hive has over PostgreSQL.",
        "The exception and its beginning are the same.",
        other_text("Unable to change partition or table."),
    ),
    Difference(
        "partitions in texts",
        "append_partition append_partition_by_name append_partition_with_environment_context"
        " append_partition_by_name_with_environment_context add_partitions add_partitions_req",
        "AlreadyExistsException and MetaException quote the partition with the location it was to get.",
        "They quote it as it was sent.",
        "The exception and the text's beginning are the same.",
        other_text("Partition already exists:", "java.io.IOException: Duplicate partitions in the list"),
    ),
    Difference(
        "creation times of partitions",
        "get_partition get_partition_by_name get_partitions get_partitions_by_names get_partitions_ps"
        " get_partitions_by_filter get_partitions_pspec get_part_specs_by_filter get_partition_with_auth"
        " get_partitions_ps_with_auth get_partitions_with_auth",
        "add_partitions_pspec stores no times, and alter_partition resets createTime to 0 for clients that send none.",
        "The creation time is set once and stays.",
        "Clients that do not know a field must not erase it.",
        only_at(_creation_forgotten),
    ),
    Difference(
        "places of partitions that share a storage descriptor",
        "add_partitions_pspec get_partitions",
        "Appends the text of relativePath to that of the descriptor's location: 'y' after '/w/t' is '/w/ty', null is "
        "'null', and a path after an empty location begins at the root of the disk.",
        "The path lies below the location; a partition without one goes where partitions of the table go; a path "
        "without a location is a MetaException that says so.",
        "A relative path must not lead out of the directory that it is relative to.",
        _shared_elsewhere,
        parts_catalogs=True,
    ),
    Difference(
        "spelling of the default partition",
        "get_partition get_partition_with_auth get_partition_by_name",
        "'' and __HIVE_DEFAULT_PARTITION__ are the same partition; the answer has the spelling that was asked for.",
        "The answer has the spelling that is stored.",
        "Every caller reads the same partition.",
        only_at(_asked_spelling),
    ),
    Difference(
        "names in what is returned",
        "get_partitions_pspec get_part_specs_by_filter append_partition append_partition_by_name"
        " append_partition_with_environment_context append_partition_by_name_with_environment_context",
        "The names of database and table as the request spells them.",
        "The names as they are stored.",
        "The next read says so too.",
        only_at(_name_as_sent),
    ),
    Difference(
        "partial partition values",
        "get_partitions_ps get_partitions_ps_with_auth get_partition_names_ps",
        "Matches the last value that is given by its beginning (ds=p finds ds=p2), a dot in a value as any character; "
        "in no defined order, so a limit takes any; there is none for values all empty, and over Derby a limit "
        "of 0 is none.",
        "Compares value by value; ordered by name; a limit of 0 takes none, as Hive over PostgreSQL.",
        "A caller that asks for ds=p does not mean ds=p2.",
        _more_by_prefix,
    ),
    Difference(
        "empty partition values, and more of them than keys",
        "get_partitions_ps get_partitions_ps_with_auth",
        "Any number of values that are all empty finds all partitions.",
        "MetaException 'Incorrect number of partition values. …', as for the names of partitions.",
        "The number is wrong.",
        _all_values_empty,
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
        "descriptors of partitions that lack a part",
        "add_partition add_partition_with_environment_context add_partitions add_partitions_req add_partitions_pspec"
        " alter_partition alter_partition_with_environment_context alter_partitions"
        " alter_partitions_with_environment_context rename_partition",
        "MetaException 'The transaction for alter partition did not commit successfully.', or with the SQL statement "
        "that failed.",
        "MetaException that names the part: the name or the type of a column, or the serde.",
        "The text helps; nothing is stored either way.",
        _part_is_missing,
    ),
    Difference(
        "partitions altered without names",
        "alter_partition alter_partition_with_environment_context alter_partitions"
        " alter_partitions_with_environment_context rename_partition",
        "MetaException when the partition does not name its database and table as the request does.",
        "The request names them already.",
        "There is nothing to doubt.",
        succeeds_here("java.lang.NullPointerException", "The transaction for alter partition did not commit"),
        parts_catalogs=True,
    ),
    Difference(
        "partitions renamed into other tables",
        "rename_partition",
        "A new partition that names another table fails at its directory.",
        "It fails at once; the exception is the same.",
        "No directory is looked for.",
        other_text("java.lang.IllegalArgumentException: Can not create a Path from a null string"),
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
        "directories that cannot be made",
        "add_partitions add_partitions_req",
        "The text begins with the name of Java's exception.",
        "It begins with the directory.",
        "As for one partition.",
        other_text("java.io.IOException: "),
    ),
    Difference(
        "values that partitions cannot have",
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
        other_text("Index "),
    ),
    Difference(
        "exchange over a partition that exists",
        "exchange_partition exchange_partitions",
        "MetaException with the SQL statement that failed.",
        "MetaException 'Partition already exists:…'.",
        "The statement is that of another schema.",
        other_text("Insert of object"),
    ),
    Difference(
        "texts about transactional tables",
        "create_table alter_table",
        "The table must have buckets, and texts name no table.",
        "No buckets are needed, and texts end with the table's name, as in Hive 3 and later.",
        "Tables of Hive 3 and 4 have no buckets.",
        other_text(
            "The table must be bucketed and stored using an ACID compliant format (such as ORC)",
            "'transactional' property of TBLPROPERTIES may only have value 'true'",
            "TBLPROPERTIES with 'transactional'='true' cannot be unset",
            "Invalid transactional properties specified for the table",
        ),
    ),
    Difference(
        "kind of a transactional table",
        "get_table",
        "Without transactional_properties in create_table there are none.",
        "The parameter is stored as 'default', as in Hive 3 and later.",
        "Hive 3 and 4 read from it which kind of table it is.",
        only_at(_default_properties),
    ),
    Difference(
        "kind that is said again",
        "alter_table",
        "MetaException where an alter sets transactional_properties that the table was made without.",
        "Nothing changes where they are 'default': the table was made with them.",
        "They are stored from the beginning.",
        succeeds_here("TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"),
    ),
    Difference(
        "transactional=false for tables that are not transactional",
        "alter_table",
        "MetaException that it cannot be unset.",
        "The parameter is left out, as in create_table and in Hive 3 and later.",
        "There is nothing to unset.",
        succeeds_here("TBLPROPERTIES with 'transactional'='true' cannot be unset"),
    ),
    Difference(
        "transactional_properties of Hive 2",
        "create_table drop_table",
        "'legacy' is a kind of transactional table.",
        "MetaException, as in Hive 3 and later, whose kinds are 'default' and 'insert_only'.",
        "Hive 3 and 4 cannot read such a table.",
        _legacy,
    ),
    Difference(
        "filters on keys of every type",
        "get_partitions_by_filter get_num_partitions_by_filter get_part_specs_by_filter",
        "MetaException 'Filtering is supported only on partition keys of type string' unless key and literal are both "
        "strings, integers or dates, and for LIKE beside any other condition.",
        "Every comparison of the grammar works on every type of key, converting literals.",
        "Spark reads the whole table where a filter is refused.",
        succeeds_here("Filtering is supported only"),
    ),
    Difference(
        "two mistakes in a filter",
        "get_partitions_by_filter get_num_partitions_by_filter get_part_specs_by_filter",
        "Beside an unknown key, a key that is no string is refused although it is fine without: MetaException "
        "'Filtering is supported only on partition keys of type string'.",
        "MetaException for the unknown key.",
        "It is the mistake.",
        lambda answers: (
            answers.texts[0].startswith("Filtering is supported only on partition keys of type string")
            and answers.texts[1].endswith("is not a partitioning key for the table")
        ),
    ),
    Difference(
        "newer filter grammar",
        "get_partitions_by_filter get_num_partitions_by_filter get_part_specs_by_filter",
        "Decimals, DATE '…' and names in backquotes are parse errors.",
        "They work as in Hive 4.",
        "Newer clients send them.",
        succeeds_here("Error parsing partition filter"),
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
        other_text("java.lang.NumberFormatException"),
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
        only_at(_left_directory),
    ),
    Difference(
        "several mistakes in one list",
        "alter_partitions",
        "Reports the first partition with a mistake.",
        "Reports a wrong number of values before a partition that is missing.",
        "All names are looked up at once; the call has no effect either way.",
        _another_of_several,
    ),
)
