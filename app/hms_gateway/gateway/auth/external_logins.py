"""Logins whose user somebody else has proved: the authority of a client certificate, a KDC, a trusted proxy."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qs

import msgspec
import structlog

from hms_gateway.gateway.admission.identity import (
    Authenticator,
    HeaderList,
    Identity,
    ProxyTrust,
    Refused,
    RequestHead,
    is_user_name,
    overloaded,
)
from hms_gateway.gateway.auth.credentials import BASIC, Login, read_basic, scheme_of
from hms_gateway.runtime.addresses import Networks, share_of
from hms_gateway.runtime.door import ShownCertificate
from hms_gateway.runtime.kerberos import SCHEME, Accepted, KerberosError, short_name
from hms_gateway.runtime.logins.delegation_token import PROOF_HEADER
from hms_gateway.runtime.logins.login_tokens import LoginChecks, TooManyChecks
from hms_gateway.runtime.settings import TrustedProxy


class CertificateLogin(Login):
    """Lets in users of client certificates that hold now, also on connections that began before.

    An Authorization header counts instead where there is one, so that the certificate of a machine can let in beside
    the password of its user. `objection` is `CertificateValidity.objection`.
    """

    scheme = ""

    def __init__(self, *, objection: Callable[[ShownCertificate], str], challenges: HeaderList = ()) -> None:
        self._challenges = challenges
        self._objection = objection

    def remembered(self, head: RequestHead) -> Identity | None:
        certificate = _login(head)
        if certificate is None:
            return None
        return None if self._objection(certificate) else _certificate_identity(certificate, head)

    async def authenticate(self, head: RequestHead) -> Identity | None:
        """Raises Refused: 401 for a certificate that does not hold any more."""
        certificate = _login(head)
        if certificate is None:
            return None
        if objection := self._objection(certificate):
            raise Refused(401, f"The client certificate {objection}", headers=self._challenges, reason="certificate")
        return _certificate_identity(certificate, head)


def _certificate_identity(certificate: ShownCertificate, head: RequestHead) -> Identity:
    return Identity(certificate.user, head.address, by_others=True)


def _login(head: RequestHead) -> ShownCertificate | None:
    """The certificate, where it says whose the request is."""
    certificate = head.certificate
    if certificate is None or not certificate.user or b"authorization" in head.headers:
        return None
    return certificate


NEGOTIATE_CHALLENGE: HeaderList = ((b"www-authenticate", SCHEME.encode()),)

_log = structlog.get_logger("hms_gateway.kerberos")


class TicketLogin(Login):
    """Lets in users of some realms under the first part of their principals (RFC 4559; protocol, Security).

    `accept` is `ServiceKeys.accept`, `share_of` is `Proxies.share_of`. Without `realms`, the one of our own service
    counts. Tickets are looked at in the threads of `checks`; a ticket is for one request, so none is remembered.
    """

    scheme = SCHEME.lower()

    def __init__(
        self,
        accept: Callable[[bytes], Accepted],
        *,
        realms: Sequence[str] = (),
        challenges: HeaderList = (),
        checks: LoginChecks | None = None,
        share_of: Callable[[str], str | None] = share_of,
    ) -> None:
        self._accept = accept
        self._realms = frozenset(realms)
        self._challenges = challenges
        self._share_of = share_of
        self._checks = checks or LoginChecks()

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for a ticket that is not accepted, 403 for a user of another realm, 503 for too many."""
        token = head.headers[b"authorization"].strip().partition(b" ")[2]
        return self._identity(await self._accepted(token, head.address), head.address)

    async def _accepted(self, token: bytes, address: str) -> Accepted:
        try:
            return await self._checks.run(self._accept, token, address=self._share_of(address))
        except TooManyChecks as error:
            raise overloaded(str(error), error.bound.name) from None
        except KerberosError as error:
            _log.info("ticket not accepted", problem=str(error))
            text = f"The Kerberos ticket is not accepted: {error}"
            raise Refused(401, text, headers=self._challenges, reason="ticket") from None

    def _identity(self, accepted: Accepted, address: str) -> Identity:
        realm = accepted.principal.rpartition("@")[2]
        if realm not in (self._realms or {accepted.service.rpartition("@")[2]}):
            text = f"Users of the realm {realm} are not let in: the setting kerberos.realms does not name it"
            raise Refused(403, text, reason="realm")
        user = short_name(accepted.principal)
        return Identity(user, address, headers=_reply_headers(accepted.answer), by_others=True)


