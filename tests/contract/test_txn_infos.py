"""What get_open_txns and get_open_txns_info tell is what is stored about transactions, on every database."""

from hms_gateway.rpc.structs import TxnInfo, TxnState, TxnType
from hms_gateway.storage.writing.store import SqlStore
from hms_gateway.txn.ports.txn import Client, TxnSnapshot, TxnWork
from hms_gateway.txn.rules.locks import TxnId
from hms_gateway.txn.rules.transactions import Txn, TxnStatus, Unfinished
from hms_gateway.txn.services.locks import LockService
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService


def info(txn: Txn) -> TxnInfo:
    return TxnInfo(
        id=txn.txn_id,
        state=TxnState.OPEN if txn.state is TxnStatus.OPEN else TxnState.ABORTED,
        user=txn.user,
        hostname=txn.hostname,
        agentInfo=txn.agent_info,
        metaInfo=txn.reason,
        startedTime=txn.started_ms,
        lastHeartbeatTime=txn.last_heartbeat_ms,
    )


def test_lists_of_transactions_are_their_values(store: SqlStore) -> None:
    settings = TxnSettings()
    transactions = TransactionService(store, LockService(store, settings), settings)
    for type in TxnType:
        transactions.open(4, Client('an"n', f"☃{type}", "\x01agent"), type).result()
    transactions.commit(2, checks_writes=True).result()
    transactions.abort(3).result()
    store.write(TxnWork(lambda txns: txns.abort_txns([TxnId(5)], "lost\n")))

    def work(snapshot: TxnSnapshot) -> tuple[list[Txn], list[TxnInfo], list[Unfinished]]:
        return snapshot.txns.unfinished_txns(), snapshot.txns.txn_infos(), snapshot.txns.unfinished()

    txns, infos, unfinished = store.read(work)
    assert [txn.txn_id for txn in txns] == [number for number in range(1, 4 * len(TxnType) + 1) if number != 2]
    assert {txn.type for txn in txns} == set(TxnType)
    assert infos == [info(txn) for txn in txns]
    assert unfinished == [(txn.txn_id, txn.state is TxnStatus.OPEN, txn.type) for txn in txns]
    assert [one.type for one in unfinished] == [txn.type for txn in txns]
    assert transactions.open_txn_infos() == (4 * len(TxnType), infos)
