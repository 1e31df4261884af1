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
        "tests/wire/test_tjson_codec.py::test_base64_with_and_without_padding",
    ),
    Uncompared(
        "content type of answers",
        "*",
        "application/x-thrift, whatever the encoding.",
        "application/vnd.apache.thrift.json for TJSON; application/x-thrift for binary and compact.",
        "It is the name of what is sent, and Thrift clients do not look at it.",
        "tests/wire/test_codecs.py::test_names_and_media_types",
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
        "tests/metastore/tables/test_alter.py::test_a_rename_on_an_ignored_file_system_leaves_location_and_statistics",
    ),
    Uncompared(
        "mark DO_NOT_UPDATE_STATS of partitions",
        "add_partition add_partitions add_partitions_req",
        "4 takes the parameter away and counts no files; 2.3 keeps it and counts them.",
        "As 2.3, for every caller. In an environment context it has its effect.",
        "A parameter that was sent must not be lost.",
        "tests/metastore/partitions/test_additions.py::test_the_mark_of_tables_means_nothing_in_a_partition",
    ),
    Uncompared(
        "environment of added partitions",
        "add_partition_with_environment_context append_partition_with_environment_context "
        "append_partition_by_name_with_environment_context",
        "2.3 looks at no property when a partition is added, and only at STATS_GENERATED when one is appended.",
        "DO_NOT_UPDATE_STATS = true counts no files of a directory that was there, and STATS_GENERATED = TASK says "
        "that what was counted is accurate.",
        "As with alter_table: a caller that asks for no counting is spared the listing of its files.",
        "tests/metastore/partitions/test_additions.py::test_the_environment_of_an_added_partition_counts",
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
        "end_utc is rounded down: the lease is held until its exact end, which may be up to 0.99 s later.",
        "Its holder must not believe that it lasts longer than it does, nor lose a part of what was granted.",
        "tests/txn/services/test_leases.py::test_an_end_is_shown_rounded_down_and_held_to_the_millisecond",
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
        "tests/metastore/directories/test_placement.py::test_what_is_owned_is_refused_outside_and_what_is_not_is_recorded",
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
)
