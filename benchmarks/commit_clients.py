"""The clients of `python -m benchmarks commits`, each a process: writers that note every commit, and readers.

A commit has a number: an append in the summary of its snapshot and in its one row, any other in a property of the
writer's own. So the history of a table says which commits it has.
"""

import io
import json
import re
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import httpx
import pyarrow as pa
import pyarrow.parquet
import requests
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, RESTError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, write_manifest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField
from thrift.Thrift import TException

from benchmarks.commit_history import COMMIT, WRITER, path_of
from hms_gateway.iceberg.manifest_lists import Manifest, block_of, list_of_blocks, read_manifests
from tests.iceberg.appender import PROPERTIES
from tests.iceberg.spark_process import SparkProcess, hive_catalog, rest_catalog, spark_process
from tests.linearizability.history import Journal, NotMade, Unknown
from tests.support.server import PASSWORD, USER

NAMESPACE: Final = "kills"
SCHEMA: Final = Schema(NestedField(1, "id", LongType(), required=False), schema_id=0)
_ROWS: Final = pa.schema([pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"1"})])
_REPEATS_MAX: Final = 600
_PAUSE_SECONDS: Final = 0.1
_LOOKS_SHARE: Final = 0.1
_STALE_SHARE: Final = 0.7
_VERSION: Final = re.compile(r".*/(\d+)-[^/]+\.metadata\.json")


class Refused(Exception):
    """The answer to a commit that was not made."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class World(NamedTuple):
    """State that all clients have: a folder for journals, and the doors of each gateway."""

    folder: Path
    rest_urls: Sequence[str]
    thrift_ports: Sequence[int]
    tables: Sequence[str]

    @property
    def stop(self) -> Path:
        return self.folder / "stop"

    def journal(self, number: int) -> Path:
        return self.folder / f"{number}.journal"

    def report(self, what: str) -> None:
        with (self.folder / "wrong").open("ab", buffering=0) as file:
            file.write(f"{what}\n".encode())


def version_of(location: str) -> int:
    found = _VERSION.fullmatch(location)
    assert found is not None, location
    return int(found[1])


class RestClient:
    """Requests to one gateway, and to the next one after each failure."""

    def __init__(self, urls: Sequence[str], first: int) -> None:
        clients = [httpx.Client(base_url=url, auth=(USER, PASSWORD), timeout=60) for url in urls]
        self._clients = clients[first % len(urls) :] + clients[: first % len(urls)]

    def turn(self) -> None:
        self._clients.append(self._clients.pop(0))

    def load(self, table: str) -> Any:
        """Raises NotMade."""
        try:
            answer = self._clients[0].get(f"/namespaces/{NAMESPACE}/tables/{table}")
        except httpx.HTTPError as error:
            self.turn()
            raise NotMade from error
        if answer.status_code == 503:
            self.turn()
            raise NotMade
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any, key: str | None = None) -> Any:
        """The answer; one with a key is sent until it has one. Raises Refused, Unknown, NotMade."""
        is_open = False
        for _ in range(_REPEATS_MAX):
            try:
                answer = self._clients[0].post(path, json=body, headers={"idempotency-key": key} if key else {})
            except httpx.ConnectError as error:
                if not is_open and key is None:
                    raise NotMade from error
            except httpx.HTTPError:
                is_open = True
            else:
                kind = "" if answer.status_code < 400 else answer.json()["error"]["type"]
                if not kind:
                    return answer.json() if answer.content else None
                if answer.status_code < 500:
                    raise Refused(answer.text)
                assert kind in ("CommitStateUnknownException", "ServiceUnavailableException"), answer.text
                is_open = is_open or kind == "CommitStateUnknownException"
            self.turn()
            if key is None:
                raise Unknown if is_open else NotMade
            time.sleep(_PAUSE_SECONDS)
        raise Unknown


class Writer:
    """Commits until it is stopped or killed."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.random = Random(f"{number} {time.monotonic_ns()}")
        self._journal = Journal(world.journal(number), number)

    def run(self) -> None:
        while not self.world.stop.exists():
            try:
                self.commit(secrets.randbits(62))
            except (Unknown, NotMade):
                time.sleep(_PAUSE_SECONDS)

    def commit(self, number: int) -> None:
        """Make one commit. Raises Unknown, NotMade."""
        raise NotImplementedError

    def note(self, name: str, number: int, tables: Sequence[str], call: Callable[[], Any]) -> bool:
        """Make a commit; True if it was acknowledged."""

        def make() -> None:
            call()

        return self._journal.record(name, (number, *tables), make, Refused) is None


