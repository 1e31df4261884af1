"""Keeps the locks of a shell alive while it is open."""

import contextlib
import threading
from typing import Final

from hms_gateway.cli.calls.calling import open_client
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.hiveql.running.shell_state import ShellState
from hms_gateway.client.metastore_client import ClientError
from hms_gateway.rpc.structs import HeartbeatRequest, ThriftException
from hms_gateway.rpc.wire import ApplicationError

HEARTBEAT_SECONDS: Final = 60.0


class LockKeeper:
    """Sends heartbeats from a thread with a client of its own. What is lost is noticed by its next use."""

    def __init__(self, state: ShellState, target: CallTarget, every_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._state = state
        self._target = target
        self._every_seconds = every_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="locks of the shell", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _keep(self) -> None:
        while not self._stopping.wait(self._every_seconds):
            if self._state.lock_ids:
                with contextlib.suppress(ClientError), open_client(self._target) as client:
                    for lock_id in list(self._state.lock_ids):
                        with contextlib.suppress(ThriftException, ApplicationError):
                            client.call("heartbeat", HeartbeatRequest(lockid=lock_id))
