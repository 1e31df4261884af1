"""Locks of changes that move files first are given back, whatever happens."""

import threading
from pathlib import Path

import pytest

from hms_gateway.metastore.changes.implicit_locks import held_for_files
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.presented import LockCaller, locking
from hms_gateway.storage.writing.store import open_store
from hms_gateway.txn.ports.txn import LockFilter
from hms_gateway.txn.rules.names import Target


def test_a_lock_that_no_thread_can_keep_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"sqlite:///{tmp_path}/one.db", SystemClock(), Limits())

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    try:
        with monkeypatch.context() as patched, locking(LockCaller("ann", "10.0.0.1", 1_000)):
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="new thread"):
                held_for_files(store, [Target("d", "t")]).__enter__()
        assert store.read(lambda snapshot: snapshot.txns.shown_locks(LockFilter())) == []
    finally:
        store.close()
