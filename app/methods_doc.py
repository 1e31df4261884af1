"""Writes docs/methods.md: every method of the IDL, who knows and calls it, how it is answered, what proves it."""

import importlib
import inspect
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import app.handlers
from app.idl import EnumType, Field, ListType, MapType, MethodDef, SetType, StructType, Type
from app.structs import IDL, METHODS, Method

# The IDL is the union of the dialects and does not say who came when; these lists do (semantics, appendix B).
_ONLY_2_3 = "add_index alter_index drop_index_by_name get_index_by_name get_indexes get_index_names"
_SINCE_3_1 = """
    get_metastore_db_uuid create_catalog alter_catalog get_catalog get_catalogs drop_catalog truncate_table
    get_materialized_views_for_rewriting get_materialization_invalidation_info update_creation_metadata
    get_lock_materialization_rebuild heartbeat_lock_materialization_rebuild get_partition_values
    get_unique_constraints get_not_null_constraints get_default_constraints get_check_constraints
    add_unique_constraint add_not_null_constraint add_default_constraint add_check_constraint refresh_privileges
    repl_tbl_writeid_state get_valid_write_ids allocate_table_write_ids get_notification_events_count cm_recycle
    add_serde get_serde get_triggers_for_resourceplan get_schema_latest_version get_schema_all_versions
    get_schemas_by_cols create_ischema alter_ischema get_ischema drop_ischema add_schema_version get_schema_version
    drop_schema_version map_schema_version_to_serde set_schema_version_state create_resource_plan get_resource_plan
    get_active_resource_plan get_all_resource_plans alter_resource_plan validate_resource_plan drop_resource_plan
    create_wm_trigger alter_wm_trigger drop_wm_trigger create_wm_pool alter_wm_pool drop_wm_pool
    create_or_update_wm_mapping drop_wm_mapping create_or_drop_wm_trigger_to_pool_mapping add_runtime_stats
    get_runtime_stats
"""
_SINCE_4 = """
    get_properties set_properties create_database_req get_database_req get_databases_req alter_database_req
    drop_database_req get_fields_req get_schema_req create_table_req translate_table_dryrun drop_table_req
    truncate_table_req get_tables_ext alter_table_req get_all_materialized_view_objects_for_rewriting
    append_partition_req get_partition_req get_partitions_req get_partitions_ps_with_auth_req
    get_partition_names_ps_req get_partitions_by_filter_req get_partitions_spec_by_expr get_partition_names_req
    fetch_partition_names_req get_partitions_by_names_req get_partitions_with_specs drop_partition_req
    alter_partitions_req rename_partition_req get_all_table_constraints update_table_column_statistics_req
    update_partition_column_statistics_req delete_column_statistics_req update_transaction_statistics
    get_functions_req get_open_txns_req get_latest_txnid_in_conflict seed_txn_id get_all_write_event_info
    get_max_allocated_table_write_id add_write_ids_to_min_history seed_write_id submit_for_cleanup abort_Compactions
    get_latest_committed_compaction_info find_next_compact find_next_compact2 update_compactor_state
    find_columns_with_stats mark_cleaned mark_compacted mark_failed mark_refused set_hadoop_jobid
    add_write_notification_log add_write_notification_log_in_batch scheduled_query_poll scheduled_query_maintenance
    scheduled_query_progress get_scheduled_query add_replication_metrics get_replication_metrics
"""
ONLY_2_3, SINCE_3_1, SINCE_4 = (frozenset(names.split()) for names in (_ONLY_2_3, _SINCE_3_1, _SINCE_4))

# Methods of ours, which Hive does not have: by service, who knows them and the title of their section.
_OWN_SERVICES = {"HiveLease": ("lease", "Leases"), "HiveLock": ("lock", "Locks, for operators")}

_OPENING = """\
# Methods

Written by `python -m app methods` from `schema/hive_metastore.thrift`, the handlers, `docs/method_clients.toml` and
the tests; do not edit.

A method that is not here answers as Hive does for a method it does not know: the application exception
`Invalid method name`, which clients take as the sign to try an older call.

* **Dialects**: which generations of clients know the method; all of them may be called on every path.
* **Status**: "answered", or what is special. `docs/differences.md` tells where an answer is not the one of Hive 2.3.
* **Exceptions**: the declared ones. Where there are none, or MetaException is not among them, a senseless call is
  answered with an application exception, as in Hive.
* **Called by**: the known clients that call it. Hive 2.3, 3.1 and 4 are the Java libraries of these generations, which
  Hive itself, Spark, Flink, Hudi and Impala are built on.
* **Proof**: a test that calls it. The tests of `test_corpus.py` compare with recorded answers of the real metastore.
* **Signature**: in its longest form; callers that know fewer arguments leave the rest out.
"""

