"""An Iceberg table with a history, made by the REST catalog of a gateway that runs."""

import json
from typing import Final

from tests.support.server import GatewayServer

# Above 2**53, where numbers of JavaScript lose digits.
FIRST_SNAPSHOT: Final = 2**62 + 1
_NOW_MS: Final = 1_790_000_000_000


def plant_snapshots(server: GatewayServer, name: str, snapshots: int) -> None:
    """An Iceberg table by the REST catalog, of two schemas and specs, with snapshots that have no list of files."""
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    at = {"id": 2, "name": "at", "required": False, "type": "timestamptz"}
    summary = {"operation": "append", "added-records": "1000", "total-records": "1000", "total-files-size": "2048"}
    added = [
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": FIRST_SNAPSHOT + number,
                "sequence-number": number + 1,
                "schema-id": 0,
                "timestamp-ms": _NOW_MS + number,
                "manifest-list": "none",
                "summary": {**summary, "engine": "test"},
            },
        }
        for number in range(snapshots)
    ]
    refs = [
        {"action": "set-snapshot-ref", "ref-name": ref, "type": kind, "snapshot-id": FIRST_SNAPSHOT + number, **kept}
        for ref, kind, number, kept in [
            ("main", "branch", snapshots - 1, {}),
            ("audited", "tag", 0, {"max-ref-age-ms": 86_400_000}),
        ]
    ]
    newer = [
        {"action": "add-schema", "schema": {"type": "struct", "fields": [*fields, at]}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": [{"source-id": 2, "transform": "day", "name": "day"}]}},
        {"action": "set-default-spec", "spec-id": -1},
    ]
    tables = "/iceberg/v1/namespaces/ice/tables"
    for path, body in [
        ("/iceberg/v1/namespaces", {"namespace": ["ice"]}),
        (tables, {"name": name, "schema": {"type": "struct", "fields": fields}}),
        (f"{tables}/{name}", {"requirements": [], "updates": [*added, *refs, *newer]}),
    ]:
        status, answer = server.post(json.dumps(body).encode(), path)
        assert status == 200 or b"already exists" in answer, answer
