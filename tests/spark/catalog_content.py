"""All that a metastore and its warehouse hold of one database, as plain values by which two can be compared."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from tests.bridge.bridge_process import connected

TIME_FIELDS = {"createTime", "lastAccessTime"}
DIFFERS = re.compile(
    r"\b1[789]\d{8}(?:\d{3})?\b"  # seconds and milliseconds since 1970
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} UTC \d{4}"  # as DESCRIBE prints them
)


class ThriftPort(Protocol):
    """A metastore, or a bridge to one: it takes Thrift over TCP on a port of loopback."""

    port: int


def content(metastore: ThriftPort, database: str, warehouse: Path) -> dict[str, Any]:
    """Database, tables, partitions, functions and directories, without what differs between any two runs."""
    with connected(metastore) as client:  # type: ignore[arg-type]
        names = sorted(client.get_all_tables(database))
        found = {
            "database": plain(client.get_database(database)),
            "tables": {name: plain(client.get_table(database, name)) for name in names},
            "partitions": {
                name: {
                    "/".join(partition.values): plain(partition)
                    for partition in client.get_partitions(database, name, -1)
                }
                for name in names
            },
            "functions": {
                name: plain(client.get_function(database, name)) for name in client.get_functions(database, "*")
            },
        }
    return comparable({**found, "directories": list(directories(warehouse, database))}, warehouse)


def plain(value: Any) -> Any:
    """A struct as the mapping of its set fields."""
    if isinstance(value, msgspec.Struct):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {
            name: ("TIME" if name in TIME_FIELDS and item else plain(item)) for name, item in fields if item is not None
        }
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in sorted(value.items())}
    return [plain(item) for item in value] if isinstance(value, list) else value


def comparable(value: Any, warehouse: Path) -> Any:
    """The same value with names for the warehouse's place and for times."""
    if isinstance(value, dict):
        return {comparable(key, warehouse): comparable(item, warehouse) for key, item in value.items()}
    if isinstance(value, list):
        return [comparable(item, warehouse) for item in value]
    if isinstance(value, str):
        for place in (f"file://{warehouse}", f"file:{warehouse}", str(warehouse)):
            value = value.replace(place, "WAREHOUSE")
        return DIFFERS.sub("TIME", value)
    return value


def directories(warehouse: Path, database: str) -> Iterator[str]:
    """Every directory of the database with how many data files lie in it."""
    top = warehouse / f"{database}.db"
    for folder in sorted([top, *top.rglob("*")]):
        if folder.is_dir() and not any(part.startswith((".", "_")) for part in folder.relative_to(top).parts):
            files = sum(1 for file in folder.iterdir() if file.is_file() and not file.name.startswith((".", "_")))
            yield f"{folder.relative_to(warehouse)}: {files}"
