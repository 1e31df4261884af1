"""Threads in which tickets and delegation tokens are checked: they cost more than the event loop has time for."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, Ledger

T = TypeVar("T")

THREADS: Final = 2


class TooManyChecks(Exception):
    """The login was not looked at; `bound` is in the way."""

    def __init__(self, bound: Bound) -> None:
        super().__init__(f"There are too many tickets and tokens to check ({bound.name}); try again")
        self.bound = bound


class LoginChecks:
    """What waits is shared out among addresses: whose a login is is known when it has been checked."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._shares = Ledger(limits or Limits(), "ticket_checks_max")
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ticket")

    async def run(self, check: Callable[..., T], *arguments: Any, address: str | None) -> T:
        """What `check` returns or raises; `address` is whose share it takes. Raises TooManyChecks."""
        holder = Holder(None, address)
        bound = self._shares.take(1, holder)
        if bound is not None:
            raise TooManyChecks(bound)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, check, *arguments)
        finally:
            self._shares.give_back(1, holder)

    def close(self) -> None:
        """Give back the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
