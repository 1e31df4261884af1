"""Clients of named networks, which are believed without a login about who they are.

Hive 4's HTTP client names its user in a header, clients over Thrift in `set_ugi` (clients §4.4, §13).
"""

from collections.abc import Callable
from typing import Final

from hms_gateway.gateway.admission.identity import Identity, ProxyTrust, Refused, RequestHead, is_user_name
from hms_gateway.gateway.admission.request_rules import BROWSER_HEADERS
from hms_gateway.gateway.auth.credentials import Login
from hms_gateway.gateway.auth.external_logins import ImpersonationRule, header_user, named_in_query
from hms_gateway.runtime.addresses import Networks
from hms_gateway.runtime.settings import Settings

USER_HEADER: Final = b"x-actor-username"
# A request with one of these was not sent by the peer itself, and one of a web page is not sent by a program.
_OF_OTHERS: Final = BROWSER_HEADERS | {b"forwarded", b"via", b"x-forwarded-for", b"x-real-ip"}


class NetworkUsers:
    """The user of a client without a login, by the settings `network_user` and `network_users`."""

    def __init__(self, settings: Settings) -> None:
        self.only_user = settings.network_user
        self._listed = frozenset(settings.network_users)
        self._rule = ImpersonationRule(self._listed)
        self._guarded = settings.guarded_users - self._listed

    def user(self, named: str) -> str:
        """The user of a client that names `named`. Raises Refused (403)."""
        if self.only_user is not None:
            return self.only_user
        if not is_user_name(named):
            raise Refused(403, "The name of the user is not readable", reason="unreadable_user")
        objection = self._rule.objection(named, "")
        if named in self._guarded:
            objection = f'does not name {named}, and "*" is no administrator and nobody of proxy_users'
        if objection:
            text = f"User {named} needs a login: the setting network_users {objection}"
            raise Refused(403, text, reason="not_named", user=named)
        return named

    def may_administer(self, user: str) -> bool:
        """True for a user who has an administrator's rights, if any, without a login: "*" lists none."""
        return user in self._listed


class NetworkLogin(Login):
    """Lets in programs of `networks` under the name in USER_HEADER.

    `is_proxy` is true for a peer that sends requests of others: from its address they prove nothing.
    """

    scheme = ""

    def __init__(self, networks: Networks, users: NetworkUsers, is_proxy: Callable[[str], bool]) -> None:
        self._networks = networks
        self._users = users
        self._is_proxy = is_proxy

    def remembered(self, head: RequestHead) -> Identity | None:
        try:
            return self._identity(head)
        except Refused:
            # `authenticate` says why.
            return None

    async def authenticate(self, head: RequestHead) -> Identity | None:
        """Raises Refused: 401 for two names, 403 for a name that needs a login, or acts for another one."""
        return self._identity(head)

    def _identity(self, head: RequestHead) -> Identity | None:
        if not self._networks.contain(head.peer) or head.trust is not ProxyTrust.NONE or self._is_proxy(head.peer):
            return None
        if not head.headers.keys().isdisjoint(_OF_OTHERS):
            return None
        if head.certificate is not None and head.certificate.user:
            # One that does not hold any more, or `CertificateLogin` would have taken it.
            return None
        named = header_user(head.values(USER_HEADER))
        if named is None and self._users.only_user is None:
            return None
        user = self._users.user(named or "")
        if (other := named_in_query(head.query).get("doAs", user)) != user:
            text = f"User {user} may not act for user {other} without a login"
            raise Refused(403, text, reason="not_impersonated")
        may_administer = self._users.may_administer(user)
        # A name gives no token, which would outlive it and be valid elsewhere.
        return Identity(user, head.address, by_token=True, by_others=True, may_administer=may_administer)
