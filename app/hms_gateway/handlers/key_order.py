"""Names of partitions as the catalog spells them, so that a partition is one object of locks and leases.

Callers may escape more or fewer characters than the catalog does, and name the keys in any order. The order is known
of tables that exist; elsewhere a name keeps the order it was written in.
"""

from collections.abc import Sequence

from hms_gateway.metastore.checks.selection import TableName
from hms_gateway.metastore.ports.store import Snapshot, Store
from hms_gateway.metastore.vocabulary.partition_names import canonical_value, escape, unescape
from hms_gateway.txn.rules.names import Target


class KeyOrder:
    """More than `objects_max` are returned as they are: such requests are refused."""

    def __init__(self, store: Store, objects_max: int) -> None:
        self._store = store
        self._objects_max = objects_max

    def ordered(self, targets: Sequence[Target]) -> list[Target]:
        """The same objects, partitions by their names in the catalog."""
        spelt = [_spelt(target) for target in targets]
        tables = {target[:2] for target in spelt if len(_keys(target)) > 1}
        if not tables or len(spelt) > self._objects_max:
            return spelt
        orders = self._store.read(lambda snapshot: {table: _order(snapshot, *table) for table in tables})
        return [_in_order(target, orders.get(target[:2], ())) for target in spelt]


def _order(snapshot: Snapshot, db_name: str, table_name: str | None) -> Sequence[str]:
    table = TableName(db_name, table_name).find(snapshot) if db_name and table_name else None
    return [] if table is None else [(key.name or "").lower() for key in table.table.partitionKeys or ()]


def _in_order(target: Target, order: Sequence[str]) -> Target:
    """Leave a name as it is that has something else than keys of the table."""
    keys = _keys(target)
    if target.partition_name is None or len(set(keys)) < len(keys) or not set(keys).issubset(order):
        return target
    parts = dict(zip(keys, target.partition_name.split("/"), strict=True))
    return target._replace(partition_name="/".join(parts[key] for key in order if key in parts))


def _keys(target: Target) -> list[str]:
    """The names of the keys; empty for a partition in a short form without them."""
    parts = [] if target.partition_name is None else target.partition_name.split("/")
    return [unescape(part.partition("=")[0]) for part in parts] if all("=" in part for part in parts) else []


def _spelt(target: Target) -> Target:
    if target.partition_name is None:
        return target
    return target._replace(partition_name="/".join(_spelt_part(part) for part in target.partition_name.split("/")))


def _spelt_part(part: str) -> str:
    key, separator, value = part.partition("=")
    return f"{escape(unescape(key))}={escape(canonical_value(unescape(value)))}" if separator else part
