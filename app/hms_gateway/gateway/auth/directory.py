"""Users of an LDAP directory: names that the password file does not have are asked for at its servers.

A password that was right is remembered for a time, as one of the password file; while the directory is away, longer.
Questions block in threads, each step bounded in time. The package bonsai (extra `ldap`) is loaded with the first.
"""

import asyncio
import time
import unicodedata
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import (
    NOT_TRIED,
    USER_CHARACTERS_MAX,
    HeaderList,
    Identity,
    Refused,
    RequestHead,
    is_user_name,
    overloaded,
)
from hms_gateway.gateway.auth.credentials import (
    BASIC,
    HEADER_BYTES_MAX,
    BasicCredentials,
    Credential,
    CredentialCache,
    FailedAttempts,
    Login,
    Shared,
    read_basic,
)
from hms_gateway.runtime.addresses import share_of
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Ldap, SettingsError
from hms_gateway.runtime.shares import Holder, Ledger

if TYPE_CHECKING:
    from bonsai import LDAPClient, LDAPConnection

INSTALL: Final = "pip install 'hms-gateway[ldap]'"
GROUPS_MAX: Final = 10_000

_log = structlog.get_logger("hms_gateway.directory")


class DirectoryAway(Exception):
    """Nothing can be said of the password now; the text says why."""


class DirectoryUser(msgspec.Struct, frozen=True):
    name: str
    groups: frozenset[str]


def check_installed() -> None:
    """Raises SettingsError."""
    from importlib.util import find_spec

    if find_spec("bonsai") is None:
        raise SettingsError(f"ldap needs the package bonsai, which is missing: {INSTALL}")


