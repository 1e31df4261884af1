"""Types as rows."""

from typing import Final

from sqlalchemy import delete, insert, select

from hms_gateway.metastore.ports.store import DuplicateKey
from hms_gateway.storage.schema.catalog import TYPES
from hms_gateway.storage.sql.fragments import decode_extra, encode_extra, names_except
from hms_gateway.storage.sql.repository import Repository, check_name, is_storable
from hms_gateway.structs import Type

_EXTRA: Final = names_except(Type, "name")


class TypeRepository(Repository):
    """`object_ports.TypeWrites`."""

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
        name = new.name or ""
        check_name("type", name, self._dialect)
        if self.find(name) is not None:
            raise DuplicateKey(name)
        self._connection.execute(insert(TYPES).values(name=name, extra=encode_extra(new, _EXTRA)))

    def delete(self, name: str) -> None:
        if is_storable(name):
            self._connection.execute(delete(TYPES).where(TYPES.c.name == name))
