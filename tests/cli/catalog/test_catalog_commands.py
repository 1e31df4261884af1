"""ls, describe, export, import, diff and tail against a real gateway."""

import itertools
import json
import os

import pytest
from click.testing import CliRunner

from hms_gateway.cli.application import application
from hms_gateway.cli.catalog.changes import events_after
from hms_gateway.cli.catalog.comparing import differences
from hms_gateway.cli.catalog.exports import Record
from hms_gateway.client.metastore_client import MetastoreClient
from tests.support.server import PASSWORD, USER, GatewayServer

MAKE = """
create database shop comment 'c' with dbproperties ('a' = 'b');
use shop;
create table orders (id int comment 'x', b string) partitioned by (ds string, hr int) stored as orc;
alter table orders add partition (ds = '2', hr = 10) partition (ds = '10', hr = 9) partition (ds = 'a/b', hr = 1);
create table items (id int); alter table items add constraint pk primary key (id);
alter table orders add constraint fk foreign key (id) references items (id);
create view recent as select id from orders where ds > '1';
create function f as 'org.example.F' using jar 'file:/x.jar';
"""


@pytest.fixture
def shop(run, gateway):
    assert hms(gateway, "sql", "-e", MAKE).exit_code == 0
    yield "shop"
    assert hms(gateway, "sql", "-e", "drop database shop cascade").exit_code == 0


def hms(gateway, command, *words, stdin=""):
    where = [] if "--url" in words else ["--url", gateway.url]
    return CliRunner().invoke(
        application, [command, "-k", *where, *words], input=stdin, env={"HMS_GATEWAY_PASSWORD": PASSWORD}
    )


def test_names_are_listed_one_in_a_line(gateway, shop):
    assert "shop" in hms(gateway, "ls").stdout.split("\n")
    assert hms(gateway, "ls", "shop").stdout == "items\norders\nrecent\n"
    assert hms(gateway, "ls", "shop.orders").stdout == "ds=10/hr=9\nds=2/hr=10\nds=a%2Fb/hr=1\n"
    assert hms(gateway, "ls", "shop.orders", "--limit", "1").stdout == "ds=10/hr=9\n"
    assert hms(gateway, "ls", "shop", "--limit", "2").stdout == "items\norders\n"
    assert hms(gateway, "ls", "shop.orders/hr=1").stdout == "ds=a%2Fb/hr=1\n"
    assert hms(gateway, "ls", "shop.orders/ds=a%2Fb").stdout == "ds=a%2Fb/hr=1\n"


def test_a_long_list_says_what_tables_are(gateway, shop):
    rows = [json.loads(line) for line in hms(gateway, "ls", "-l", "shop", "--format", "json").stdout.splitlines()]
    assert [(row["name"], row["type"], row["columns"], row["partition_keys"]) for row in rows] == [
        ("items", "MANAGED_TABLE", 1, ""),
        ("orders", "MANAGED_TABLE", 2, "ds,hr"),
        ("recent", "VIRTUAL_VIEW", 1, ""),
    ]


def test_a_long_list_has_the_place_of_databases_and_partitions(gateway, shop):
    found = [json.loads(line) for line in hms(gateway, "ls", "-l", "--format", "json").stdout.splitlines()]
    warehouse = {row["name"]: row["location"] for row in found}["shop"]
    assert warehouse.endswith("/shop.db")
    listed = hms(gateway, "ls", "-l", "shop.orders", "--format", "json").stdout
    rows = [json.loads(line) for line in listed.splitlines()]
    assert {row["name"]: row["location"] for row in rows} == {
        name: f"{warehouse}/orders/{name}" for name in ("ds=10/hr=9", "ds=2/hr=10", "ds=a%2Fb/hr=1")
    }
    assert all(row["created"] for row in rows)
    assert len(hms(gateway, "ls", "-l", "shop.orders", "--limit", "1").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ls", "nowhere"], "database nowhere does not exist"),
        (["ls", "default.nothing"], "table default.nothing does not exist"),
        (["ls", "a.b.c"], "catalog a does not exist; the metastore has hive"),
        (["ls", "a.b.c.d"], "'a.b.c.d' is not a name"),
        (["ls", "default.t/2024"], "'default.t/2024' is not a name"),
        (["export", "default.t/ds=1"], "write database, database.table or catalog.database.table"),
        (["describe", "default.nothing"], "table default.nothing does not exist"),
        (["export", "default.nothing"], "NoSuchObjectException"),
    ],
)
def test_what_is_not_there_is_said(gateway, words, expected):
    result = hms(gateway, *words)
    assert result.exit_code in (1, 2)
    assert expected in result.stderr


