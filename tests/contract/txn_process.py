"""One of several processes that lock, write and commit on the same database; prints its history as JSON."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random

from hms_gateway.rpc.structs import LockState, LockType, ThriftException
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.writing.store import open_store
from hms_gateway.txn.ports.txn import Client
from hms_gateway.txn.rules.locks import NO_TXN, TxnId
from hms_gateway.txn.rules.transactions import TxnOperation
from hms_gateway.txn.services.locks import ComponentSpec, LockService, LockSpec
from hms_gateway.txn.services.settings import TxnSettings
from hms_gateway.txn.services.transactions import TransactionService
from hms_gateway.txn.services.write_ids import WriteIdService
from tests.txn.scenario import place_of

WHO = Client("u", "h", "a")


def main(url: str, seed: int, threads: int, rounds: int, register: str) -> None:
    """`register` is a file that only the holder of the exclusive lock writes: a lost update there is a broken lock."""
    store = open_store(url, SystemClock(), Limits(), 4)
    settings = TxnSettings()
    locks = LockService(store, settings)
    transactions = TransactionService(store, locks, settings)
    write_ids = WriteIdService(store, settings)

    def add_one() -> None:
        with open(register, "r+", encoding="ascii") as file:
            number = int(file.read())
            file.seek(0)
            file.write(f"{number + 1:08d}")

    def client(number: int) -> dict[str, list[int]]:
        random = Random(seed * 1000 + number)
        told: dict[str, list[int]] = {"txns": [], "locks": [], "writes": [], "held": [], "victims": []}
        for _ in range(rounds):
            answer = locks.lock(LockSpec([ComponentSpec(place_of("d.register"), LockType.EXCLUSIVE)], WHO)).result()
            told["locks"].append(answer.lock_id)
            while answer.state is LockState.WAITING:
                answer = locks.check_lock(answer.lock_id).result()
            add_one()
            told["held"].append(1)
            locks.unlock(answer.lock_id).result()
            (txn_id,) = transactions.open(1, WHO).result()
            told["txns"].append(txn_id)
            try:
                for table in random.sample(["d.a", "d.b", "d.c"], 2):
                    wanted = LockSpec(
                        [ComponentSpec(place_of(table), LockType.EXCLUSIVE)], WHO, TxnId(txn_id or NO_TXN)
                    )
                    answer = locks.lock(wanted).result()
                    while answer.state is LockState.WAITING:
                        answer = locks.check_lock(answer.lock_id).result()
                told["writes"].append(write_ids.allocate(place_of("d.a"), [txn_id])[txn_id])
                transactions.add_writes(txn_id, [place_of("d.a")], TxnOperation.INSERT, None)
                transactions.commit(txn_id, checks_writes=True).result()
            except ThriftException:
                told["victims"].append(txn_id)
        return told

    with ThreadPoolExecutor(threads) as pool:
        print(json.dumps(list(pool.map(client, range(threads)))))
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
