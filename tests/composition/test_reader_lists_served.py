"""Readers with lists of write ids at whole gateways: answered without the database, and while it is away."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from hms_gateway import MetastoreClient, MetastoreTransaction
from hms_gateway.rpc.structs import (
    GetPartitionNamesPsRequest,
    GetPartitionsPsWithAuthRequest,
    GetTableRequest,
    MetaException,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    TableStatsRequest,
)
from hms_gateway.storage.migrations.revisions import migrate
from hms_gateway.txn.rules.write_ids import valid_write_ids_text
from tests.support.catalog import columns, transactional_table
from tests.support.patience import until
from tests.support.private_postgres import PrivatePostgres
from tests.support.sample import sample
from tests.support.server import API_PATH, GatewayServer, trusting

READS = 50
COUNTED_READS = 1_000
# The database may be slow for a moment.
MISSED_MAX = 100
WRITERS, READERS = 2, 4
COMMITS, READS_OF_EACH = sample(12, of=30), 5
TABLE = ("default", "t")


@pytest.fixture
def gateways(migrated_postgres_database: str, tmp_path: Path) -> Iterator[tuple[GatewayServer, GatewayServer]]:
    with two_gateways(migrated_postgres_database, tmp_path) as both:
        yield both


@contextmanager
def two_gateways(database: str, folder: Path) -> Iterator[tuple[GatewayServer, GatewayServer]]:
    one, other = (
        GatewayServer(
            folder / name,
            database=database,
            settings={"workers": 1, "warehouse_dir": f"file:{folder}/warehouse"},
        )
        for name in ("one", "other")
    )
    with one, other:
        yield one, other


def client(gateway: GatewayServer) -> MetastoreClient:
    return MetastoreClient(gateway.url, (gateway.user, gateway.password), trusting())


def create(metastore: MetastoreClient) -> None:
    metastore.call("create_table", transactional_table(keys=columns("ds string")))


def add(txn: MetastoreTransaction, value: str) -> None:
    txn.allocate("default.t")
    txn.call("add_partition", Partition([value], *TABLE, sd=StorageDescriptor(cols=[], serdeInfo=SerDeInfo())))


def list_text(txn: MetastoreTransaction) -> str:
    (seen,) = txn.valid_write_ids("default.t")
    return valid_write_ids_text(seen)


def names(txn: MetastoreTransaction) -> list[str]:
    found: list[str] = txn.call("get_partition_names", *TABLE, -1)
    return found


def hits(gateway: GatewayServer) -> float:
    answer = httpx.get(
        f"https://127.0.0.1:{gateway.port}/metrics", verify=trusting(), auth=(gateway.user, gateway.password)
    )
    (line,) = (line for line in answer.text.splitlines() if line.startswith("hms_gateway_cache_hits_total "))
    return float(line.split()[1])


def follow(gateway: GatewayServer, metastore: MetastoreClient) -> None:
    """Have the cache follow the log to its end: only then it has the answer to a call without a list."""
    until_hit(gateway, lambda: metastore.call("get_all_databases"))


def until_hit(gateway: GatewayServer, read: Callable[[], object], count: int = 1) -> None:
    """Read until the cache has all the answers: it has none while the database is slow to say what is newest."""

    def is_hit() -> bool:
        before = hits(gateway)
        read()
        return hits(gateway) - before >= count

    until(is_hit)


def test_the_scenario_of_two_transactions_over_two_gateways(gateways: tuple[GatewayServer, GatewayServer]) -> None:
    one, other = gateways
    with client(one) as writer, client(other) as reader:
        create(writer)
        with reader.transaction() as early:
            assert names(early) == []
            with writer.transaction() as changing:
                add(changing, "1")
                # A writer sees its own change at once, also where it asks the other server.
                assert names(changing) == ["ds=1"]
                with reader.transaction() as during:
                    names(during)
            # It was committed at the first server; who begins now sees it at the second.
            with reader.transaction() as late:
                assert names(late) == ["ds=1"]
                assert names(late) == ["ds=1"]
            names(early)


def _by_header(metastore: MetastoreClient, txn: MetastoreTransaction) -> None:
    assert names(txn) == []


def _by_request_of_hive_3(metastore: MetastoreClient, txn: MetastoreTransaction) -> None:
    """Without the table's id, for which it has no field."""
    request = GetTableRequest(*TABLE, validWriteIdList=list_text(txn))
    assert metastore.call("get_table_req", request).table.tableName == "t"


def _of_statistics(metastore: MetastoreClient, txn: MetastoreTransaction) -> None:
    request = TableStatsRequest(*TABLE, ["a"], validWriteIdList=list_text(txn))
    assert metastore.call("get_table_statistics_req", request).tableStats == []


