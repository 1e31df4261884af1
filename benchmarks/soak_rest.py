"""A client of a gateway's Iceberg REST catalog, which a soak calls like those at Thrift's doors."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

import httpx

from benchmarks.soak_objects import VALUE
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    Database,
    InvalidOperationException,
    NoSuchObjectException,
    Table,
)

_SCHEMA: Final = {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}]}
_REFUSALS: Final[Mapping[tuple[int, str], Callable[[str], Exception]]] = {
    (404, "NoSuchTableException"): NoSuchObjectException,
    (404, "NoSuchNamespaceException"): NoSuchObjectException,
    (409, "AlreadyExistsException"): AlreadyExistsException,
    (409, "CommitFailedException"): InvalidOperationException,
}


class RestClient:
    """Tables with Thrift's methods: `call("get_table", database, name)`; of a table only its parameters count."""

    def __init__(self, http: httpx.Client) -> None:
        """`http` has the base URL of the catalog, and the login."""
        self._http = http

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def call(self, method: str, *arguments: Any) -> Any:
        """Raises the exceptions of Thrift for refusals, httpx.HTTPError for anything else."""
        return getattr(self, method)(*arguments)

    def create_database(self, database: Database) -> None:
        self._asked("POST", "namespaces", {"namespace": [database.name]})

    def create_table(self, table: Table) -> None:
        body = {"name": table.tableName, "schema": _SCHEMA, "properties": table.parameters}
        self._asked("POST", f"namespaces/{table.dbName}/tables", body)

    def get_table(self, database: str, name: str) -> Table:
        loaded = self._asked("GET", f"namespaces/{database}/tables/{name}")
        return Table(name, database, parameters=loaded["metadata"]["properties"])

    def alter_table(self, database: str, name: str, table: Table) -> None:
        update = {"action": "set-properties", "updates": {VALUE: table.parameters[VALUE]}}
        self._asked("POST", f"namespaces/{database}/tables/{name}", {"requirements": [], "updates": [update]})

    def drop_table(self, database: str, name: str, deletes_data: bool) -> None:
        self._asked("DELETE", f"namespaces/{database}/tables/{name}?purgeRequested={str(deletes_data).lower()}")

    def get_all_tables(self, database: str) -> list[str]:
        """Empty for a missing database, as at Thrift's doors."""
        try:
            return [each["name"] for each in self._asked("GET", f"namespaces/{database}/tables")["identifiers"]]
        except NoSuchObjectException:
            return []

    def _asked(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, json=body)
        if answer.status_code in (404, 409):
            error = answer.json()["error"]
            raise _REFUSALS[answer.status_code, error["type"]](error["message"])
        answer.raise_for_status()
        return answer.json() if answer.content else None