def test_describe_shows_databases_tables_and_partitions(gateway, shop):
    assert "Location" in hms(gateway, "describe", "shop.orders").stdout
    assert hms(gateway, "describe", "shop").stdout.startswith("db_name\tcomment")
    assert "Partition Value\ta/b, 1" in hms(gateway, "describe", "shop.orders/ds=a%2Fb/hr=1").stdout
    found = json.loads(hms(gateway, "describe", "--format", "json", "shop.orders").stdout)
    assert (found["tableName"], found["sd"]["cols"][0]["comment"]) == ("orders", "x")


def test_an_export_is_imported_as_it_was(gateway, shop, tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert hms(gateway, "export", "shop", "-o", str(first)).exit_code == 0
    kinds = [json.loads(line)["kind"] for line in first.read_text().splitlines()[1:]]
    assert kinds == [
        "database", "function", "table", "primary_key", "table", "foreign_key", "partition", "partition", "partition",
        "table",
    ]  # fmt: skip
    with GatewayServer(tmp_path / "other") as other:
        assert hms(other, "import", "--exact", str(first)).exit_code == 0
        assert hms(other, "export", "shop", "-o", str(second)).exit_code == 0
        assert second.read_text() == first.read_text()
        assert hms(other, "diff", "--only", "shop", str(first)).exit_code == 0
        assert hms(gateway, "diff", "--only", "shop", gateway.url, other.url).exit_code == 0
        refused = hms(other, "import", str(first))
        assert refused.exit_code == 1
        assert refused.stderr.splitlines() == [
            "error: database shop: Database shop already exists",
            "--skip-existing leaves what is there as it is",
        ]
        again = hms(other, "import", "--skip-existing", str(first))
        assert (again.exit_code, again.stderr) == (0, "made nothing; 10 were there already\n")
        assert hms(other, "sql", "-e", "alter table shop.orders drop partition (ds = '2', hr = 10)").exit_code == 0
        again = hms(other, "import", "--exact", "--skip-existing", str(first))
        assert again.stderr == "made 1 partition; 9 were there already\n"


def test_an_export_goes_into_another_warehouse(gateway, shop, tmp_path):
    file = tmp_path / "shop.jsonl"
    assert hms(gateway, "export", "shop", "-o", str(file)).exit_code == 0
    database = json.loads(hms(gateway, "describe", "shop", "--format", "json").stdout)["locationUri"]
    warehouse = database.removesuffix("/shop.db")
    with GatewayServer(tmp_path / "other") as other:
        refused = hms(other, "import", str(file))
        assert (refused.exit_code, "--relocate OLD=NEW" in refused.stderr) == (1, True), refused.stderr
        assert hms(other, "import", "--relocate", "x", str(file)).exit_code == 2
        default = json.loads(hms(other, "describe", "default", "--format", "json").stdout)
        there = default["locationUri"]
        made = hms(other, "import", str(file), "--relocate", f"{warehouse}={there}")
        assert made.exit_code == 0, made.stderr
        found = [json.loads(line) for line in hms(other, "export", "shop").stdout.splitlines()[1:]]
        places = [each["value"]["sd"].get("location") for each in found if each["kind"] in ("table", "partition")]
        assert all(place is None or place.startswith(f"{there}/shop.db") for place in places), places


def test_an_export_goes_into_a_pipe_and_through_a_link(gateway, shop, tmp_path):
    expected = hms(gateway, "export", "shop").stdout
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.write_text("before")
    link.symlink_to(file)
    assert hms(gateway, "export", "shop", "-o", str(link)).exit_code == 0
    assert (link.is_symlink(), file.read_text()) == (True, expected)
    os.mkfifo(pipe)
    read_end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert hms(gateway, "export", "shop", "-o", str(pipe)).exit_code == 0
        assert os.read(read_end, 65536).decode() == expected
        assert pipe.is_fifo()
    finally:
        os.close(read_end)


def test_without_exact_times_are_those_of_the_import(gateway, shop, tmp_path):
    text = hms(gateway, "export", "shop").stdout
    with GatewayServer(tmp_path / "other") as other:
        moved = text.replace(str(gateway.data_dir), str(other.data_dir))
        result = hms(other, "import", stdin=moved)
        assert result.exit_code == 0, result.stderr
        assert (other.data_dir / "warehouse" / "shop.db" / "orders").is_dir()
        assert hms(other, "ls", "shop.orders").stdout == hms(gateway, "ls", "shop.orders").stdout


def test_diff_names_what_differs(gateway, shop, tmp_path):
    file = tmp_path / "before.jsonl"
    assert hms(gateway, "export", "shop", "-o", str(file)).exit_code == 0
    change = """
        drop view shop.recent; alter table shop.orders drop partition (ds = '2');
        alter table shop.orders add partition (ds = '3', hr = 1);
        alter database shop set dbproperties ('a' = 'changed');
    """
    assert hms(gateway, "sql", "-e", change).exit_code == 0
    # The other databases of the gateway are not in the export.
    result = hms(gateway, "diff", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        '~ database shop parameters.a: "b" -> "changed"',
        "- partition shop.orders/ds=2/hr=10",
        "+ partition shop.orders/ds=3/hr=1",
        "- table shop.recent",
    ]
    found = hms(gateway, "diff", "--json", "--only", "shop.orders", str(file)).stdout
    assert [json.loads(line)["sign"] for line in found.splitlines()] == ["-", "+"]
    rows = hms(gateway, "diff", "--format", "csv", str(file)).stdout.splitlines()
    assert rows[:3] == [
        "sign,kind,database,name,part,field,before,after",
        '~,database,shop,,,parameters.a,"""b""","""changed"""',
        "-,partition,shop,orders,ds=2/hr=10,,,",
    ]
    assert hms(gateway, "diff", "--only", "shop", "--ignore", "parameters.*", str(file)).stdout.count("~") == 0


def test_diff_compares_what_all_exports_hold(gateway, shop, tmp_path):
    files = {name: str(tmp_path / f"{name or 'all'}.jsonl") for name in ("", "shop", "shop.orders", "default")}
    for name, file in files.items():
        assert hms(gateway, "export", *filter(None, [name]), "-o", file).exit_code == 0
    assert hms(gateway, "sql", "-e", "drop table shop.items").exit_code == 0
    assert hms(gateway, "export", "-o", files[""]).exit_code == 0
    for before, after, found in (
        (files["shop"], files[""], "- table shop.items\n- primary key shop.items\n- foreign key shop.orders\n"),
        (files["shop.orders"], files[""], "- foreign key shop.orders\n"),
        (files["shop.orders"], files["shop"], ""),
        (files["shop"], files["shop"], ""),
    ):
        assert hms(gateway, "diff", before, after).stdout == found
    result = hms(gateway, "diff", files["shop"], files["default"])
    assert result.exit_code == 2
    assert "shop.jsonl holds shop and" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is not an export"),
        ('{"format": "hms-gateway export", "version": 2}', "has version 2"),
        ('{"format": "hms-gateway export", "version": 1}\n{"kind"', ":2 is not a record"),
        ('{"format": "hms-gateway export", "version": 1}\n{"kind": "x", "database": "d", "name": "", "part": "", '
         '"value": 1}', "its kind is 'x'"),
        ('{"format": "hms-gateway export", "version": 1}\n{"kind": "table", "database": "d", "name": "t", "part": "", '
         '"value": {"tableNam": "t"}}', "did you mean tableName"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_export_is_refused(gateway, tmp_path, text, expected):
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    result = hms(gateway, "import", str(file))
    assert result.exit_code == 2
    assert expected in result.stderr


def test_an_export_that_was_sorted_otherwise_is_refused(gateway, shop, tmp_path):
    lines = hms(gateway, "export", "shop").stdout.splitlines(keepends=True)
    file = tmp_path / "x.jsonl"
    file.write_text("".join([lines[0], *reversed(lines[1:])]))
    result = hms(gateway, "diff", str(file))
    assert result.exit_code == 2
    assert "is not in order" in result.stderr


def test_differences_are_found_without_keeping_a_side():
    def many(count):
        return (Record("table", "d", f"t{number:06}", "", {"n": number}) for number in range(count))

    assert [found.record.name for found in differences(many(2_000), many(2_002))] == ["t002000", "t002001"]


def test_tail_shows_the_last_events_and_those_of_one_table(gateway, shop):
    lines = hms(gateway, "tail", "--no-follow", "-n", "2").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["CREATE_TABLE", "CREATE_FUNCTION"]
    found = hms(gateway, "tail", "--no-follow", "--since", "0", "--json", "shop.items").stdout.splitlines()
    events = [json.loads(line) for line in found]
    assert {event["tableName"] for event in events} == {"items"}
    assert isinstance(events[0]["message"], dict)


def test_tail_of_what_does_not_exist_is_an_error(gateway):
    for name, text in (("nowhere", "database nowhere does not exist"), ("default.nothing", "default.nothing does not")):
        result = hms(gateway, "tail", "--no-follow", name)
        assert (result.exit_code, text in result.stderr) == (1, True)
    assert hms(gateway, "tail", "--no-follow", "--since", "0", "nowhere").exit_code == 0


def test_what_does_not_exist_is_said_in_words_of_the_command_line(gateway):
    assert "hms-gateway ls lists those that do" in hms(gateway, "ls", "nowhere").stderr
    assert "hms-gateway ls default lists those that do" in hms(gateway, "ls", "default.nothing").stderr


def test_tail_follows(gateway, shop, client):
    begin = client.call("get_current_notificationEventId").eventId
    calls = []

    def pause(seconds):
        calls.append(seconds)
        with MetastoreClient(gateway.url, (USER, PASSWORD), verify=False) as other:
            other.call("drop_function", "shop", "f")

    found = list(itertools.islice(events_after(client, begin, follows=True, pause=pause), 1))
    assert [event.eventType for event in found] == ["DROP_FUNCTION"]
    assert len(calls) == 1