class LibraryWriter(Writer):
    """Appends as PyIceberg does by one of its catalogs."""

    def __init__(self, world: World, number: int, open_catalog: Callable[[World, int], Catalog]) -> None:
        super().__init__(world, number)
        self._open = open_catalog
        self._gateway = number
        self._catalog: Catalog | None = None

    def commit(self, number: int) -> None:
        table = self.random.choice(self.world.tables)
        self.note("append", number, [table], lambda: self._append(table, number))

    def _append(self, table: str, number: int) -> None:
        try:
            if self._catalog is None:
                self._catalog = self._open(self.world, self._gateway % len(self.world.rest_urls))
            loaded = self._catalog.load_table((NAMESPACE, table))
            loaded.append(pa.table({"id": [number]}, _ROWS), snapshot_properties={COMMIT: str(number)})
        except CommitFailedException as error:
            raise Refused(str(error)) from error
        except (CommitStateUnknownException, RESTError, requests.RequestException, TException, OSError) as error:
            self._gateway, self._catalog = self._gateway + 1, None
            raise Unknown from error


def by_rest(world: World, place: int) -> Catalog:
    basic: Any = {"type": "basic", "basic": {"username": USER, "password": PASSWORD}}
    return RestCatalog("kills", uri=world.rest_urls[place].removesuffix("/v1"), auth=basic)


def by_thrift(world: World, place: int) -> Catalog:
    return HiveCatalog("kills", uri=f"thrift://127.0.0.1:{world.thrift_ports[place]}", **PROPERTIES)


class SparkWriter(Writer):
    """Appends as Spark does, by the REST catalog or the Hive catalog of one of the gateways."""

    def __init__(self, world: World, number: int, spark: SparkProcess) -> None:
        super().__init__(world, number)
        self._spark = spark
        self._catalogs = [*spark_catalogs(world)]

    def commit(self, number: int) -> None:
        table = self.random.choice(self.world.tables)
        self.note("append", number, [table], lambda: self._append(table, number))

    def _append(self, table: str, number: int) -> None:
        place = f"{self.random.choice(self._catalogs)}.{NAMESPACE}.{table}"
        options = {f"snapshot-property.{COMMIT}": str(number)}
        (found,) = self._spark.together((f"SELECT {number}L AS id", place, options))
        if isinstance(found, str):
            raise (Refused if "CommitFailedException" in found else Unknown)(found)


def run_spark(world: World, number: int) -> None:
    """A writer with a session of its own."""
    folder = world.folder / f"spark-{number}"
    folder.mkdir(exist_ok=True)
    # The gateway ends locks that nobody has heard of for seconds; Iceberg's default is four minutes.
    locks = {"lock-heartbeat-interval-ms": "1000", "lock-check-max-wait-ms": "200"}
    hadoop = {f"spark.hadoop.iceberg.hive.{key}": value for key, value in locks.items()}
    with spark_process(folder, spark_catalogs(world), **hadoop) as spark:
        SparkWriter(world, number, spark).run()


def spark_catalogs(world: World) -> dict[str, dict[str, str]]:
    """The catalogs of both kinds at each gateway."""
    rest = {f"rest{at}": rest_catalog(url.removesuffix("/v1")) for at, url in enumerate(world.rest_urls)}
    warehouse = world.folder.parent / "warehouse"
    ports = enumerate(world.thrift_ports)
    return rest | {f"hive{at}": hive_catalog(f"thrift://127.0.0.1:{port}", warehouse) for at, port in ports}


