"""Who may use a Thrift port without a password: by default the processes of the account that runs it."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence

import structlog

from hms_gateway.bridge.server.peer_accounts import Accounts, Ends, ProcAccounts, find_accounts
from hms_gateway.bridge.server.serving import BridgeOptions
from hms_gateway.bridge.thrift.sasl import SaslPolicy

# One line for the connections that are refused within so many seconds.
LOG_EVERY_SECONDS = 10.0

_WAYS_IN = (
    "run the client under the account of this process, let clients log in (thrift_sasl, with the bridge --sasl), "
    "or let every account of this machine in (--thrift-open, with the bridge --open)"
)
_log = structlog.get_logger("hms_gateway.bridge")


class Admission:
    """Decides about each connection that was accepted. Used on the event loop only."""

    def __init__(
        self,
        options: BridgeOptions,
        find: Callable[[], Accounts | None] = find_accounts,
        own_account: Callable[[], int] | None = None,
    ) -> None:
        self._sasl = options.sasl
        self._checks = options.lets_in == "account"
        self._find = find
        self._own_account = own_account
        self._account = -1
        self._accounts: Accounts | None = None
        self._readings: _Readings | None = None
        self._refusals = ConnectionRefusals()

    def start(self) -> None:
        """Find out how accounts are known here. Where they are not, only clients that log in are let in."""
        if not self._checks:
            return
        self._accounts = self._find()
        if self._accounts is None:
            _log.warning(
                "this system does not name the account of a connection: clients without SASL are refused",
                hint=_WAYS_IN,
            )
            return
        self._account = (self._own_account or os.geteuid)()
        if isinstance(self._accounts, ProcAccounts):
            self._readings = _Readings(self._accounts.owners)
            _log.warning(
                "sock_diag is not available: the look-up of accounts in /proc/net/tcp delays each connection",
                hint="allow the address family AF_NETLINK (RestrictAddressFamilies of systemd, seccomp of a container)",
            )

    def stop(self) -> None:
        if self._accounts is not None:
            self._accounts.close()

    def policy_for(self, ends: Ends | None) -> "SaslPolicy | asyncio.Future[SaslPolicy | None] | None":
        """How the client of a connection has to log in, at once or after a reading of all sockets."""
        if not self._checks:
            return self._sasl
        if ends is None or self._accounts is None:
            return self._decided(ends, None)
        if self._readings is None:
            assert not isinstance(self._accounts, ProcAccounts)
            return self._decided(ends, self._accounts.owner(ends))
        return asyncio.ensure_future(self._decided_later(ends, self._readings))

    async def _decided_later(self, ends: Ends, readings: "_Readings") -> SaslPolicy | None:
        return self._decided(ends, await readings.owner(ends))

    def _decided(self, ends: Ends | None, owner: int | None) -> SaslPolicy | None:
        if owner is not None and owner == self._account:
            return self._sasl
        if self._sasl != "off":
            return "require"
        self._refusals.log(ends, owner)
        return None


class _Readings:
    """Has connections that come meanwhile wait for one more reading, which serves all of them."""

    def __init__(self, read: Callable[[Sequence[Ends]], list[int | None]]) -> None:
        self._read = read
        self._asked: list[tuple[Ends, asyncio.Future[int | None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def owner(self, ends: Ends) -> int | None:
        answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._asked.append((ends, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, []
                owners = await self._owners([ends for ends, _ in asked])
                for (_, answer), owner in zip(asked, owners, strict=True):
                    if not answer.done():
                        answer.set_result(owner)
        finally:
            self._task = None

    async def _owners(self, asked: list[Ends]) -> list[int | None]:
        try:
            return await asyncio.to_thread(self._read, asked)
        except Exception:
            _log.exception("connections refused: their accounts cannot be read")
            return [None] * len(asked)


class ConnectionRefusals:
    """Writes the first one of a while, with the number of those before it that were not written.

    Clients whose account is not known are a kind of their own: a probe that only connects is not worth a warning.
    """

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._next = {True: float("-inf"), False: float("-inf")}
        self._left_out = {True: 0, False: 0}

    def log(self, ends: Ends | None, owner: int | None) -> None:
        is_known = owner is not None
        now = self._seconds()
        if now < self._next[is_known]:
            self._left_out[is_known] += 1
            return
        said: dict[str, str | int] = {"address": "" if ends is None else f"{ends.client[0]}:{ends.client[1]}"}
        said |= {"left_out": self._left_out[is_known], "hint": _WAYS_IN}
        if is_known:
            _log.warning("connection refused: it comes from another account", account=owner, **said)
        else:
            _log.info("connection refused: its account is unknown, or the client closed it at once", **said)
        self._next[is_known], self._left_out[is_known] = now + LOG_EVERY_SECONDS, 0
