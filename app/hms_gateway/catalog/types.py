"""Types of the old type registry, which no client uses (semantics §2.4)."""

from typing import Final

import msgspec
from sqlalchemy import delete, insert, select

from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import DuplicateKey, Store
from hms_gateway.metastore.vocabulary.names import InvalidName, check_type_name, trim
from hms_gateway.rpc.call import Call
from hms_gateway.storage.schema.catalog import TYPES
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import AggregateRows, check_name, is_storable
from hms_gateway.structs import (
    AlreadyExistsException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Type,
)

_EXTRA: Final = names_except(Type, "name")


class TypeRows(AggregateRows):
    def find(self, name: str) -> Type | None:
        if not is_storable(name):
            return None
        row = self._connection.execute(select(TYPES).where(TYPES.c.name == name)).first()
        if row is None:
            return None
        found = decode_extra(Type, row.extra)
        found.name = row.name
        return found

    def insert(self, new: Type) -> None:
        """Raises DuplicateKey."""
        name = new.name or ""
        check_name("type", name, self._dialect)
        if self.find(name) is not None:
            raise DuplicateKey(name)
        self._connection.execute(insert(TYPES).values(name=name, extra=encode_extra(new, _EXTRA)))

    def delete(self, name: str) -> None:
        """A missing one is ignored."""
        if is_storable(name):
            self._connection.execute(delete(TYPES).where(TYPES.c.name == name))


class Types:
    """Methods on types by name. Case counts, other than with everything else."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get_type(self, call: Call, name: str) -> Type:
        key = trim(required(name, "type name"))
        found = self._store.read(lambda snapshot: TypeRows(snapshot).find(key))
        if found is None:
            raise NoSuchObjectException(f'Type "{name}" not found.')
        return found

    def create_type(self, call: Call, type: Type) -> bool:
        new = required(type, "type")
        if new.fields is None:
            new = msgspec.structs.replace(new, fields=[])
        try:
            check_type_name(required(new.name, "type name"))
        except InvalidName as error:
            raise InvalidObjectException(str(error)) from error
        try:
            with unstorable_as_meta():
                self._store.write(lambda tx: TypeRows(tx).insert(new))
        except DuplicateKey as error:
            raise AlreadyExistsException(f"Type {new.name} already exists") from error
        return True

    def drop_type(self, call: Call, type: str) -> bool:
        """True whether it was there or not."""
        key = trim(required(type, "type name"))
        self._store.write(lambda tx: TypeRows(tx).delete(key))
        return True

    def get_type_all(self, call: Call, name: str) -> dict[str, Type]:
        raise MetaException("Not yet implemented")
