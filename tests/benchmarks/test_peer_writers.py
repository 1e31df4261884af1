"""What the benchmark's writers send is answered without a refusal, and changes something each time."""

from collections.abc import Iterator

import pytest

from benchmarks.peer.caller import Address, Caller
from benchmarks.peer.content import DATABASE, database
from benchmarks.peer.load import LoadProcess
from benchmarks.peer.measuring import Loaded
from benchmarks.peer.results import WRITING_GOALS
from benchmarks.peer.sides import PORT, Side
from benchmarks.peer.speech import Binary
from benchmarks.peer.txns import open_and_commit
from benchmarks.peer.writers import ICEBERG, LOCK_UNLOCK, OPEN_COMMIT, READING_ALONE, READING_BESIDE, writers
from tests.support.sample import sample
from tests.support.server import GatewayServer, free_port

CLIENTS = 2
SECONDS = 0.2
OPERATIONS = {operation.name: operation for operation in writers([CLIENTS])}
WITHOUT_EVENTS = (OPEN_COMMIT, LOCK_UNLOCK, READING_ALONE, READING_BESIDE)


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    folder, port = tmp_path_factory.mktemp("peer-writers"), free_port()
    with GatewayServer(folder, settings={"thrift_port": port}) as gateway:
        warehouse = str(gateway.data_dir / "warehouse")
        made = Side(PORT, (Address(port, False),), Binary(), (gateway.pid,), (), warehouse, PORT)
        with made.caller() as caller:
            caller.call("create_database", database(warehouse, DATABASE))
        yield made


def loaded(side: Side, operation: Loaded, caller: Caller) -> int:
    scripts = operation.scripts(side, caller, operation.clients)
    before = newest_event(caller)
    with LoadProcess(side.addresses, side.speech, scripts, SECONDS, 0.01) as load:
        units = load.run().units
    made = newest_event(caller) - before
    assert made >= units or operation.name in WITHOUT_EVENTS
    return units


def newest_event(caller: Caller) -> int:
    number: int = caller.call("get_current_notificationEventId").eventId
    return number


@pytest.mark.parametrize("name", sample(list(OPERATIONS)[::3], of=list(OPERATIONS)))
def test_a_row_runs_and_runs_again(side: Side, name: str) -> None:
    operation = OPERATIONS[name]
    assert isinstance(operation, Loaded)
    with side.caller() as caller:
        assert loaded(side, operation, caller) > 0
        assert loaded(side, operation, caller) > 0


def test_a_commit_of_iceberg_depends_on_the_one_before(side: Side) -> None:
    operation = OPERATIONS[ICEBERG]
    assert isinstance(operation, Loaded)
    with side.caller() as caller:
        loaded(side, operation, caller)
        parameters = caller.call("get_table", DATABASE, "iceberg_00").parameters
    numbers = [parameters[key].rpartition("/")[2][:8] for key in ("previous_metadata_location", "metadata_location")]
    assert int(numbers[0]) + 1 == int(numbers[1])


def test_every_row_has_a_goal() -> None:
    assert OPERATIONS.keys() == WRITING_GOALS.keys()


def test_clients_are_shared_out_among_addresses(side: Side) -> None:
    with (
        side.caller() as caller,
        LoadProcess(side.addresses * 2, side.speech, open_and_commit(side, caller, CLIENTS), SECONDS, 0.01) as load,
    ):
        assert load.run().units > 0
