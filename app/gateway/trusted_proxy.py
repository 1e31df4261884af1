"""Identity as told by a trusted proxy such as Knox, which keeps the client's Authorization header (clients §9).

Only peers from the configured networks are believed; from anybody else these headers and parameters mean nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network
from urllib.parse import parse_qs

from app.gateway.basic_credentials import read_basic, scheme_of
from app.gateway.identity import Authenticator, Identity, Refused, RequestHead

GROUP_HEADER_PREFIX = b"x-knox-actor-groups-"
QUERY_FIELDS_MAX = 50


class Networks:
    """Whether an address lies in one of some networks; answers are remembered by address."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = [ip_network(network, strict=False) for network in networks]
        self.contain = lru_cache(maxsize=4096)(self._contain)

    def _contain(self, address: str) -> bool:
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self._networks)


@dataclass(frozen=True, slots=True)
class ImpersonationRule:
    """Whom somebody may act for, and from where; an empty `hosts` is anywhere."""

    users: frozenset[str]
    hosts: Networks | None = None

    def objection(self, user: str, address: str) -> str | None:
        """Why not, to follow the name of the rule; None when it is allowed."""
        if "*" not in self.users and user not in self.users:
            return f"does not name {user}"
        if self.hosts is not None and not self.hosts.contain(address):
            return f"does not hold for calls from {address}"
        return None


class TrustedProxyAuthenticator:
    """Believes trusted peers, and lets configured users act for others; everything else is the next authenticator's.

    A caller with a password who asks to act for somebody else and may not is refused: answering it as if it had not
    asked would make changes under a name that it did not mean.
    """

    def __init__(
        self,
        following: Authenticator,
        *,
        proxies: Sequence[str],
        proxied_users: Sequence[str] = ("*",),
        user_headers: Sequence[str] = (),
        proxy_users: Mapping[str, ImpersonationRule] | None = None,
    ) -> None:
        self._following = following
        self._proxies = Networks(proxies)
        self._proxied_users = ImpersonationRule(frozenset(proxied_users))
        self._user_headers = [name.lower().encode() for name in user_headers]
        self._proxy_users = dict(proxy_users or {})

    def remembered(self, head: RequestHead) -> Identity | None:
        # A query may ask to act for somebody else, and a trusted peer's headers say more than Authorization.
        if head.query or self._proxies.contain(head.peer):
            return None
        return self._following.remembered(head)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 403 when somebody may not act for somebody, else as the next authenticator does."""
        query = _query(head.query)
        if self._proxies.contain(head.peer):
            identity = self._told(head, query)
            if identity is not None:
                return self._acting(identity, query, head.peer)
        identity = self._following.remembered(head) or await self._following.authenticate(head)
        return self._acting(identity, query, head.peer)

    def close(self) -> None:
        self._following.close()

    def _told(self, head: RequestHead, query: Mapping[str, str]) -> Identity | None:
        """The user that a trusted peer names: header, Basic with the password `*`, `user.name`, `doAs`.

        A proxy that authenticates does not pass credentials on; beside them the query is the client's own.
        """
        user = self._user_of_headers(head) or _preemptive_user(head)
        if not user and b"authorization" not in head.headers:
            user = query.get("user.name") or query.get("doAs")
        if not user:
            return None
        if objection := self._proxied_users.objection(user, head.peer):
            text = f"The proxy may not act for user {user}: the setting trusted_proxy_users {objection}"
            raise Refused(403, text, reason="not_proxied")
        return Identity(user, self._client_address(head), _groups(head))

    def _user_of_headers(self, head: RequestHead) -> str | None:
        for name in self._user_headers:
            values = {value for header, value in head.header_list if header == name}
            if len(values) > 1:
                raise Refused(401, "Two different user names were given by headers", reason="ambiguous_user")
            if values:
                return values.pop().decode("utf-8", "replace").strip()
        return None

    def _acting(self, identity: Identity, query: Mapping[str, str], peer: str) -> Identity:
        """The user named by `doAs`, when the identity may act for it."""
        user = query.get("doAs")
        if not user or user == identity.user:
            return identity
        rule = self._proxy_users.get(identity.user)
        objection = "does not exist" if rule is None else rule.objection(user, peer)
        if objection:
            text = f"User {identity.user} may not act for user {user}: the rule proxy_users.{identity.user} {objection}"
            raise Refused(403, text, reason="not_impersonated")
        return Identity(user, identity.address, headers=identity.headers)

    def _client_address(self, head: RequestHead) -> str:
        """The last address of X-Forwarded-For that is no proxy of ours; what stands before it anybody can invent."""
        forwarded = head.headers.get(b"x-forwarded-for", b"").decode("latin-1")
        for address in reversed([part.strip() for part in forwarded.split(",")]):
            if address and not self._proxies.contain(address):
                return address
        return head.peer


def _query(query: bytes) -> dict[str, str]:
    """The parameters that name users, each once."""
    if not query:
        return {}
    try:
        fields = parse_qs(query.decode("latin-1"), max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise Refused(400, f"More than {QUERY_FIELDS_MAX} query parameters", reason="query") from None
    named = {}
    for name, spelling in (("user.name", "user.name"), ("doas", "doAs")):
        values = {value for field, values in fields.items() if field.lower() == name for value in values}
        if len(values) > 1:
            raise Refused(401, f"Two different values of the parameter {spelling}", reason="ambiguous_user")
        if values:
            named[spelling] = values.pop()
    return named


def _preemptive_user(head: RequestHead) -> str | None:
    """Knox's HiveDispatch sends Basic with a literal asterisk as the password."""
    header = head.headers.get(b"authorization", b"")
    credentials = read_basic(header) if scheme_of(header) == "basic" else None
    return credentials.user if credentials is not None and credentials.password == "*" else None


def _groups(head: RequestHead) -> tuple[str, ...]:
    lists = [value for name, value in head.header_list if name.startswith(GROUP_HEADER_PREFIX)]
    groups = ",".join(value.decode("utf-8", "replace") for value in lists).split(",")
    return tuple(group.strip() for group in groups if group.strip())