def _reply_headers(answer: bytes) -> HeaderList:
    """The proof that we are who the client asked for, and that the next request needs a ticket of its own (curl)."""
    return ((b"www-authenticate", b"%b %b" % (SCHEME.encode(), answer)), (b"persistent-auth", b"false"))


QUERY_FIELDS_MAX = 50
NO_PROXY = TrustedProxy()


class ImpersonationRule(msgspec.Struct, frozen=True):
    """Whom a user may act for, and from where; an empty `hosts` is anywhere."""

    users: frozenset[str]
    hosts: Networks | None = None

    def objection(self, user: str, address: str) -> str | None:
        """The reason of a refusal, to follow the name of the rule; None if allowed."""
        if "*" not in self.users and user not in self.users:
            return f"does not name {user}"
        if self.hosts is not None and not self.hosts.contain(address):
            return f"does not hold for calls from {address}"
        return None


class TrustedProxyAuthenticator:
    """Takes the user from trusted proxies, and lets configured users act for others; the rest is the next one's.

    A caller with a password who asks to act for another user and may not is refused: answering it as if it had not
    asked would make changes under a name that it did not mean.
    """

    def __init__(
        self,
        following: Authenticator,
        trusted: TrustedProxy = NO_PROXY,
        *,
        proxy_users: Mapping[str, ImpersonationRule] | None = None,
        proven: Callable[[RequestHead, Identity], Awaitable[Identity]] | None = None,
        is_reserved: Callable[[str], bool] = lambda user: False,
        groups_of: Callable[[str], frozenset[str]] | None = None,
    ) -> None:
        """`proven` is `ProvenActing.check`, `is_reserved` is `UserFile.is_reserved`, `groups_of` is `GroupsFile.of`."""
        self._following = following
        self._groups_of = groups_of
        self._proven = proven
        self._is_reserved = is_reserved
        self._header = None if trusted.user_header is None else trusted.user_header.lower().encode()
        self._parameter = trusted.user_parameter
        self._takes_asterisk = trusted.asterisk_password
        self._proxied_users = ImpersonationRule(frozenset(trusted.users))
        self._proxy_users = dict(proxy_users or {})

    def remembered(self, head: RequestHead) -> Identity | None:
        # A query may ask to act for another user, and a trusted peer's headers say more than Authorization.
        if head.query or head.trust is not ProxyTrust.NONE:
            return None
        identity = self._following.remembered(head)
        if identity is not None and identity.by_others and self._is_reserved(identity.user):
            return None
        return identity if identity is None or self._groups_of is None else self._with_groups(identity)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for two users in one request, 403 for a user who may not act for another, and as the next
        authenticator does."""
        query = named_in_query(head.query)
        named = None if head.trust is ProxyTrust.NONE else self._named_user(head, query)
        if named is None:
            identity = await self._logged_in(head)
        else:
            identity = await self._proxied(head, named)
        if head.trust is ProxyTrust.TRUSTED and query.get("user.name", identity.user) != identity.user:
            raise _ambiguous("the parameter user.name differs from the authenticated user")
        is_final = self._parameter == "doAs" and named is not None
        acting = identity if is_final else self._acting(identity, query, head.peer)
        proven = self._proven if PROOF_HEADER in head.headers else None
        # The digest of a token proves the name as well as a password.
        if identity.by_others and (proven is None or acting is not identity):
            check_reserved(identity.user, self._is_reserved)
        return self._with_groups(acting if proven is None else await proven(head, acting))

    def _with_groups(self, identity: Identity) -> Identity:
        """Adds the groups of the file to those that the login proved; also for a user that another one acts for."""
        groups = self._groups_of(identity.user) if self._groups_of is not None else frozenset()
        return identity._replace(groups=identity.groups | groups) if groups else identity

    def close(self) -> None:
        self._following.close()

    async def _logged_in(self, head: RequestHead) -> Identity:
        return self._following.remembered(head) or await self._following.authenticate(head)

    async def _proxied(self, head: RequestHead, user: str) -> Identity:
        """The user that the proxy names; an Authorization header beside it has to be right and the same user's."""
        if head.trust is ProxyTrust.UNPROVEN:
            text = (
                "The proxy named a user and did not prove itself; "
                "let it send what trusted_proxy.secret or trusted_proxy.authority asks for"
            )
            raise Refused(401, text, reason="unproven_proxy")
        by_token, by_others = False, True
        if b"authorization" in head.headers and not self._takes_asterisk:
            login = await self._logged_in(head)
            if login.user != user:
                raise _ambiguous("the proxy and the Authorization header name different users")
            by_token, by_others = login.by_token, login.by_others
        if not is_user_name(user):
            raise Refused(401, "The name of the user that the proxy sent is not readable", reason="unreadable_user")
        if objection := self._proxied_users.objection(user, head.peer):
            text = f"The proxy may not act for user {user}: the setting trusted_proxy.users {objection}"
            raise Refused(403, text, reason="not_proxied")
        return Identity(user, head.address, by_token=by_token, by_others=by_others)

    def _named_user(self, head: RequestHead, query: Mapping[str, str]) -> str | None:
        """The user in the one source; None where the proxy names none."""
        if self._header is not None:
            return header_user(head.values(self._header))
        if self._takes_asterisk:
            return _asterisk_user(head)
        # With Authorization the parameters are the client's own: it logs in, and may ask to act for another user.
        if self._parameter is None or b"authorization" in head.headers:
            return None
        return query.get(self._parameter)

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
        return Identity(
            user, identity.address, headers=identity.headers, real_user=identity.user, by_token=identity.by_token
        )


