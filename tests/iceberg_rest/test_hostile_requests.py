"""Names, places, files and bodies that are made to break something: the documented refusal, and nothing is left."""

import gzip
import json
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.iceberg.appends import REBASE
from hms_gateway.iceberg.json_values import decoded, decoded_bytes
from hms_gateway.iceberg.routes import OPERATIONS
from hms_gateway.rpc.call import Dialect, Unavailable
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.iceberg_rest.conftest import SCHEMA, USER, Rest, kind_of
from tests.iceberg_rest.test_appends import Writer

TABLE = "namespaces/sales/tables/orders"
SET = {"action": "set-properties", "updates": {"a": "b"}}
# No database or table has such a name.
NAMES = [
    "\0",
    "a\0b",
    "..",
    ".",
    "a.b",
    "a\x1fb",
    "\x1f",
    " ",
    "'",
    "%",
    "*",
    "a|b",
    "é",
    "😀",
    "\n",
    "a\\b",
    '"',
    "@c#d",
]


def path_of(location):
    return Path(location.removeprefix("file:"))


def everything(rest, tmp_path):
    """What the catalog shows, and the files of the warehouse."""
    names = [name for (name,) in rest.get("namespaces")[1]["namespaces"]]
    tables = {name: rest.get(f"namespaces/{name}/tables")[1] for name in names}
    views = {name: rest.get(f"namespaces/{name}/views")[1] for name in names}
    return tables, views, sorted(tmp_path.glob("warehouse/**/*"))


def requests(operation, name):
    """Requests of an operation with a name in each of the places that take one."""
    identifier = {"namespace": ["sales"], "name": name}
    body = {
        "namespace": [name], "name": name, "schema": SCHEMA, "metadata-location": "file:/x", "updates": [SET],
        "source": identifier, "destination": identifier, "table-changes": [{"identifier": identifier}],
        "view-version": {"representations": [], "default-namespace": [], "summary": {}},
    }  # fmt: skip
    sent = body if operation.method == "POST" else None
    odd = quote(name, safe="")
    if "{namespace}" not in operation.path or operation.path.count("{") == 2 or operation.id.startswith("create"):
        yield operation.method, operation.path.format(namespace="sales", table=odd, view=odd), sent
    if "{namespace}" in operation.path:
        yield operation.method, operation.path.format(namespace=odd, table="orders", view="orders"), sent


def test_names_that_no_object_can_have(rest, tmp_path):
    rest.table()
    before = everything(rest, tmp_path)
    for operation in OPERATIONS:
        for name in NAMES if operation.id != "listNamespaces" else ():
            for request in requests(operation, name):
                answer = rest.send(*request)
                assert kind_of(answer)[0] in (400, 404), (request, answer)
    assert everything(rest, tmp_path) == before


@pytest.mark.parametrize("name", ["a/b", "Orders_2", "x" * 128, "orders-2"])
def test_an_odd_name_that_a_table_can_have(rest, name):
    made = rest.table(name)
    path = f"namespaces/sales/tables/{quote(name, safe='')}"
    assert rest.get(path) == (200, made)
    assert rest.get("namespaces/sales/tables")[1]["identifiers"] == [{"namespace": ["sales"], "name": name.lower()}]
    assert rest.send("DELETE", path) == (204, None)


PLACES = [
    "http://127.0.0.1:1/x.metadata.json", "https://169.254.169.254/latest/meta-data", "s3://bucket/x.metadata.json",
    "hdfs://127.0.0.1:1/x", "file:/etc/passwd", "file:///etc/passwd", "/etc/passwd", "etc/passwd", "", "file:", "\0",
    "simplecache::file:/etc/passwd", "file:{root}/../hms_gateway.sqlite", "file:{root}/sales.db/../../x",
    "file:{root}", "file:{root}/sales.db", "file://elsewhere{root}/x",
    "zip://x.json::file:{root}/a.zip", "file:{root}/sales.db/none/metadata/x.metadata.json", "x" * 10_000,
]  # fmt: skip


