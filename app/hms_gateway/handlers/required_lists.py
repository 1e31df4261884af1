"""Reads of transactional tables without a list of write ids, where the operator wants them refused."""

from operator import attrgetter

from hms_gateway.handlers.table_names import table_named
from hms_gateway.idl.method_facts import method_facts
from hms_gateway.metastore.ports.store import Store
from hms_gateway.metastore.vocabulary.table_types import is_transactional
from hms_gateway.rpc.call import Call
from hms_gateway.structs import MetaException, Method, Struct


class RequiredLists:
    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, method: Method, call: Call, arguments: Struct) -> None:
        """Raises MetaException for a read of a transactional table that does not say which write ids it sees."""
        facts = method_facts()[method.name]
        if not facts.write_ids_in or call.valid_write_ids:
            return
        request = getattr(arguments, facts.write_ids_in, None)
        if getattr(request, "validWriteIdList", None):
            return
        db_name, tbl_name = _names(arguments, facts.cached_by)
        if db_name is None or tbl_name is None:
            return
        table = table_named(db_name, tbl_name.partition(".")[0])
        found = self._store.read(table.find)
        if found is not None and is_transactional(found.table.parameters or {}):
            raise MetaException(
                f"table {found.table.dbName}.{found.table.tableName} is transactional and read without a list of write"
                " ids; send validWriteIdList, or the header x-hms-valid-write-ids (setting require_write_id_lists)"
            )


def _names(arguments: Struct, cached_by: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Database and table; None where the handler will miss them."""
    _, *fields = cached_by
    if len(fields) == 1:
        # get_foreign_keys, of whose tables the one with the keys counts.
        fields = [f"{fields[0]}.foreign_db_name", f"{fields[0]}.foreign_tbl_name"]
    try:
        names: tuple[str | None, str | None] = (attrgetter(fields[0])(arguments), attrgetter(fields[1])(arguments))
    except AttributeError:
        return None, None
    return names
