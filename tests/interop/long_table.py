"""A table whose partitions make an answer of some megabytes, which leaves the server in pieces."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.server import GatewayServer

PARTITIONS_PER_CALL = 1_000
COLUMNS = [{"1": {"str": f"column_{number:02}"}, "2": {"str": "string"}} for number in range(8)]


@dataclass(frozen=True)
class LongTable:
    """Names of the table, and the value of each partition in the order they are listed."""

    database: str
    table: str
    values: Sequence[str]

    @property
    def request(self) -> str:
        """get_partitions of all of them, as TJSON."""
        arguments = {"1": {"str": self.database}, "2": {"str": self.table}, "3": {"i16": -1}}
        return json.dumps([1, "get_partitions", 1, 1, arguments])


def make_long_table(server: GatewayServer, table: LongTable) -> None:
    _call(server, "create_database", {"1": {"str": table.database}})
    key = {"1": {"str": "number"}, "2": {"str": "string"}}
    made = {"1": {"str": table.table}, "2": {"str": table.database}, "7": _descriptor(), "8": {"lst": ["rec", 1, key]}}
    _call(server, "create_table", made)
    for start in range(0, len(table.values), PARTITIONS_PER_CALL):
        values = table.values[start : start + PARTITIONS_PER_CALL]
        partitions = [
            {
                "1": {"lst": ["str", 1, value]},
                "2": {"str": table.database},
                "3": {"str": table.table},
                "6": _descriptor(),
            }
            for value in values
        ]
        _call(server, "add_partitions", ["rec", len(partitions), *partitions])


def _descriptor() -> dict[str, Any]:
    serde = {"2": {"str": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"}}
    return {"rec": {"1": {"lst": ["rec", len(COLUMNS), *COLUMNS]}, "7": {"rec": serde}}}


def _call(server: GatewayServer, method: str, argument: Any) -> None:
    kind = "lst" if isinstance(argument, list) else "rec"
    status, answer = server.post(json.dumps([1, method, 1, 1, {"1": {kind: argument}}]).encode())
    assert status == 200, answer
    assert set(json.loads(answer)[4]) <= {"0"}, answer
