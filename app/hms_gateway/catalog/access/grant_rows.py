"""Privileges on objects as rows, those that come with a new table, and the event of a change (semantics §2.18)."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NewType

import msgspec
from sqlalchemy import ColumnElement, Row, Select, case, delete, false, insert, literal, or_, select, update

from hms_gateway.metastore.ports.store import Event, StoredTable, Transaction
from hms_gateway.metastore.vocabulary.names import DatabaseId, PartitionId, TableId
from hms_gateway.rpc.structs import HiveObjectType, PrincipalPrivilegeSet, PrincipalType
from hms_gateway.storage.dialects import Dialect
from hms_gateway.storage.schema.catalog import DATABASES, PARTITIONS, PRIVILEGES, TABLES
from hms_gateway.storage.sql.filter_sql import has_id_among, is_among
from hms_gateway.storage.sql.fragments import decode_texts
from hms_gateway.storage.sql.repository import AggregateRows, check_name, check_text, is_storable

# Not one of Hive's: its metastore writes no event. Followers of the log skip kinds that they do not know.
CHANGE_RIGHTS: Final = "CHANGE_RIGHTS"


GrantId = NewType("GrantId", int)


class GrantObject(msgspec.Struct, frozen=True):
    """Object of a privilege: everything, or the object with these ids. A column is of a table or of a partition."""

    object_type: int
    database_id: DatabaseId | None = None
    table_id: TableId | None = None
    partition_id: PartitionId | None = None
    column: str | None = None


class Grantee(msgspec.Struct, frozen=True):
    name: str
    principal_type: int


class Grant(msgspec.Struct, frozen=True):
    """One privilege of one principal on one object."""

    on: GrantObject
    principal: Grantee
    privilege: str
    create_time: int
    grant_option: bool
    grantor: str | None = None
    grantor_type: int | None = None
    authorizer: str | None = None


class StoredGrant(msgspec.Struct, frozen=True):
    """A grant with its id and the names of what it is on."""

    grant_id: GrantId
    grant: Grant
    db_name: str | None
    table_name: str | None
    partition_values: tuple[str, ...] | None


class GrantRows(AggregateRows):
    def on(self, target: GrantObject, *, of_any_column: bool = False) -> list[StoredGrant]:
        """All on exactly this object, in order of their making; or on all columns of the table or partition."""
        return self._found(*_is_on(target, of_any_column=of_any_column))

    def of_principal(self, principal: Grantee, object_type: int | None = None) -> list[StoredGrant]:
        if not is_storable(principal.name):
            return []
        return self._found(
            PRIVILEGES.c.principal_name == principal.name,
            PRIVILEGES.c.principal_type == principal.principal_type,
            *_is_of_kind(object_type),
        )

    def of_kind(self, object_type: int | None = None) -> list[StoredGrant]:
        return self._found(*_is_of_kind(object_type))

    def on_partitions(self, table_id: TableId) -> dict[PartitionId, list[Grant]]:
        """On whole partitions of a table."""
        rows = self._found(PRIVILEGES.c.table_id == table_id, PRIVILEGES.c.object_type == int(HiveObjectType.PARTITION))
        found: dict[PartitionId, list[Grant]] = {}
        for row in rows:
            assert row.grant.on.partition_id is not None
            found.setdefault(row.grant.on.partition_id, []).append(row.grant)
        return found

    def insert(self, grants: Sequence[Grant]) -> None:
        if grants:
            self._connection.execute(insert(PRIVILEGES), [_row(grant, self._dialect) for grant in grants])

    def copy_to_partitions(self, table: StoredTable, names: Sequence[str], now_seconds: int) -> None:
        """Grant on these partitions, and on their columns, what is granted on their table."""
        on_table = int(HiveObjectType.TABLE)
        object_type = case(
            (PRIVILEGES.c.object_type == on_table, int(HiveObjectType.PARTITION)), else_=PRIVILEGES.c.object_type
        )
        copied = [column.name for column in PRIVILEGES.c if column.name != "privilege_id"]
        changed = {
            "object_type": object_type,
            "partition_id": PARTITIONS.c.partition_id,
            "create_time": literal(now_seconds),
        }
        source = (
            select(*(changed.get(name, PRIVILEGES.c[name]) for name in copied))
            .select_from(PRIVILEGES.join(PARTITIONS, PARTITIONS.c.table_id == PRIVILEGES.c.table_id))
            .where(
                PRIVILEGES.c.table_id == table.table_id,
                PRIVILEGES.c.partition_id.is_(None),
                is_among(PARTITIONS.c.part_name, names, self._dialect),
            )
        )
        self._connection.execute(insert(PRIVILEGES).from_select(copied, source))

    def delete(self, grant_ids: Sequence[GrantId]) -> None:
        among = has_id_among(PRIVILEGES.c.privilege_id, grant_ids, self._dialect)
        self._connection.execute(delete(PRIVILEGES).where(among))

    def clear_grant_options(self, grant_ids: Sequence[GrantId]) -> None:
        among = has_id_among(PRIVILEGES.c.privilege_id, grant_ids, self._dialect)
        self._connection.execute(update(PRIVILEGES).where(among).values(grant_option=False))

    def _found(self, *conditions: ColumnElement[bool]) -> list[StoredGrant]:
        return [_stored(row) for row in self._connection.execute(_rows().where(*conditions))]


def _is_of_kind(object_type: int | None) -> list[ColumnElement[bool]]:
    return [] if object_type is None else [PRIVILEGES.c.object_type == object_type]


def _is_on(target: GrantObject, *, of_any_column: bool) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [PRIVILEGES.c.object_type == target.object_type]
    for column, value in (
        (PRIVILEGES.c.database_id, target.database_id),
        (PRIVILEGES.c.table_id, target.table_id),
        (PRIVILEGES.c.partition_id, target.partition_id),
    ):
        conditions.append(column.is_(None) if value is None else column == value)
    if target.column is not None and not is_storable(target.column):
        return [false()]
    if not of_any_column:
        wanted = target.column
        conditions.append(PRIVILEGES.c.column_name.is_(None) if wanted is None else PRIVILEGES.c.column_name == wanted)
    return conditions


def _rows() -> Select[Any]:
    return (
        select(
            PRIVILEGES,
            DATABASES.c.name.label("db_name"),
            TABLES.c.name.label("table_name"),
            PARTITIONS.c.part_values,
        )
        .outerjoin(TABLES, TABLES.c.table_id == PRIVILEGES.c.table_id)
        .outerjoin(
            DATABASES,
            or_(DATABASES.c.database_id == PRIVILEGES.c.database_id, DATABASES.c.database_id == TABLES.c.database_id),
        )
        .outerjoin(PARTITIONS, PARTITIONS.c.partition_id == PRIVILEGES.c.partition_id)
        .order_by(PRIVILEGES.c.privilege_id)
    )


def _row(grant: Grant, dialect: Dialect) -> dict[str, Any]:
    check_name("principal", grant.principal.name, dialect)
    check_name("column", grant.on.column or "", dialect)
    for what, text in (
        ("privilege", grant.privilege),
        ("grantor", grant.grantor),
        ("authorizer", grant.authorizer),
    ):
        check_text(what, text)
    return {
        "object_type": grant.on.object_type,
        "database_id": grant.on.database_id,
        "table_id": grant.on.table_id,
        "partition_id": grant.on.partition_id,
        "column_name": grant.on.column,
        "principal_name": grant.principal.name,
        "principal_type": grant.principal.principal_type,
        "privilege": grant.privilege,
        "grant_option": grant.grant_option,
        "create_time": grant.create_time,
        "grantor_name": grant.grantor,
        "grantor_type": grant.grantor_type,
        "authorizer": grant.authorizer,
    }


def _stored(row: Row[Any]) -> StoredGrant:
    on = GrantObject(
        row.object_type,
        None if row.database_id is None else DatabaseId(row.database_id),
        None if row.table_id is None else TableId(row.table_id),
        None if row.partition_id is None else PartitionId(row.partition_id),
        row.column_name,
    )
    grant = Grant(
        on=on,
        principal=Grantee(row.principal_name, row.principal_type),
        privilege=row.privilege,
        create_time=row.create_time,
        grant_option=row.grant_option,
        grantor=row.grantor_name,
        grantor_type=row.grantor_type,
        authorizer=row.authorizer,
    )
    values = None if row.part_values is None else tuple(decode_texts(row.part_values))
    return StoredGrant(GrantId(row.privilege_id), grant, row.db_name, row.table_name, values)


def creation_grants(privileges: PrincipalPrivilegeSet | None, table_id: TableId, now_seconds: int) -> Iterator[Grant]:
    """Each once; what names no principal or no privilege is left out. The time of a grant is the client's, if any."""
    if privileges is None:
        return
    on = GrantObject(HiveObjectType.TABLE, table_id=table_id)
    seen: set[tuple[Grantee, str, str | None]] = set()
    for principal_type, given in (
        (PrincipalType.USER, privileges.userPrivileges),
        (PrincipalType.GROUP, privileges.groupPrivileges),
        (PrincipalType.ROLE, privileges.rolePrivileges),
    ):
        for name, infos in (given or {}).items():
            for info in infos or ():
                principal = Grantee(name, int(principal_type))
                for privilege in split_privileges(info.privilege):
                    if (principal, privilege, info.grantor) in seen:
                        continue
                    seen.add((principal, privilege, info.grantor))
                    yield Grant(
                        on=on,
                        principal=principal,
                        privilege=privilege,
                        create_time=info.createTime or now_seconds,
                        grant_option=bool(info.grantOption),
                        grantor=info.grantor,
                        grantor_type=info.grantorType,
                    )


def split_privileges(text: str | None) -> list[str]:
    """`select, insert` as two privileges, without the blanks Hive would keep (semantics §13 row 39b)."""
    return list(dict.fromkeys(part for each in (text or "").split(",") if (part := each.strip())))


def note_changed_rights(tx: Transaction) -> None:
    """Within the unit of work that changes them. Of no database: only administrators see it."""
    tx.append_event(Event(CHANGE_RIGHTS, "", None, "{}"))
