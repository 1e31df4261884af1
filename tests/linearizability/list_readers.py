r"""Writers and readers of a transactional table in processes of their own, over any number of gateways.

A journal has what each has seen.

    python -m tests.linearizability.list_readers FOLDER URL URL … --user U --password P \
        --writers 4 --readers 12 --commits 6

Every commit adds two partitions under one write id. A program of its own, so that it can fork before it has threads.
"""

import argparse
import json
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, Final

from hms_gateway import MetastoreClient, MetastoreTransaction
from hms_gateway.rpc.structs import CommitTxnRequest, Partition, SerDeInfo, StorageDescriptor
from hms_gateway.txn.rules.write_ids import ValidIds, parse_valid_write_ids, valid_write_ids_text
from tests.support.server import trusting

TABLE: Final = ("default", "t")
READS_OF_EACH: Final = 5
ABORTS: Final = 0.15

_fork = get_context("fork")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--user", required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--writers", type=int, required=True)
    parser.add_argument("--readers", type=int, required=True)
    parser.add_argument("--commits", type=int, required=True)
    options = parser.parse_args()
    readers = [_fork.Process(target=_read, args=(options, number)) for number in range(options.readers)]
    writers = [_fork.Process(target=_write, args=(options, number)) for number in range(options.writers)]
    for process in (*readers, *writers):
        process.start()
    for process in writers:
        process.join()
    (options.folder / "over").touch()
    for process in readers:
        process.join()
    return sum(process.exitcode != 0 for process in (*readers, *writers))


def _client(options: argparse.Namespace, number: int) -> MetastoreClient:
    return MetastoreClient(options.urls[number % len(options.urls)], (options.user, options.password), trusting())


def _write(options: argparse.Namespace, number: int) -> None:
    dice = Random(number)
    with _client(options, number) as metastore, (options.folder / f"writer-{number}.journal").open("w") as journal:
        for count in range(options.commits):
            values = [f"{number}-{count}-{part}" for part in "ab"]
            begun = time.monotonic()
            txn = metastore.transaction()
            txn.__enter__()
            write_id = txn.allocate("default.t")
            for value in values:
                _add(txn, value)
            is_aborted = dice.random() < ABORTS
            if is_aborted:
                txn.abort()
            else:
                # What it says about its writes may be wrong.
                metastore.call(
                    "commit_txn", CommitTxnRequest(txn.txn_id, writemanaged=dice.choice([None, True, False]))
                )
            record = {"begun": begun, "ended": time.monotonic(), "write_id": write_id, "names": _names(values)}
            _note(journal, "abort" if is_aborted else "commit", record)


def _read(options: argparse.Namespace, number: int) -> None:
    with _client(options, number) as metastore, (options.folder / f"reader-{number}.journal").open("w") as journal:
        while not (options.folder / "over").exists():
            begun = time.monotonic()
            with metastore.transaction() as txn:
                (seen,) = txn.valid_write_ids("default.t")
                for _ in range(READS_OF_EACH):
                    names = txn.call("get_partition_names", *TABLE, -1)
                    record = {"begun": begun, "ended": time.monotonic(), "list": valid_write_ids_text(seen)}
                    _note(journal, "read", {**record, "names": names})


def _add(txn: MetastoreTransaction, value: str) -> None:
    txn.call("add_partition", Partition([value], *TABLE, sd=StorageDescriptor(cols=[], serdeInfo=SerDeInfo())))


def _names(values: list[str]) -> list[str]:
    return [f"ds={value}" for value in values]


def _note(journal: Any, kind: str, record: dict[str, Any]) -> None:
    journal.write(json.dumps({"kind": kind, **record}) + "\n")


def records(folder: Path) -> list[dict[str, Any]]:
    """All that the journals have."""
    return [json.loads(line) for path in sorted(folder.glob("*.journal")) for line in path.read_text().splitlines()]


def violations(history: list[dict[str, Any]]) -> list[str]:
    """What a reader did not see and had to, or saw and could not.

    A list taken after a commit has its write id; an answer has all that was done under the write ids of the list; and
    nothing is in an answer that its writer had not begun.
    """
    changes = [record for record in history if record["kind"] != "read"]
    commits = [record for record in changes if record["kind"] == "commit"]
    writers = {name: record for record in changes for name in record["names"]}
    found = []
    for read in (record for record in history if record["kind"] == "read"):
        ids, names = parse_valid_write_ids(read["list"]).ids, set(read["names"])
        found += [f"{read['list']} lacks {one['write_id']}" for one in commits if _is_missed(one, read, ids)]
        found += [
            f"{sorted(names)} under {read['list']} lacks {one['names']}"
            for one in commits
            if ids.is_valid(one["write_id"]) and not names.issuperset(one["names"])
        ]
        found += [f"{name} was read before it was written" for name in names if writers[name]["begun"] > read["ended"]]
    return found


def _is_missed(commit: dict[str, Any], read: dict[str, Any], ids: ValidIds) -> bool:
    return commit["ended"] < read["begun"] and not ids.is_valid(commit["write_id"])


if __name__ == "__main__":
    sys.exit(main())