class LdapDirectory:
    """Asks the servers of the settings, one after the other until one answers."""

    def __init__(self, settings: Ldap) -> None:
        self._settings = settings

    def check(self, user: str, password: str) -> DirectoryUser | None:
        """The user when the password is right, else None. Raises DirectoryAway."""
        import bonsai

        # A bind with an empty password is anonymous, and succeeds (RFC 4513, 5.1.2).
        if not user or not password or "\0" in password or "\0" in user:
            return None
        problem = "it names no server"
        for url in self._settings.urls:
            try:
                return self._check_at(url, user, password)
            except (bonsai.ConnectionError, bonsai.TimeoutError) as error:
                problem = f"{url}: {error}"
            except bonsai.LDAPError as error:
                raise DirectoryAway(f"{url}: {error}") from error
        raise DirectoryAway(problem)

    def _check_at(self, url: str, user: str, password: str) -> DirectoryUser | None:
        """Raises bonsai's errors."""
        settings = self._settings
        if settings.bind_name is not None:
            import bonsai

            name = settings.bind_name.replace("{user}", bonsai.escape_attribute_value(user))
            with self._bound(url, name, password) as connection:
                return None if connection is None else self._described(connection, name, user)
        with self._searching(url) as service:
            found = self._found(service, user)
            if found is None:
                return None
            with self._bound(url, found, password) as connection:
                return None if connection is None else self._described(service, found, user)

    @contextmanager
    def _searching(self, url: str) -> "Iterator[LDAPConnection]":
        """A connection bound as the account that searches, or anonymously."""
        import bonsai

        client = self._client(url)
        if self._settings.search_user is not None:
            client.set_credentials("SIMPLE", self._settings.search_user, self._search_password())
        try:
            connection = client.connect(timeout=self._settings.seconds_max)
        except bonsai.AuthenticationError as error:
            raise DirectoryAway(f"{url} does not accept ldap.search_user: {error}") from error
        with connection:
            yield connection

    def _search_password(self) -> str:
        """Raises DirectoryAway."""
        file = self._settings.search_password_file
        if file is None:
            return ""
        try:
            return file.read_text("utf-8").partition("\n")[0].rstrip("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise DirectoryAway(f"ldap.search_password_file {file} cannot be read: {error}") from error

    @contextmanager
    def _bound(self, url: str, name: str, password: str) -> "Iterator[LDAPConnection | None]":
        """A connection bound as the user; None if the password is wrong or the account may not log in."""
        import bonsai

        client = self._client(url)
        client.set_credentials("SIMPLE", name, password)
        try:
            connection = client.connect(timeout=self._settings.seconds_max)
        except (
            bonsai.AuthenticationError,
            bonsai.PasswordPolicyError,
            bonsai.UnwillingToPerform,
            bonsai.InsufficientAccess,
            bonsai.InvalidDN,
            bonsai.NoSuchObjectError,
        ) as error:
            _log.info("login refused by the directory", problem=type(error).__name__)
            yield None
            return
        with connection:
            yield connection

    def _found(self, connection: "LDAPConnection", user: str) -> str | None:
        """The name of the one entry of the user; None where there is none, or more than one."""
        import bonsai

        settings = self._settings
        wanted = settings.search_filter.replace("{user}", bonsai.escape_filter_exp(user))
        found = self._search(connection, settings.search_base, bonsai.LDAPSearchScope.SUBTREE, wanted, ["1.1"], 2)
        return str(found[0].dn) if len(found) == 1 else None

    def _described(self, connection: "LDAPConnection", name: str, user: str) -> DirectoryUser | None:
        """None where the directory does not say which name the user has."""
        written = self._written(connection, name, user)
        if written is None:
            attribute = self._settings.user_attribute
            _log.error("login refused: the entry shows no name of the user", entry=name, user_attribute=attribute)
            return None
        return DirectoryUser(written, self._groups(connection, name, written))

    def _written(self, connection: "LDAPConnection", name: str, user: str) -> str | None:
        """The name as the directory writes it, which finds it in any case, width and number of blanks: one user has one
        name. Of several, the one that was sent in any case.
        """
        import bonsai

        attribute = self._settings.user_attribute
        try:
            found = self._search(connection, name, bonsai.LDAPSearchScope.BASE, "(objectClass=*)", [attribute], 1)
        except (bonsai.NoSuchObjectError, bonsai.InsufficientAccess):
            found = []
        values = [str(value) for entry in found for value in entry.get(attribute, ())]
        if len(values) == 1:
            return values[0]
        sent = user.strip().lower()
        return next((value for value in values if value.lower() == sent), None)

    def _groups(self, connection: "LDAPConnection", name: str, user: str) -> frozenset[str]:
        import bonsai

        settings = self._settings
        if settings.group_base is None:
            return frozenset()
        wanted = settings.group_filter.replace("{dn}", bonsai.escape_filter_exp(name))
        wanted = wanted.replace("{user}", bonsai.escape_filter_exp(user))
        scope, attribute = bonsai.LDAPSearchScope.SUBTREE, settings.group_attribute
        found = self._search(connection, settings.group_base, scope, wanted, [attribute], GROUPS_MAX)
        return frozenset(str(value) for entry in found for value in entry.get(attribute, ()))

    def _search(
        self, connection: "LDAPConnection", base: str, scope: Any, wanted: str, attributes: list[str], entries_max: int
    ) -> list[Any]:
        import bonsai

        timeout = self._settings.seconds_max
        try:
            return list(connection.search(base, scope, wanted, attributes, timeout=timeout, sizelimit=entries_max))
        except bonsai.SizeLimitError as error:
            raise DirectoryAway(f"more than {entries_max} entries match {wanted}; see the settings of ldap") from error

    def _client(self, url: str) -> "LDAPClient":
        import bonsai

        client = bonsai.LDAPClient(url, self._settings.start_tls)
        client.set_cert_policy("demand")
        if self._settings.authority is not None:
            client.set_ca_cert(str(self._settings.authority))
        return client


THREADS: Final = 8
# After a question without an answer, those with an answer in memory are not asked about for so long.
AWAY_SECONDS: Final = 5.0


class DirectoryLogin(Login):
    """Lets in users of a directory; those of the password file are the next one's.

    `check` is `LdapDirectory.check`, `is_local` says whether the password file has a user.
    """

    scheme = BASIC

    def __init__(
        self,
        check: Callable[[str, str], DirectoryUser | None],
        settings: Ldap,
        *,
        is_local: Callable[[str], bool],
        challenges: HeaderList,
        limits: Limits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self.cache: CredentialCache = CredentialCache()
        self._check = check
        self._is_local = is_local
        self._challenges = challenges
        self._settings = settings
        self._monotonic = monotonic
        self._sleep = sleep
        self._share_of = share_of
        self._attempts = FailedAttempts(monotonic)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="directory")
        self._checks = Ledger(limits or Limits(), "password_checks_max")
        self._away_until = 0.0
        self._asking: Shared[bytes, DirectoryUser | None] = Shared()

    def holds(self, credential: Credential) -> bool:
        now = self._monotonic()
        checked_at: float = credential.evidence
        is_away = now < self._away_until
        return now < checked_at + (self._settings.kept_seconds if is_away else self._settings.remembered_seconds)

    async def authenticate(self, head: RequestHead) -> Identity | None:
        """Raises Refused: 401 for a wrong password, 503 while the directory is away, 429 and 503 for too many."""
        header = head.headers[b"authorization"]
        credentials = read_basic(header) if len(header) <= HEADER_BYTES_MAX else None
        if credentials is None or self._is_local(credentials.user):
            return None
        address = self._share_of(head.address)
        # One entry is found under many spellings, and all of them are guesses of its password.
        name = _folded(credentials.user)
        source = (name, address or head.address)
        if self.cache.find(header) is None:
            await self._attempts.wait_for_turn(source, self._sleep, limit="wrong_passwords")
        try:
            user = await self._asking.result(header, partial(self._ask, credentials, Holder(name, address)))
        except DirectoryAway as away:
            return self._kept(header, head, away)
        # The directory finds a name in any case, and so under another spelling that of a user of the file.
        if user is None or not is_user_name(user.name) or self._is_local(user.name):
            self.cache.forget(header)
            self._attempts.failed(source)
            text, sent = "User name or password is wrong", credentials.user
            raise Refused(401, text, headers=self._challenges, reason="wrong_password", user=sent)
        self._attempts.succeeded(source)
        found = Credential(self._monotonic(), user.name, user.groups)
        self.cache.remember(header, found)
        return found.identity(head)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, credentials: BasicCredentials, holder: Holder) -> DirectoryUser | None:
        """Raises DirectoryAway, Refused."""
        bound = self._checks.take(1, holder)
        if bound is not None:
            raise overloaded(f"There are too many passwords to check ({bound.name}); try again", bound.name)
        loop = asyncio.get_running_loop()
        try:
            asked = loop.run_in_executor(self._threads, self._check, credentials.user, credentials.password)
        except RuntimeError:
            # No thread can be started.
            self._checks.give_back(1, holder)
            raise
        # The thread may go on for longer than the request waits, and counts until then.
        asked.add_done_callback(lambda _: self._checks.give_back(1, holder))
        # Twice: one server that does not answer, and another that does.
        done, _ = await asyncio.wait([asked], timeout=2 * self._settings.seconds_max)
        if not done:
            raise DirectoryAway("it does not answer in time")
        return asked.result()

    def _kept(self, header: bytes, head: RequestHead, away: DirectoryAway) -> Identity:
        """The identity of before, for a time. Raises Refused."""
        now = self._monotonic()
        if now >= self._away_until:
            kept_seconds = self._settings.kept_seconds
            _log.error("the directory is unreachable", problem=str(away), kept_seconds=kept_seconds)
        self._away_until = now + AWAY_SECONDS
        known = self.cache.find(header)
        if known is not None and now < known.evidence + self._settings.kept_seconds:
            return known.identity(head)
        text = "The directory of users cannot be asked now; try again"
        raise Refused(503, text, headers=NOT_TRIED, reason="directory_away")


def _folded(name: str) -> str:
    """The same for all spellings that directories may take for one: only letters and digits, and these without case,
    width and accents.
    """
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    return "".join(filter(str.isalnum, letters))[:USER_CHARACTERS_MAX]
