"""The client of a session: opened with the first call, and opened anew after its connection broke."""

import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

from hms_gateway.cli.calls.calling import open_client
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.client.metastore_client import MetastoreClient, NotReached
from hms_gateway.rpc.idl.method_facts import changes_something

RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 4.0)


class ReconnectingClient:
    """Repeats what only reads, and what was not sent; `say` gets a line for the person at the terminal.

    A change whose answer is lost may have been made, so it is not repeated: NotReached says so.
    """

    def __init__(
        self, target: CallTarget, say: Callable[[str], None], pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._target = target
        self._say = say
        self._pause = pause
        self._client: MetastoreClient | None = None
        self._has_answered = False

    def call(self, name: str, /, *arguments: Any, **named: Any) -> Any:
        """As `MetastoreClient.call`."""
        for seconds in (*RETRY_SECONDS, None):
            if self._client is None:
                self._client = open_client(self._target)
            try:
                answer = self._client.call(name, *arguments, **named)
                self._has_answered = True
                return answer
            except NotReached as error:
                self.close()
                if error.was_sent and changes_something(name):
                    text = f"{error}; it is not known whether {name} was done, so look before you repeat it"
                    raise NotReached(text, error.hint, was_sent=True) from error
                if seconds is None or not error.may_pass or not self._has_answered:
                    raise
                self._say(f"connection lost ({error}); trying again in {seconds:g} s")
                self._pause(seconds)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close()