class PreparedWriter(Writer):
    """Sends appends, properties and commits over two tables by hand, mostly from a state that is old by then.

    One with keys repeats what had no answer.
    """

    def __init__(self, world: World, number: int, *, has_keys: bool) -> None:
        super().__init__(world, number)
        self._client = RestClient(world.rest_urls, number)
        self._other = RestClient(world.rest_urls, number + 1)
        self._has_keys = has_keys
        self._known: dict[str, Any] = {}

    def commit(self, number: int) -> None:
        kind = self.random.random()
        tables = self.random.sample(self.world.tables, 1 if kind < 0.85 else 2)
        name, make = ("append", self._append_to) if self.random.random() < 0.75 else ("properties", self._set_on)
        # One that is late is refused, whatever the tables allow.
        for one in tables if len(tables) > 1 else ():
            self._known.pop(one, None)
        changes = [{"identifier": {"namespace": [NAMESPACE], "name": one}, **make(one, number)} for one in tables]
        about = f"{name} of two tables" if len(tables) > 1 else name
        is_made = self.note(about, number, tables, lambda: self._send(changes, number))
        if not is_made or self.random.random() > _STALE_SHARE:
            for one in tables:
                self._known.pop(one, None)

    def _send(self, changes: Sequence[Any], number: int) -> None:
        key = str(number) if self._has_keys else None
        if len(changes) > 1:
            self._client.post("/transactions/commit", {"table-changes": changes}, key)
            return
        ((table, change),) = [(one["identifier"]["name"], one) for one in changes]
        made = self._client.post(f"/namespaces/{NAMESPACE}/tables/{table}", change, key)
        self._known[table] = made
        if self.random.random() < _LOOKS_SHARE:
            self._look(table, version_of(made["metadata-location"]))

    def _look(self, table: str, version: int) -> None:
        """The other gateway shows what this one has acknowledged."""
        try:
            seen = version_of(self._other.load(table)["metadata-location"])
        except NotMade:
            return
        if seen < version:
            self.world.report(f"{table}: version {version} is acknowledged, and {seen} is shown after it")

    def _state(self, table: str) -> Any:
        if table not in self._known:
            self._known[table] = self._client.load(table)
        return self._known[table]["metadata"]

    def _set_on(self, table: str, number: int) -> Any:
        uuid = {"type": "assert-table-uuid", "uuid": self._state(table)["table-uuid"]}
        updates = {"action": "set-properties", "updates": {f"{WRITER}{self.number}": str(number)}}
        return {"requirements": [uuid], "updates": [updates]}

    def _append_to(self, table: str, number: int) -> Any:
        known = self._state(table)
        head = known["refs"].get("main", {}).get("snapshot-id")
        newest = next((one for one in known["snapshots"] if one["snapshot-id"] == head), None)
        snapshot = {
            "snapshot-id": number,
            "sequence-number": known["last-sequence-number"] + 1,
            "timestamp-ms": max(known["last-updated-ms"] + 1, time.time_ns() // 1_000_000),
            "manifest-list": f"{known['location']}/metadata/snap-{number}-0-{self.number}.avro",
            "schema-id": 0,
            "summary": {"operation": "append", "added-records": "1", "added-data-files": "1", COMMIT: str(number)},
        }
        if head is not None:
            snapshot["parent-snapshot-id"] = head
        before = [] if newest is None else read_manifests(path_of(newest["manifest-list"]).read_bytes())
        entries = [_written_manifest(known["location"], number, snapshot["sequence-number"]), *before]
        path_of(snapshot["manifest-list"]).write_bytes(list_of_blocks([block_of(entries, 2)], 2, snapshot))
        return {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": known["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
            ],
        }


def _written_manifest(location: str, number: int, sequence: int) -> Manifest:
    """A data file with one row, and the manifest that names it."""
    content = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"id": [number]}, _ROWS), content)
    data = f"{location}/data/{number}.parquet"
    path_of(data).parent.mkdir(exist_ok=True)
    path_of(data).write_bytes(content.getvalue())
    file = DataFile.from_args(
        content=DataFileContent.DATA, file_path=data, file_format=FileFormat.PARQUET, partition=Record(),
        record_count=1, file_size_in_bytes=len(content.getvalue()),
    )  # fmt: skip
    entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file)
    place = f"{location}/metadata/{number}-m0.avro"
    output = PyArrowFileIO().new_output(place)
    with write_manifest(2, UNPARTITIONED_PARTITION_SPEC, SCHEMA, output, number, "null") as writer:
        writer.add_entry(entry)
    return {
        "manifest_path": place,
        "manifest_length": path_of(place).stat().st_size,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": number,
        **{f"{kind}_files_count": int(kind == "added") for kind in ("added", "existing", "deleted")},
        **{f"{kind}_rows_count": int(kind == "added") for kind in ("added", "existing", "deleted")},
        "partitions": [],
        "key_metadata": None,
    }


def read_on(world: World, number: int) -> None:
    """Load tables by all gateways in turns: no load may show less than the one before. The count goes to a file."""
    client = RestClient(world.rest_urls, number)
    newest: dict[str, tuple[int, int]] = {}
    loads = 0
    while not world.stop.exists():
        for table in world.tables:
            client.turn()
            try:
                found = client.load(table)
            except NotMade:
                time.sleep(_PAUSE_SECONDS)
                continue
            loads += 1
            seen = version_of(found["metadata-location"]), found["metadata"]["last-sequence-number"]
            before = newest.get(table, seen)
            if min(new - old for new, old in zip(seen, before, strict=True)) < 0:
                world.report(f"{table}: a reader saw version and sequence number {before}, and then {seen}")
            newest[table] = seen
    (world.folder / f"{number}.loads").write_text(json.dumps(loads))
