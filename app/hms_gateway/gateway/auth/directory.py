"""Users of an LDAP directory: whether a password is right, how the directory spells the user, which groups it has.

Blocks; every step is bounded in time. The package bonsai (extra `ldap`) is loaded with the first question.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from hms_gateway.runtime.settings import Ldap, SettingsError

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


class Directory:
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