def test_places_that_are_not_read_or_written(rest, tmp_path):
    made = rest.table()
    before = everything(rest, tmp_path)
    for each in PLACES:
        place = each.replace("{root}", str(tmp_path / "warehouse"))
        answers = [
            rest.post("namespaces/sales/register", {"name": "x", "metadata-location": place}),
            rest.post("namespaces/sales/register-view", {"name": "x", "metadata-location": place}),
            rest.post("namespaces/sales/register", {"name": "orders", "metadata-location": place, "overwrite": True}),
            rest.commit("orders", {"action": "set-properties", "updates": {"write.metadata.path": place or "x"}}),
        ]
        if "none/" not in place:
            answers.append(rest.table_answer("x", location=place))
            answers.append(rest.commit("orders", {"action": "set-location", "location": place}))
        assert {kind_of(each)[0] for each in answers} <= {400, 404}, (place, answers)
    assert rest.get(TABLE) == (200, made)
    assert everything(rest, tmp_path) == before


ODD_FILES = [
    {"refs": {"main": 5}}, {"refs": {"main": {}}}, {"refs": {"main": {"snapshot-id": []}}}, {"snapshots": [5]},
    {"snapshots": [{}]}, {"snapshots": "x"}, {"format-version": 4}, {"format-version": "2"}, {"location": 5},
    {"current-snapshot-id": []},
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_FILES, ids=str)
def test_a_file_that_another_writer_left_odd(rest, anew, odd):
    made = rest.table(properties={REBASE: "true"})
    body = Writer(rest, made).request(1)
    file = path_of(made["metadata-location"])
    file.write_text(json.dumps({**made["metadata"], **odd}), "utf-8")
    again = anew()
    answers = [
        again.get(TABLE),
        again.get(TABLE, query={"snapshots": "refs"}),
        again.commit("orders", SET),
        again.post(TABLE, body),
        again.post(f"{TABLE}/unregister"),
    ]
    assert {kind_of(each)[0] for each in answers} == {400}
    assert again.send("HEAD", TABLE) == (204, None)
    file.write_text(json.dumps(made["metadata"]), "utf-8")
    assert anew().post(TABLE, body)[0] == 200


def test_a_file_that_is_gone_is_not_registered(rest):
    made = rest.table()
    assert rest.send("DELETE", TABLE, query={"purgeRequested": "true"}) == (204, None)
    body = {"name": "orders", "metadata-location": made["metadata-location"]}
    assert kind_of(rest.post("namespaces/sales/register", body)) == (404, "NotFoundException")
    assert rest.send("HEAD", TABLE)[0] == 404


def test_a_file_that_was_written_again_is_registered_as_it_is_now(rest):
    made = rest.table()
    rest.send("DELETE", TABLE)
    changed = {**made["metadata"], "properties": {"a": "b"}}
    path_of(made["metadata-location"]).write_bytes(gzip.compress(json.dumps(changed).encode()))
    body = {"name": "orders", "metadata-location": made["metadata-location"]}
    assert rest.post("namespaces/sales/register", body)[1]["metadata"] == changed
    assert rest.get(TABLE)[1]["metadata"] == changed


@pytest.mark.parametrize("total", ["many", "-5", "9" * 5000, "\0", "٣", ""])
def test_a_total_that_is_no_number_reaches_no_row_and_fails_no_other_append(rest, metastore, total):
    made = rest.table(properties={REBASE: "true"})
    late = Writer(rest, made)
    body = Writer(rest, made).request(1)
    body["updates"][0]["snapshot"]["summary"]["total-records"] = total
    assert rest.post(TABLE, body)[0] == 200
    row = Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, USER).ask("get_table", "sales", "orders")
    assert "numRows" not in row.parameters
    status, found = late.append(2)
    assert (status, len(found["metadata"]["snapshots"])) == (200, 2)
    assert "total-records" not in found["metadata"]["snapshots"][1]["summary"]


@pytest.fixture
def small(metastore, tmp_path, request):
    """A second client of the catalog, with a low limit."""
    store = build_metastore(Settings(data_dir=tmp_path, limits=Limits(**{request.param: 10_000})))
    yield Rest(store.iceberg())
    store.store.close()


