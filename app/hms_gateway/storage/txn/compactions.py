"""The compaction queue and rebuilds of materialized views as rows."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, and_, bindparam, delete, false, insert, or_, select

from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.txn import COMPACTIONS, COMPLETED_COMPONENTS, REBUILDS, TXN_COMPONENTS, TXNS
from hms_gateway.storage.sql.filter_sql import has_id_among
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.storage.sql.texts import is_storable
from hms_gateway.storage.txn.state import TxnStateWrites, object_columns, target_of
from hms_gateway.structs import CompactionType
from hms_gateway.txn.ports.txn import Rebuild
from hms_gateway.txn.rules.compaction import Compaction, CompactionDetails, CompactionFilter, CompactionState
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.names import Target
from hms_gateway.txn.rules.transactions import TxnStatus

_TYPES: Final = {int(type): type for type in CompactionType}
_STATES: Final = {state.value: state for state in CompactionState}

_THIS_VIEW: Final = and_(REBUILDS.c.db_name == bindparam("the_db"), REBUILDS.c.table_name == bindparam("the_table"))


class CompactionReads(Repository):
    def compactions(self, filter: CompactionFilter) -> list[Compaction]:
        statement = select(COMPACTIONS).where(*_conditions(filter)).order_by(COMPACTIONS.c.compaction_id)
        return [_compaction(row) for row in self._connection.execute(statement).cursor.fetchall()]


class CompactionWrites(CompactionReads, TxnStateWrites):
    def next_compaction_id(self) -> int:
        return self._next_ids("compaction", 1)

    def save_compactions(self, compactions: Sequence[Compaction]) -> None:
        if not compactions:
            return
        rows = [_row(entry, self._dialect) for entry in compactions]
        self.delete_compactions([entry.compaction_id for entry in compactions])
        self._connection.execute(insert(COMPACTIONS), rows)

    def delete_compactions(self, compaction_ids: Sequence[int]) -> None:
        if compaction_ids:
            among = has_id_among(COMPACTIONS.c.compaction_id, compaction_ids, self._dialect)
            self._connection.execute(delete(COMPACTIONS).where(among))

    def forget_compacted(self, target: Target, highest_write_id: int | None) -> None:
        columns = object_columns(target, self._dialect)
        aborted = select(TXNS.c.txn_id).where(TXNS.c.state == TxnStatus.ABORTED.value)
        for components in (COMPLETED_COMPONENTS, TXN_COMPONENTS):
            conditions: list[ColumnElement[bool]] = [components.c[name] == value for name, value in columns.items()]
            if highest_write_id is not None:
                write_id = components.c.write_id
                conditions.append(or_(write_id <= highest_write_id, write_id.is_(None)))
            if components is TXN_COMPONENTS:
                conditions.append(components.c.txn_id.in_(aborted))
            self._connection.execute(delete(components).where(*conditions))

    def rebuild(self, view: Target) -> Rebuild | None:
        if not all(is_storable(name) for name in view if name is not None):
            return None
        row = self._connection.execute(select(REBUILDS).where(_THIS_VIEW), _names(view)).first()
        return None if row is None else Rebuild(TxnId(row.txn_id), row.last_heartbeat_ms)

    def set_rebuild(self, view: Target, txn_id: TxnId) -> None:
        columns = object_columns(view, self._dialect)
        del columns["partition_name"]
        self._connection.execute(delete(REBUILDS).where(_THIS_VIEW), _names(view))
        row = {**columns, "txn_id": txn_id, "last_heartbeat_ms": self.now_ms()}
        self._connection.execute(insert(REBUILDS).values(row))


def _names(view: Target) -> dict[str, str]:
    return {"the_db": view.db_name, "the_table": view.table_name or ""}


def _conditions(filter: CompactionFilter) -> Iterable[ColumnElement[bool]]:
    named: dict[str, str | None] = {
        "db_name": filter.db_name,
        "table_name": filter.table_name,
        "partition_name": filter.partition_name,
    }
    if filter.target is not None:
        named |= dict(zip(named, (name or "" for name in filter.target), strict=True))
    for column, name in named.items():
        if name is not None:
            yield COMPACTIONS.c[column] == name if is_storable(name) else false()
    if filter.compaction_id is not None:
        yield COMPACTIONS.c.compaction_id == filter.compaction_id
    if filter.type is not None:
        yield COMPACTIONS.c.compaction_type == int(filter.type)
    if filter.states is not None:
        yield COMPACTIONS.c.state.in_([state.value for state in sorted(filter.states)])


def _row(entry: Compaction, dialect: Dialect) -> dict[str, Any]:
    # Escaped by JSON, so any text can be kept.
    details = json.dumps(
        {name: value for name, value in msgspec.structs.asdict(entry.details).items() if value is not None}
    )
    return {
        "compaction_id": entry.compaction_id,
        **object_columns(entry.target, dialect),
        "compaction_type": int(entry.type),
        "state": entry.state.value,
        "details": details,
    }


def _compaction(row: Sequence[Any]) -> Compaction:
    # Unpacked at once: reading a row's columns by name takes long in a long list, and so does finding enumerations.
    compaction_id, db_name, table_name, partition_name, type, state, details = row
    target = target_of(db_name, table_name, partition_name)
    return Compaction(compaction_id, target, _TYPES[type], _STATES[state], CompactionDetails(**json.loads(details)))