@pytest.mark.parametrize("read", sample([_by_header], of=[_by_header, _by_request_of_hive_3, _of_statistics]))
def test_the_database_counts_no_statement_for_a_hit(
    migrated_postgres_database: str,
    postgres_server: PrivatePostgres,
    tmp_path: Path,
    read: Callable[[MetastoreClient, MetastoreTransaction], None],
) -> None:
    """It writes all that it is asked into its log: followers of the log of events ask it once a second, hits do not."""
    name = migrated_postgres_database.partition("@/")[2].partition("?")[0]
    with psycopg.connect(migrated_postgres_database.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")  # type: ignore[arg-type]
    settings = {"workers": 1, "warehouse_dir": f"file:{tmp_path}/warehouse"}
    with (
        GatewayServer(tmp_path / "one", database=migrated_postgres_database, settings=settings) as one,
        client(one) as metastore,
    ):
        create(metastore)
        reading = metastore.transaction().__enter__()
        follow(one, metastore)
        for _ in range(2):
            read(metastore, reading)
        read_before, hits_before, begun = postgres_server.log_text(), hits(one), time.monotonic()
        for _ in range(COUNTED_READS):
            read(metastore, reading)
        missed = COUNTED_READS - (hits(one) - hits_before)
    seconds = time.monotonic() - begun
    statements = postgres_server.log_text()[len(read_before) :].count("LOG:  execute")
    statements += postgres_server.log_text()[len(read_before) :].count("LOG:  statement:")
    assert read_before.count("LOG:  execute") > 10
    assert missed < MISSED_MAX
    # Each question of a follower is up to four statements; what the gateway says of itself and what stopping costs is
    # among them, and so is the answer to a read that was no hit.
    assert statements <= 4 * (seconds + 10) + 10 * missed
    assert statements - 4 * seconds < COUNTED_READS


def test_a_rename_elsewhere_reaches_a_gateway_whose_readers_all_send_lists(
    gateways: tuple[GatewayServer, GatewayServer],
) -> None:
    one, other = gateways
    with client(one) as writer, client(other) as reader:
        create(writer)
        text = list_text(reader.transaction().__enter__())
        request = GetTableRequest(*TABLE, validWriteIdList=text)
        follow(other, reader)
        for _ in range(2):
            table = reader.call("get_table_req", request).table
        table.tableName = "u"
        writer.call("alter_table", *TABLE, table)

        def is_gone() -> bool:
            try:
                reader.call("get_table_req", request)
            except NoSuchObjectException:
                return True
            return False

        until(is_gone)


def test_required_lists_that_are_too_long_to_compare_bring_nothing_to_others(tmp_path: Path) -> None:
    settings = {"workers": 1, "metastore.require_write_id_lists": True, "warehouse_dir": f"file:{tmp_path}/warehouse"}
    with GatewayServer(tmp_path / "one", settings=settings) as one, client(one) as metastore:
        create(metastore)
        header = {"x-hms-valid-write-ids": f"default.t:20000:1:{','.join(map(str, range(1, 10_002)))}:"}
        with MetastoreClient(one.url, (one.user, one.password), trusting(), headers=header) as listed:
            for _ in range(2):
                assert listed.call("get_table", *TABLE).tableName == "t"
        for _ in range(2):
            with pytest.raises(MetaException, match="read without a list of write ids"):
                metastore.call("get_table", *TABLE)


def test_hits_put_no_statement_and_go_on_while_the_database_is_away(
    own_postgres: PrivatePostgres, tmp_path: Path
) -> None:
    migrate(own_postgres.url())
    with two_gateways(own_postgres.url(), tmp_path) as (one, _), client(one) as metastore:
        create(metastore)
        txn = metastore.transaction().__enter__()
        add(txn, "1")
        txn.commit()
        reading = metastore.transaction().__enter__()
        # An event of the table that is applied later takes the answer away.
        follow(one, metastore)
        assert names(reading) == ["ds=1"]
        until_hit(one, lambda: names(reading))
        own_postgres.stop()
        try:
            for _ in range(READS):
                assert names(reading) == ["ds=1"]
            request = httpx.post(
                one.url,
                content=b'[1,"get_partition_names",1,1,{"1":{"str":"default"},"2":{"str":"t"},"3":{"i16":-1}}]',
                auth=(one.user, one.password),
                verify=trusting(),
            )
            assert request.status_code == 503
            assert "retry-after" in request.headers
        finally:
            own_postgres.start()
        assert names(reading) == ["ds=1"]


@pytest.mark.parametrize("path", sample(["/metastore"], of=["", "/metastore"]))
def test_two_transactions_of_a_client_of_hive_4(gateways: tuple[GatewayServer, GatewayServer], path: str) -> None:
    """Its requests carry the list and the table's id; what they name is in Hive 4's IDL."""
    one, other = gateways

    def reads(metastore: MetastoreClient, txn: MetastoreTransaction) -> list[list[str]]:
        (seen,) = txn.valid_write_ids("default.t")
        fields = {"validWriteIdList": valid_write_ids_text(seen), "id": table_id}
        of_table = GetTableRequest(*TABLE, catName="hive", **fields)
        of_partitions = GetPartitionsPsWithAuthRequest("hive", *TABLE, partVals=[""], maxParts=-1, **fields)
        of_names = GetPartitionNamesPsRequest("hive", *TABLE, partValues=[""], maxParts=-1, **fields)
        found = []
        for _ in range(2):
            assert metastore.call("get_table_req", of_table).table.id == table_id
            partitions = metastore.call("get_partitions_ps_with_auth_req", of_partitions).partitions
            found.append([f"ds={partition.values[0]}" for partition in partitions])
            found.append(metastore.call("get_partition_names_ps_req", of_names).names)
        return found

    urls = [gateway.url.replace(API_PATH, path or API_PATH) for gateway in gateways]
    credentials = (one.user, one.password)
    with (
        MetastoreClient(urls[0], credentials, trusting()) as writer,
        MetastoreClient(urls[1], credentials, trusting()) as reader,
    ):
        create(writer)
        table_id = writer.call("get_table_req", GetTableRequest(*TABLE, catName="hive")).table.id
        with reader.transaction() as early:
            assert reads(reader, early) == [[]] * 4
            with writer.transaction() as changing:
                add(changing, "1")
            with reader.transaction() as late:
                follow(other, reader)
                assert reads(reader, late) == [["ds=1"]] * 4
                until_hit(other, lambda: reads(reader, late), 6)


def test_a_header_that_cannot_be_read_is_400(tmp_path: Path) -> None:
    with GatewayServer(tmp_path / "one") as one:
        for sent in ("nonsense", "default.t:1:1::;17"):
            answer = httpx.post(
                one.url,
                content=b'[1,"get_table",1,1,{"1":{"str":"default"},"2":{"str":"t"}}]',
                headers={"x-hms-valid-write-ids": sent},
                auth=(one.user, one.password),
                verify=trusting(),
            )
            assert answer.status_code == 400
            assert "x-hms-valid-write-ids" in answer.text


def test_a_reader_that_begins_after_a_commit_sees_it_at_each_gateway(
    gateways: tuple[GatewayServer, GatewayServer],
) -> None:
    """Many clients at once: what had been committed when a reader began is in all that it reads."""
    committed: list[str] = []
    missing: list[tuple[set[str], list[str]]] = []
    is_over = threading.Event()

    def write(number: int) -> None:
        with client(gateways[number % 2]) as metastore:
            for count in range(COMMITS):
                value = f"{number}-{count}"
                with metastore.transaction() as txn:
                    add(txn, value)
                committed.append(f"ds={value}")

    def read(number: int) -> None:
        with client(gateways[number % 2]) as metastore:
            while not is_over.is_set():
                expected = set(committed)
                with metastore.transaction() as txn:
                    for _ in range(READS_OF_EACH):
                        found = names(txn)
                        if not expected <= set(found):
                            missing.append((expected - set(found), found))

    with client(gateways[0]) as metastore:
        create(metastore)
    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        readers = [pool.submit(read, number) for number in range(READERS)]
        try:
            for writing in [pool.submit(write, number) for number in range(WRITERS)]:
                writing.result()
        finally:
            is_over.set()
        for reading in readers:
            reading.result()
    assert missing == []
    assert len(committed) == WRITERS * COMMITS
    assert all(hits(gateway) > READERS for gateway in gateways)


def test_an_answer_that_the_client_has_is_not_sent_again(gateways: tuple[GatewayServer, GatewayServer]) -> None:
    def ask(gateway: GatewayServer, held: str | None, method: str = "get_database") -> httpx.Response:
        return httpx.post(
            gateway.url,
            content=f'[1,"{method}",1,1,{{"1":{{"str":"default"}}}}]',
            headers={} if held is None else {"if-none-match": held},
            auth=(gateway.user, gateway.password),
            verify=trusting(),
        )

    one, other = gateways
    assert "etag" not in ask(one, None).headers
    first = ask(one, '"none"')
    tag = first.headers["etag"]
    assert (first.status_code, first.content) == (200, ask(one, None).content)
    # At another replica, too, and out of the cache as well as for the first time.
    for gateway in (one, other, other):
        again = ask(gateway, f'"other", W/{tag}')
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    with client(one) as metastore:
        changed = metastore.call("get_database", "default")
        changed.parameters = {"mark": "another"}
        metastore.call("alter_database", "default", changed)
    changed_answer = ask(other, tag)
    assert changed_answer.status_code == 200
    assert b"another" in changed_answer.content
    # What changes something, or fails, has no tag.
    assert "etag" not in ask(one, tag, "get_type").headers