def check_reserved(user: str, is_reserved: Callable[[str], bool]) -> None:
    """Raises Refused (403) for a name of the password file that another login says. `is_reserved` is `UserFile`'s."""
    if is_reserved(user):
        text = (
            f"User {user} has a password at this gateway and logs in with it, or with a token made for it; the setting "
            "users_by_other_logins names users whom certificates, tickets, issuers and proxies may name, too"
        )
        raise Refused(403, text, reason="reserved_user", user=user)


def header_user(values: Sequence[bytes]) -> str | None:
    """The user in the values of a header, None without any. Raises Refused (401) for two.

    A comma is what a proxy on the way puts between the values of a repeated one.
    """
    if not values:
        return None
    if len(values) > 1 or b"," in values[0]:
        raise _ambiguous("the header that names the user is repeated")
    # Only what HTTP allows around a value: other blanks are part of a name, and make it another one or unreadable.
    return values[0].strip(b" \t").decode("utf-8", "replace")


def named_in_query(query: bytes) -> dict[str, str]:
    """The parameters `user.name` and `doAs`, each once. Raises Refused: 401 for two values, 400 for too many fields."""
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
            raise _ambiguous(f"two values of the parameter {spelling}")
        if values:
            named[spelling] = values.pop()
    return named


def _asterisk_user(head: RequestHead) -> str | None:
    """Knox's HiveDispatch sends Basic with a literal asterisk as the password."""
    header = head.headers.get(b"authorization", b"")
    credentials = read_basic(header) if scheme_of(header) == BASIC else None
    return credentials.user if credentials is not None and credentials.password == "*" else None


def _ambiguous(problem: str) -> Refused:
    text = f"The request names two different users: {problem}; send one"
    return Refused(401, text, reason="ambiguous_user")
