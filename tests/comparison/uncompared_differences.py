"""Where we answer otherwise than the comparison can show: what came after 2.3, the wire, files and time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Uncompared:
    """One line of the second table. `test` shows what we do: a file and a test in it."""

    name: str
    methods: str
    hive: str
    ours: str
    why: str
    test: str


UNCOMPARED: tuple[Uncompared, ...] = (
    Uncompared(
        "texts of binary fields",
        "*",
        "Writes base64 without padding in TJSON.",
        "Writes it padded, and reads both.",
        "Every Apache library reads padded base64, and other JSON clients expect it.",
        "tests/rpc/wire/test_tjson_codec.py::test_base64_with_and_without_padding",
    ),
    Uncompared(
        "content type of answers",
        "*",
        "application/x-thrift, whatever the encoding.",
        "application/vnd.apache.thrift.json for TJSON; application/x-thrift for binary and compact.",
        "It is the name of what is sent, and Thrift clients do not look at it.",
        "tests/rpc/wire/test_codecs.py::test_names_and_media_types",
    ),
    Uncompared(
        "locations of skewed values in TJSON",
        "get_table get_partition get_partitions",
        "Writes skewedColValueLocationMaps as a map whose keys are lists, which is not JSON when there are any.",
        "Leaves the entries out of TJSON; binary and compact have them. A client that sends none back keeps them.",
        "No JSON parser could read the rest of the answer.",
        "tests/contract/test_partitions.py::test_list_keyed_skew_locations_are_kept_but_not_written_as_tjson",
    ),
    Uncompared(
        "file systems that are not managed",
        "alter_table alter_partition rename_partition",
        "Moves the directory of a table or partition that is renamed, and counts the files of what is altered.",
        "With `file_systems` = `ignore` for its scheme neither is done: the location stays as it is, and numFiles, "
        "totalSize and COLUMN_STATS_ACCURATE are as they were sent.",
        "A location must not name a directory to which nothing was moved, and nothing was counted that could make "
        "statistics wrong. `manage` does as Hive.",
        "tests/catalog/tables/test_alter.py::test_a_rename_on_an_ignored_file_system_leaves_location_and_statistics",
    ),
    Uncompared(
        "mark DO_NOT_UPDATE_STATS of partitions",
        "add_partition add_partitions add_partitions_req",
        "4 takes the parameter away and counts no files; 2.3 keeps it and counts them.",
        "As 2.3, for every caller. In an environment context it has its effect.",
        "A parameter that was sent must not be lost.",
        "tests/catalog/partitions/test_additions.py::test_the_mark_of_tables_means_nothing_in_a_partition",
    ),
    Uncompared(
        "environment of added partitions",
        "add_partition_with_environment_context append_partition_with_environment_context "
        "append_partition_by_name_with_environment_context",
        "2.3 looks at no property when a partition is added, and only at STATS_GENERATED when one is appended.",
        "DO_NOT_UPDATE_STATS = true counts no files of a directory that was there, and STATS_GENERATED = TASK says "
        "that what was counted is accurate.",
        "As with alter_table: a caller that asks for no counting is spared the listing of its files.",
        "tests/catalog/partitions/test_additions.py::test_the_environment_of_an_added_partition_counts",
    ),
    Uncompared(
        "ids sent with new tables",
        "create_table create_table_req create_table_with_environment_context create_table_with_constraints",
        "Some versions of 3.1 and 4 refuse a table with an id with MetaException, others ignore the id.",
        "Ignores it.",
        "A table that was read, and has an id, can be created under another name.",
        "tests/handlers/test_tables.py::test_an_id_that_is_sent_is_not_the_table_s",
    ),
    Uncompared(
        "bucketing columns that are gone",
        "alter_table alter_table_with_environment_context alter_table_with_cascade alter_table_req",
        "4 refuses a table whose bucketing columns are not among its columns; 2.3 keeps it.",
        "As 4 for callers of 3.1 and later, as 2.3 for others.",
        "Each generation of clients finds what it knows.",
        "tests/handlers/test_tables.py::test_a_bucketing_column_must_be_a_column_for_newer_callers_only",
    ),
    Uncompared(
        "ends of leases",
        "list_lease extend_lease",
        "Not known; the protocol has whole seconds.",
        "A lease ends with a whole second, up to 0.99 s after the time that was asked for.",
        "The end in an answer has to be the one that counts, and no part of what was granted is lost.",
        "tests/txn/services/test_leases.py::test_the_end_that_is_told_is_the_end_that_counts",
    ),
    Uncompared(
        "silent transactions and locks",
        "get_open_txns get_open_txns_info show_locks",
        "Looks for those past their time every three minutes.",
        "Every 30 seconds, or as often as `txn_timeout_seconds` when that is shorter; what a call has to wait for is "
        "looked at by the call itself.",
        "They are shown as open for a shorter time.",
        "tests/composition/test_main.py::test_transactions_are_looked_at_as_often_as_they_end",
    ),
    Uncompared(
        "locations outside the warehouse",
        "create_database alter_database create_table create_table_with_constraints create_table_req "
        "create_table_with_environment_context alter_table alter_table_with_environment_context "
        "alter_table_with_cascade alter_table_req add_partition add_partition_with_environment_context "
        "add_partitions add_partitions_pspec add_partitions_req alter_partition alter_partitions rename_partition "
        "exchange_partition exchange_partitions truncate_table",
        "Makes, moves, deletes and measures directories anywhere.",
        "Only below the warehouse and `file_roots`, where the comparison's second place is. Elsewhere databases, "
        "tables that are not external, and their partitions are refused: MetaException '... is outside the "
        "directories this server manages; ... file_roots ...'. External tables and their partitions may lie "
        "there; their directories are not made, moved, deleted or counted, so they have no `numFiles` and "
        "`totalSize`. Symbolic links below a root are not followed.",
        "Who may change the catalog may not change every file of the account that the gateway runs under.",
        "tests/catalog/directories/test_placement.py::test_what_is_owned_is_refused_outside_and_what_is_not_is_recorded",
    ),
    Uncompared(
        "special characters in names of databases and tables",
        "create_database create_database_req create_table create_table_with_environment_context "
        "create_table_with_constraints create_table_req alter_table alter_table_with_environment_context "
        "alter_table_with_cascade alter_table_req",
        "Hive 4 takes every special character of ASCII, Hive 2.3 a slash in names of tables.",
        "Callers of Hive 3.1 and later may use hyphens too, others as Hive 2.3.",
        "Hyphens are what clients use; other characters mean something in patterns, in directories and in texts such "
        "as `db.table`.",
        "tests/handlers/test_tables.py::test_newer_callers_may_have_hyphens_in_names",
    ),
    Uncompared(
        "events of transactions",
        "get_next_notification",
        "2.3 knows no write ids, and has no events of transactions. Hive 3 and 4 log every transaction.",
        "A transaction that was given write ids has OPEN_TXN and ALLOC_WRITE_ID when it gets the first, and COMMIT_TXN "
        "or ABORT_TXN at its end. Callers of every version read them; Hive 2.3 passes over types that it does not know "
        "when it dumps the log. COMMIT_TXN has one more key, `tableWriteIds`.",
        "Caches learn from them what is committed. All other transactions change nothing that a cache could hold, and "
        "would only make the log longer. Ids stay dense for every caller.",
        "tests/contract/test_txn_events.py::test_a_commit_names_the_write_ids_of_all_tables",
    ),
    Uncompared(
        "events without their messages",
        "get_next_notification",
        "Events come with their messages.",
        "`withoutMessages=true`, a field of the request that Hive does not have, leaves them empty.",
        "A message may have thousands of partitions; a list of changes, as the console shows it, opens few of them.",
        "tests/handlers/test_notifications.py::test_events_come_without_messages_when_asked",
    ),
    Uncompared(
        "colons in names of partitions",
        "get_partition_by_name",
        "`k=a:b` gives a text of Java's URISyntaxException.",
        "The partition `k=a%3Ab`.",
        "The name says which one is meant.",
        "tests/handlers/test_kinder.py::test_a_name_with_a_colon_is_read",
    ),
    Uncompared(
        "spelling of escapes",
        "get_partition_column_statistics",
        "`k=a%3ab` finds no statistics of `k=a%3Ab`.",
        "They are found.",
        "One partition, one name.",
        "tests/handlers/test_kinder.py::test_statistics_are_found_however_the_name_is_escaped",
    ),
    Uncompared(
        "keys in capitals",
        "exchange_partition exchange_partitions",
        "A key in capitals is unknown.",
        "Keys are found in any case.",
        "Everywhere else they are.",
        "tests/handlers/test_kinder.py::test_keys_of_an_exchange_in_capitals",
    ),
    Uncompared(
        "filters of lists in capitals",
        "show_locks get_primary_keys",
        "Names in capitals find nothing.",
        "Names are found in any case.",
        "Everywhere else they are.",
        "tests/handlers/test_kinder.py::test_locks_and_keys_of_names_in_capitals",
    ),
    Uncompared(
        "aggregated statistics with a mistake",
        "set_aggr_stats_for",
        "2.3 stores those before the mistake.",
        "All are stored, or none.",
        "A call that failed changes nothing.",
        "tests/handlers/test_kinder.py::test_aggregated_statistics_are_stored_all_or_none",
    ),
    Uncompared(
        "events of partitions dropped together",
        "drop_partitions_req",
        "2.3 writes one event for each.",
        "One event lists all.",
        "That is how 3.1 and later read it.",
        "tests/handlers/test_kinder.py::test_one_event_for_all_that_a_call_drops",
    ),
    Uncompared(
        "truncating",
        "truncate_table",
        "3.1.3 passes over unknown names of partitions, and empties external tables.",
        "Both are refused.",
        "Files of an external table belong to others.",
        "tests/handlers/test_kinder.py::test_truncating_what_is_not_there_or_not_owned",
    ),
    Uncompared(
        "rows of what was truncated",
        "truncate_table truncate_table_req",
        "3.1.3 leaves numRows and rawDataSize as they were.",
        "They are 0.",
        "What is empty has no rows.",
        "tests/catalog/tables/test_truncate.py::test_a_table_loses_its_files_and_says_so",
    ),
    Uncompared(
        "settings of a connection",
        "setMetaConf",
        "A setting lasts as long as the connection. hive-metastore-client drops columns in the middle after it has set "
        "hive.metastore.disallow.incompatible.col.type.changes to false so.",
        "Checked and forgotten, at the Thrift port and the bridge too: such a column cannot be dropped by that client "
        "while the columns behind it would change their types. The setting of the gateway counts.",
        "Any replica answers any request, and what one caller may do does not depend on what it said before.",
        "tests/interop/test_hive_metastore_client.py::test_databases_tables_columns_and_partitions",
    ),
    Uncompared(
        "files of renamed partitions",
        "rename_partition rename_partition_req",
        "The new place is counted before the files are there: numFiles is 0.",
        "The files are counted.",
        "They are there when the call returns.",
        "tests/catalog/partitions/test_changes.py::test_rename_moves_the_directory",
    ),
    Uncompared(
        "names of files of tables that become transactional",
        "alter_table alter_table_with_environment_context alter_table_req",
        "3.1 and later refuse a table with files whose names are not those of buckets, such as 000000_0.",
        "The names are not looked at.",
        "A gateway that manages no directories cannot list them, and the rule must not depend on that. Who converts a "
        "table sees to its files.",
        "tests/catalog/tables/test_alter.py::test_a_table_becomes_transactional_whatever_its_files_are_called",
    ),
    Uncompared(
        "write ids asked for again",
        "allocate_table_write_ids",
        "3.1.3 refuses a request of transactions of which some have a write id and some have none.",
        "Each has its own, given now or before.",
        "The call may be repeated.",
        "tests/handlers/test_txn_methods.py::test_transactions_with_and_without_a_write_id_may_ask_together",
    ),
    Uncompared(
        "open write ids in a replicated list",
        "repl_tbl_writeid_state",
        "3.1.3 makes only the aborted ids of the list invalid.",
        "The open ones stay invalid too.",
        "What was not committed at the source must not be read at the target.",
        "tests/handlers/test_txn_methods.py::test_replication",
    ),
    Uncompared(
        "What belongs to a catalog",
        "drop_catalog alter_catalog create_table lock get_next_notification list_privileges",
        "`drop_catalog` deletes the catalog's directory with all that is in it, and leaves functions of its database "
        "`default` behind. `hive` can be altered. A struct with `@spark#sales` as its database is refused. Locks of "
        "tables of one name in two catalogs exclude each other. Old clients hear of events and grants in all catalogs "
        "by plain names.",
        "Only an empty directory goes, and only a catalog without functions. `hive` stays as it is. Such a struct is "
        "in `spark`, as an argument would be. A lock is on the name that it says, `sales` or `@spark#sales`. Old "
        "clients hear of events in `@spark#sales`, whose messages say `sales`, and of the grants in `hive`.",
        "Data of others is not deleted, and no plain name means an object of another catalog.",
        "tests/handlers/test_catalogs.py::test_directories_of_a_catalog_come_and_go",
    ),
    Uncompared(
        "empty names of catalogs",
        "get_table_req",
        "3.1.3 finds no catalog of that name.",
        "It is the catalog `hive`.",
        "Some clients send an empty text for none.",
        "tests/handlers/test_kinder.py::test_an_empty_catalog_is_the_only_one",
    ),
)
