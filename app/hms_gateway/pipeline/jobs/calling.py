"""Calls of a job: repeated while the gateway is away, with a key so that each counts once, under the run's lease."""

import random
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from hms_gateway.client.metastore_client import Busy, ClientError, MetastoreClient, NotReached
from hms_gateway.pipeline.connection import Client, Connection
from hms_gateway.pipeline.errors import CallsRefused, GatewayAway, LeaseLost
from hms_gateway.rpc.idl.method_facts import changes_something
from hms_gateway.rpc.structs import InvalidOperationException, MetaException

LEASE_HEADER: Final = "x-hms-lease-id"
_FIRST_PAUSE_SECONDS: Final = 0.2
_PAUSE_SECONDS_MAX: Final = 10.0

_encode = msgspec.msgpack.Encoder(order="sorted", enc_hook=str).encode


@dataclass
class PatientClient:
    """A client whose calls wait for a gateway that is away. Use it as a context manager.

    A changing call carries a key made of `scope`, its place among the calls of this client, the lease, and what it
    says: a task that is repeated sends the same keys, and the gateway does each call once. The lease is part of the
    key since a gateway repeats refusals, too: what a lost lease was refused must not be the answer to the next one.

    Raises the metastore's declared exceptions, and JobFailed: LeaseLost, GatewayAway, CallsRefused.
    """

    connection: Connection
    patience_seconds: float
    scope: str = field(default_factory=lambda: uuid.uuid4().hex)
    lease_id: int | None = None
    sleep: Callable[[float], None] = time.sleep
    _client: Client | None = field(default=None, init=False)
    _changes: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def begin(self, scope: str) -> Self:
        """The calls that follow are those of `scope`, such as a batch."""
        self.scope, self._changes = scope, 0
        return self

    def call(self, name: str, /, *arguments: Any, **named: Any) -> Any:
        """Calls a method like `MetastoreClient.call`, about the catalog of the connection."""
        key = self._key(name, arguments, named) if changes_something(name) else None
        return self._patiently(lambda: self._called(name, arguments, named, key))

    def _called(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any], key: str | None) -> Any:
        client = self._client = self._client or self.connection.open(self._headers())
        if isinstance(client, MetastoreClient):
            return client.call(name, *arguments, idempotency_key=key, **named)
        return client.call(name, *arguments, **named)

    def _headers(self) -> dict[str, str]:
        return {} if self.lease_id is None else {LEASE_HEADER: str(self.lease_id)}

    def _patiently(self, call: Callable[[], Any]) -> Any:
        begun, pause = time.monotonic(), _FIRST_PAUSE_SECONDS
        while True:
            try:
                return call()
            except (InvalidOperationException, MetaException) as refused:
                if _is_about_the_lease(refused.message or "", self.lease_id):
                    raise LeaseLost(f"lease {self.lease_id} is lost: {refused.message}", "resume the run") from refused
                raise
            except (NotReached, Busy) as away:
                with suppress(Exception):
                    self.close()
                waited = time.monotonic() - begun
                if waited >= self.patience_seconds:
                    if not self.patience_seconds:
                        raise GatewayAway(str(away), "look at --url, and whether the gateway runs") from away
                    text = f"{self.connection.url} was away for {waited:.0f} s: {away}"
                    raise GatewayAway(text, "resume the run when it is back, or raise --patience") from away
                asked = away.retry_after_seconds if isinstance(away, Busy) else 0.0
                self.sleep(min(max(pause, asked) * random.uniform(0.8, 1.2), self.patience_seconds))
                pause = min(2 * pause, _PAUSE_SECONDS_MAX)
            except ClientError as refused:
                hint = refused.hint.replace("--", self.connection.option_prefix)
                raise CallsRefused(str(refused), hint) from refused

    def _key(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
        digest = sha256(f"{self.scope}\n{self._changes}\n{self.lease_id}\n{name}\n".encode())
        digest.update(_encode([arguments, named]))
        self._changes += 1
        return digest.hexdigest()


def _is_about_the_lease(text: str, lease_id: int | None) -> bool:
    return lease_id is not None and text.startswith(f"Refused: lease {lease_id} is not held")