@pytest.mark.parametrize("small", ["iceberg_file_bytes_max", "iceberg_decoded_bytes_max"], indirect=True)
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_metadata_above_a_limit_is_neither_written_nor_read(rest, small, tmp_path, request, codec):
    limit = request.node.callspec.params["small"]
    made = rest.table(properties={"write.metadata.compression-codec": codec})
    many = {"action": "set-properties", "updates": {f"key{number}": "x" * 100 for number in range(150)}}
    answers = [small.commit("orders", many), small.table_answer("bills", properties=many["updates"])]
    assert small.get(TABLE) == (200, made)
    assert len(list(tmp_path.glob("warehouse/**/*.json"))) == 1
    status, long = rest.commit("orders", many)
    assert status == 200
    answers += [small.get(TABLE), small.commit("orders", SET), small.post("namespaces/sales/register", {
        "name": "orders", "metadata-location": long["metadata-location"], "overwrite": True})]  # fmt: skip
    for answer in answers:
        assert (kind_of(answer), limit in answer[1]["error"]["message"]) == ((400, "ValidationException"), True)
    assert small.send("DELETE", TABLE) == (204, None)


@pytest.mark.parametrize("short_bytes", [1_000, 100_000])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_metadata_that_is_read_counts_for_its_user(rest, tmp_path, monkeypatch, codec, short_bytes):
    """A table of 37 KB in memory, read where a user may hold 50 KB: one of two loads at once gets in."""
    monkeypatch.setattr("hms_gateway.iceberg.files._SHORT_BYTES", short_bytes)
    rest.table(properties={"write.metadata.compression-codec": codec})
    many = {"action": "set-properties", "updates": {f"key{number}": "x" * 100 for number in range(150)}}
    assert rest.commit("orders", many)[0] == 200
    narrow = build_metastore(Settings(data_dir=tmp_path, limits=Limits(decoded_bytes_max=100_000)))
    refused = []

    def meanwhile(text):
        if not refused:
            refused.append(text)
            with pytest.raises(Unavailable, match="raise share_per_user of decoded_bytes_max") as caught:
                Rest(narrow.iceberg()).get(TABLE)
            assert caught.value.limit == "share_per_user of decoded_bytes_max"
        return decoded(text)

    monkeypatch.setattr("hms_gateway.iceberg.files.decoded", meanwhile)
    with closing(narrow.store):
        for number in range(3):
            # Each time it reads what the other gateway has written.
            assert rest.commit("orders", {"action": "set-properties", "updates": {"a": str(number)}})[0] == 200
            assert Rest(narrow.iceberg()).get(TABLE)[0] == 200
    assert refused
    low = build_metastore(Settings(data_dir=tmp_path, limits=Limits(decoded_bytes_max=60_000)))
    with closing(low.store):
        answer = Rest(low.iceberg()).get(TABLE)
    assert kind_of(answer) == (400, "ValidationException")
    assert "30000 bytes of memory (limit share_per_user of decoded_bytes_max)" in answer[1]["error"]["message"]


def test_a_long_text_is_decoded_in_pieces_to_the_same_value(monkeypatch):
    monkeypatch.setattr("hms_gateway.iceberg.json_values.PIECE_BYTES", 8)
    value = {"a": [{"b": [1, {"c": ["x" * 20, None, True]}], "ü": -1.5}, [], {}], "long": "y" * 20, "n": [[[[[[1]]]]]]}
    for text in (json.dumps(value).encode(), json.dumps(value, indent=1).encode(), b" [1, 22, 333]", b'"0123456789"'):
        assert decoded(text) == json.loads(text)
        assert decoded_bytes(text) == len(text) + 64 * sum(map(text.count, (b",", b":", b"{", b"[")))
    for text in (b'{"a": [1, 2, 3}', b'{"a": 12345678} x', b'{"a": "\xff\xff\xff\xff"}', b"[" * 5_000):
        with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
            decoded(text)
