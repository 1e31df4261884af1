"""Texts of the service by namespace and path, as rows."""

from sqlalchemy import delete, insert, select

from hms_gateway.storage.schema.catalog import PROPERTIES
from hms_gateway.storage.sql.fragments import encode_texts, text_hash
from hms_gateway.storage.sql.repository import Repository, check_text, is_storable


class PropertyRepository(Repository):
    """`object_ports.PropertyWrites`."""

    def get(self, namespace: str, path: str) -> str | None:
        condition = PROPERTIES.c.path_hash == _hash(namespace, path)
        return self._connection.execute(select(PROPERTIES.c.value).where(condition)).scalar()

    def under(self, namespace: str, prefix: str) -> dict[str, str]:
        if not is_storable(namespace):
            return {}
        statement = select(PROPERTIES.c.path, PROPERTIES.c.value).where(PROPERTIES.c.namespace == namespace)
        rows = self._connection.execute(statement)
        return dict(sorted((path, value) for path, value in rows if path.startswith(prefix)))

    def put(self, namespace: str, path: str, value: str) -> None:
        for text in (namespace, path, value):
            check_text("property", text)
        self.delete(namespace, path)
        row = {"path_hash": _hash(namespace, path), "namespace": namespace, "path": path, "value": value}
        self._connection.execute(insert(PROPERTIES).values(row))

    def delete(self, namespace: str, path: str) -> None:
        self._connection.execute(delete(PROPERTIES).where(PROPERTIES.c.path_hash == _hash(namespace, path)))


def _hash(namespace: str, path: str) -> str:
    return text_hash(encode_texts([namespace, path]))
