"""Methods on transactions and write ids."""

from app.handlers.locks import client
from app.metastore.errors import required
from app.rpc.call import Call
from app.structs import (
    HeartbeatRequest,
    MetaException,
    OpenTxnRequest,
    OpenTxnsResponse,
    TxnType,
)
from app.txn.transaction_service import TransactionService


class Transactions:
    def __init__(self, transactions: TransactionService) -> None:
        self._transactions = transactions

    def open_txns(self, call: Call, rqst: OpenTxnRequest) -> OpenTxnsResponse:
        request = required(rqst, "rqst")
        who = client(request.user, request.hostname, request.agentInfo)
        if request.replPolicy is not None:
            replication = (request.replPolicy, request.replSrcTxnIds or [])
            return OpenTxnsResponse(list(self._transactions.open(0, who, replication=replication)))
        return OpenTxnsResponse(list(self._transactions.open(request.num_txns or 0, who, _txn_type(request.txn_type))))

    def heartbeat(self, call: Call, ids: HeartbeatRequest) -> None:
        request = required(ids, "ids")
        self._transactions.heartbeat(request.lockid or 0, request.txnid or 0)


def _txn_type(number: int | None) -> TxnType:
    try:
        return TxnType(number or 0)
    except ValueError:
        raise MetaException(f"unknown transaction type {number}") from None