# What is to be said of a method besides that it is answered.
_STATUS: Mapping[str, str] = {
    **dict.fromkeys(("create_catalog", "alter_catalog", "drop_catalog"), "refused: there is one catalog"),
    **dict.fromkeys(
        ("get_file_metadata_by_expr", "get_file_metadata", "put_file_metadata", "cache_file_metadata"),
        "not supported, and says so as Hive does",
    ),
    "clear_file_metadata": "nothing to clear",
    **dict.fromkeys(("flushCache", "reinitialize", "shutdown", "cm_recycle"), "nothing to do"),
    "setMetaConf": "checked, not kept",
    "get_materialization_invalidation_info": "answered; where Hive cannot tell and so has no result, all has changed",
    "set_ugi": "answered; the caller is whom the transport knows",
    "setOption": "kept until the process ends, without effect",
    "getCpuProfile": "always empty",
}


def methods_path() -> Path:
    """Where the document lies in the source tree."""
    return source_root() / "docs" / "methods.md"


def source_root() -> Path:
    """The source tree; an installed package has no documents."""
    return Path(__file__).resolve().parent.parent


def clients_of_methods() -> dict[str, list[str]]:
    """The known clients that call a method, by method."""
    text = (source_root() / "docs" / "method_clients.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text))


def methods_text(handlers: Mapping[str, type], proofs: Mapping[str, str]) -> str:
    """The whole document. `handlers` has the handler class of each method, `proofs` the test that proves it."""
    return "\n".join(_lines(handlers, proofs)) + "\n"


def named_proofs(text: str) -> dict[str, str]:
    """Method and test out of the rows of the document."""
    rows = (line.split(" | ") for line in text.splitlines() if line.startswith("| `"))
    return {row[0].strip("| `"): row[5].strip("`") for row in rows}


def answering_classes() -> dict[str, type]:
    """The handler class that answers each method, by method name: the classes of `app.handlers`, as they stand."""
    modules = (
        importlib.import_module(f"{app.handlers.__name__}.{module.name}")
        for module in pkgutil.iter_modules(app.handlers.__path__)
    )
    return {
        name: handler
        for module in modules
        for _, handler in inspect.getmembers(module, inspect.isclass)
        if handler.__module__ == module.__name__
        for name, _ in inspect.getmembers(handler, inspect.isfunction)
        if name in METHODS
    }


def dialects_of(method: Method) -> str:
    """Which generations of clients know `method`."""
    name = method.name
    if method.service in _OWN_SERVICES:
        return _OWN_SERVICES[method.service][0]
    if name in ONLY_2_3:
        return "2.3"
    if name in SINCE_4:
        return "4"
    return "3.1, 4" if name in SINCE_3_1 else "2.3, 3.1, 4"


def signature(definition: MethodDef) -> str:
    """`list<string> get_partition_names(string db_name, string tbl_name, i16 max_parts = -1)`"""
    arguments = ", ".join(_argument(field) for field in definition.arguments)
    returns = "void" if definition.returns is None else type_text(definition.returns)
    return f"{'oneway ' if definition.oneway else ''}{returns} {definition.name}({arguments})"


def exception_names(definition: MethodDef) -> list[str]:
    """The declared exceptions by class name, in the order of their ids."""
    return [type_text(field.type) for field in definition.throws]


def type_text(kind: Type) -> str:
    """A type as the IDL writes it."""
    match kind:
        case ListType(element):
            return f"list<{type_text(element)}>"
        case SetType(element):
            return f"set<{type_text(element)}>"
        case MapType(key, value):
            return f"map<{type_text(key)}, {type_text(value)}>"
        case EnumType(name) | StructType(name):
            return name
        case _:
            return str(kind.value)


def _argument(field: Field) -> str:
    default = "" if field.default is None else f" = {field.default}"
    return f"{type_text(field.type)} {field.name}{default}"


def _lines(handlers: Mapping[str, type], proofs: Mapping[str, str]) -> Iterator[str]:
    clients = clients_of_methods()
    yield _OPENING
    yield f"All {len(METHODS)} methods are answered."
    for title, methods in _sections().items():
        yield f"\n## {title}\n"
        yield "| method | dialects | status | exceptions | called by | proof | signature |"
        yield "|---|---|---|---|---|---|---|"
        for method in methods:
            cells = _cells(method, handlers[method.name], clients.get(method.name, ()), proofs[method.name])
            yield f"| {' | '.join(cells)} |"


def _cells(method: Method, handler: type, clients: Sequence[str], proof: str) -> list[str]:
    return [
        f"`{method.name}`",
        dialects_of(method),
        f"{_STATUS.get(method.name, 'answered')} (`{handler.__name__}`)",
        ", ".join(exception_names(method.definition)) or "–",
        ", ".join(clients) or "–",
        f"`{proof}`",
        f"`{signature(method.definition)}`",
    ]


def _sections() -> dict[str, list[Method]]:
    """The methods by service, in order of their declaration; what the metastore inherits stands apart."""
    inherited = {method.name for method in IDL.services["FacebookService"].methods}
    sections: dict[str, list[Method]] = {"Metastore": [], "Service (fb303)": []}
    sections |= {title: [] for _, title in _OWN_SERVICES.values()}
    for method in METHODS.values():
        if method.service in _OWN_SERVICES:
            sections[_OWN_SERVICES[method.service][1]].append(method)
        else:
            sections["Service (fb303)" if method.name in inherited else "Metastore"].append(method)
    return sections
