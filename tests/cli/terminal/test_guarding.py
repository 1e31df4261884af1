"""Commands on a terminal, about objects whose names and comments a terminal would obey."""

import pytest

from hms_gateway.rpc.structs import FieldSchema, LeaseObject, SerDeInfo, StorageDescriptor, Table
from tests.support.terminal import on_terminal

pytestmark = pytest.mark.slow

PLANTED = "\x1b]52;c;eA==\x07\x9b2J\u202e"
COMMANDS = [
    ("call", "get_table", "default", "planted"),
    ("call", "--json", "get_table", "default", "planted"),
    ("call", "get_create_text", "default", "planted"),
    ("sql", "-e", "show create table planted"),
    ("sql", "-e", "describe planted"),
    ("describe", "default.planted"),
    ("ls", "-l", "default"),
    ("leases", "show"),
    ("tail", "--no-follow", "--json"),
]


@pytest.fixture
def planted(client):
    sd = StorageDescriptor(cols=[FieldSchema("a", "int", PLANTED)], serdeInfo=SerDeInfo(parameters={}))
    view = Table(
        tableName="planted",
        dbName="default",
        owner=PLANTED,
        tableType="VIRTUAL_VIEW",
        sd=sd,
        viewOriginalText=f"SELECT '{PLANTED}' a",
        viewExpandedText=PLANTED,
        parameters={"comment": PLANTED},
        partitionKeys=[],
    )
    client.call("create_table", view)
    lease_id = client.call("grab_lease", [LeaseObject("default", "planted", None, "x")], 60, 0)
    yield
    client.call("drop_lease", lease_id, [])
    client.call("drop_table", "default", "planted", False)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_terminal_is_sent_no_sequences_of_others(gateway, planted, words):
    environment = {"HMS_GATEWAY_URL": gateway.url, "HMS_GATEWAY_PASSWORD": gateway.password, "PAGER": "cat"}
    with on_terminal(*words, "-k", environment=environment) as terminal:
        assert terminal.wait() == 0
        text = terminal.text
    assert text
    assert not any(one in text for one in "\x1b\x07\x9b\u202e"), ascii(text)
