"""Tokens that a caller sends (`Authorization: Bearer`): from a file or a program, and again when they change or end.

An issuer's tokens last minutes, and a bridge for months: it sends the newest, and asks once more when one is refused.
"""

import asyncio
import base64
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from hms_gateway.runtime.file_versions import FileVersion, file_version
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.shares import Bound, Holder, Ledger

COMMAND_SECONDS_MAX: Final = 60.0
LOOK_EVERY_SECONDS: Final = 1.0
# A token is asked for again when so much of its time is over.
RENEWED_AT: Final = 0.8
# Refused ones make the program run so often at most.
RENEWED_EVERY_SECONDS: Final = 10.0


class TokenError(Exception):
    """The token is missing; the text says where it should be, `hint` what to do."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


class TokenCommand(NamedTuple):
    """A program whose first line of output is a token."""

    words: Sequence[str]


TokenSource: TypeAlias = Path | TokenCommand


def read_token(source: TokenSource) -> str:
    """The first line of a file, or of what a program prints. Blocks. Raises TokenError."""
    name, line = _line_of_file(source) if isinstance(source, Path) else _line_of_command(source)
    token = line.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise TokenError(f"{name} has no token in its first line", "hms-gateway token create NAME prints one")
    return token


def _line_of_file(file: Path) -> tuple[str, str]:
    try:
        return f"token file {file}", file.read_text(encoding="utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError) as error:
        raise TokenError(f"token file {file} cannot be read: {error}") from error


def _line_of_command(command: TokenCommand) -> tuple[str, str]:
    import subprocess

    name = f"token_command {' '.join(command.words)}"
    try:
        ran = subprocess.run(command.words, stdout=subprocess.PIPE, text=True, timeout=COMMAND_SECONDS_MAX, check=False)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise TokenError(f"{name} cannot be run: {error}") from error
    if ran.returncode:
        raise TokenError(f"{name} ended with exit status {ran.returncode}")
    return name, ran.stdout.partition("\n")[0]


class _Claims(msgspec.Struct):
    exp: float | None = None


def expiry_of(token: str) -> float | None:
    """When a signed token (JWT) says that it ends, in seconds since 1970; None for others."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(claims, type=_Claims).exp
    except (ValueError, RecursionError):
        return None


class LoginToken:
    """The token to send now. May be used from several threads; what reads one blocks."""

    def __init__(
        self,
        source: TokenSource,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises TokenError: what is wrong with the source is heard at the start."""
        self._source = source
        self._now = now
        self._monotonic = monotonic
        self._reading = threading.Lock()
        self._version: FileVersion | None = None
        self._next_look = 0.0
        self._next_renewal = 0.0
        self._token = ""
        self._renew_at: float | None = None
        self._expires: float | None = None
        self._read()

    @property
    def text(self) -> str:
        """The one that was read last."""
        return self._token

    def known(self) -> str | None:
        """The token, when it need not be read again. Takes no time."""
        if isinstance(self._source, Path):
            if self._monotonic() < self._next_look:
                return self._token
            self._next_look = self._monotonic() + LOOK_EVERY_SECONDS
            return self._token if file_version(self._source) == self._version else None
        is_due = self._renew_at is not None and self._now() >= self._renew_at
        return None if is_due else self._token

    def read(self) -> str:
        """The token, read again. One that cannot be read leaves the one before until it ends. Raises TokenError."""
        with self._reading:
            # Another thread may have read it while this one waited.
            if (token := self.known()) is not None and not isinstance(self._source, Path):
                return token
            try:
                self._read()
            except TokenError:
                if self._expires is not None and self._expires <= self._now():
                    raise
                self._renew_at = self._now() + RENEWED_EVERY_SECONDS
            return self._token

    def renewed(self, refused: str) -> str | None:
        """Another token than the one that was refused; None when there is none. Raises TokenError."""
        with self._reading:
            if self._token != refused:
                return self._token
            if self._monotonic() < self._next_renewal:
                return None
            self._next_renewal = self._monotonic() + RENEWED_EVERY_SECONDS
            self._read()
            return None if self._token == refused else self._token

    def _read(self) -> None:
        version = file_version(self._source) if isinstance(self._source, Path) else None
        self._token = read_token(self._source)
        self._version = version
        self._expires = expiry_of(self._token)
        now = self._now()
        self._renew_at = None if self._expires is None else now + max(self._expires - now, 1.0) * RENEWED_AT


# Threads in which tickets and delegation tokens are checked: they cost more than the event loop has time for.


T = TypeVar("T")

THREADS: Final = 2


class TooManyChecks(Exception):
    """The login was not looked at; `bound` is in the way."""

    def __init__(self, bound: Bound) -> None:
        super().__init__(f"There are too many tickets and tokens to check ({bound.name}); try again")
        self.bound = bound


class LoginChecks:
    """Checks that wait, shared out among addresses: the user of a login is known when it has been checked."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._shares = Ledger(limits or Limits(), "ticket_checks_max")
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ticket")

    async def run(self, check: Callable[..., T], *arguments: Any, address: str | None) -> T:
        """The result of `check`, in the share of `address`. Raises TooManyChecks."""
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
