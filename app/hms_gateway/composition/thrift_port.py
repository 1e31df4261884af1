"""`serve --thrift-port`: the gateway's own Thrift port, which is the bridge's with the processor where HTTPS was."""

from base64 import b64encode
from collections.abc import Callable
from functools import partial

from hms_gateway.bridge.relays.processor_relay import ANONYMOUS, ProcessorRelay, user_as_named
from hms_gateway.bridge.server.admission import BridgeOptions, ListenerTls
from hms_gateway.bridge.server.server import BridgeServer
from hms_gateway.bridge.thrift.connection import Session
from hms_gateway.bridge.thrift.messages import BridgeError, CallFailed, NotTried
from hms_gateway.bridge.thrift.sasl import LoginRefused, Mechanism, TicketExchange, TokenExchange
from hms_gateway.gateway.admission.identity import NOT_TRIED, ClientGone, Identity, Refusals, Refused, RequestHead
from hms_gateway.gateway.admission.rates import RateWaits
from hms_gateway.gateway.application import SecondaryListenerFailed
from hms_gateway.gateway.assembly import EdgeComponents
from hms_gateway.gateway.auth.external_logins import check_reserved
from hms_gateway.gateway.auth.network_logins import NetworkUsers
from hms_gateway.gateway.logins import LoginParts, service_keys
from hms_gateway.rpc.call import Caller, Dialect, Unavailable
from hms_gateway.rpc.wire import Codecs
from hms_gateway.runtime.addresses import Networks, host_of
from hms_gateway.runtime.call_record import CallRecord
from hms_gateway.runtime.door import listening_sockets
from hms_gateway.runtime.kerberos import SaslTickets
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.delegation_token import Proof
from hms_gateway.runtime.settings import Settings

# Names of limits among the reasons of refusals.
LIMITS = frozenset((*Limits.__struct_fields__, "header_seconds_max"))


class ThriftPort:
    """A `gateway.application.SecondaryListener`. Calls are counted and logged with those that come by HTTP."""

    def __init__(self, settings: Settings, port: int, codecs: Codecs, edge: EdgeComponents) -> None:
        rates = edge.endpoint.rates
        self._refusals = Refusals(edge.endpoint.metrics)
        self._rate_waits = None if rates is None else RateWaits(rates, settings.limits)
        relay = ProcessorRelay(
            edge.endpoint.calls,
            codecs,
            dialect=Dialect(settings.thrift_dialect),
            cache=edge.endpoint.cache,
            identify=_Identification(edge, self._refusals, NetworkUsers(settings), _own_account(settings)),
            failure_of=self._failure_of,
            note_limit=self._note_limit,
            admit=self._admit,
            reply_bytes_max=settings.limits.body_bytes_max,
        )
        options = BridgeOptions(
            host=settings.thrift_host,
            port=port,
            allows_remote=True,  # the settings have seen to it that others show a password, or come from known networks
            sasl=settings.thrift_sasl,
            write_stall_seconds_max=settings.write_stall_seconds_max,
            shares_port=settings.workers > 1,
            networks=Networks(settings.thrift_networks),
            names_are_logins=settings.network_user is None,
            mechanisms={} if settings.thrift_sasl == "off" else _mechanisms(settings, edge.logins),
            tls=_tls(settings, edge) if settings.thrift_tls else None,
            handshake_seconds_max=settings.header_seconds_max,
        )
        recorder = _Recorder(edge, self._refusals)
        self._server = BridgeServer(
            relay,
            options,
            settings.limits,
            codecs=codecs,
            metrics=recorder,
            connections=edge.connections,
            memory=edge.bodies.memory,
        )

    async def start(self) -> None:
        """Listen. Raises SecondaryListenerFailed."""
        options = self._server.options
        try:
            await self._server.start()
        except OSError as error:
            raise _cannot_listen(options.host, options.port, error) from error

    async def stop(self) -> None:
        """Let calls in flight finish, then close."""
        await self._server.stop()

    async def _admit(self, caller: Caller, method: str, session: Session) -> None:
        """Thrift has no words for "later": the call waits, and is refused only where that would take too long."""
        if self._rate_waits is None:
            return
        identity = Identity(caller.user, "", groups=frozenset(caller.groups))
        try:
            await self._rate_waits.wait(identity, method, session.share_address, session.gone)
        except (Refused, ClientGone) as error:
            raise self._failure_of(error, session) or error from error

    def _failure_of(self, error: Exception, session: Session) -> BridgeError | None:
        if isinstance(error, (Refused, Unavailable)) and error.limit:
            self._note_limit(error.limit, session)
        return failure_of(error)

    def _note_limit(self, limit: str, session: Session) -> None:
        self._refusals.note(limit, user=session.shown_user, address=host_of(session.address))


def check_port(host: str, port: int) -> None:
    """Raises SecondaryListenerFailed where the port cannot be had now."""
    try:
        for listener in listening_sockets(host, port):
            listener.close()
    except OSError as error:
        raise _cannot_listen(host, port, error) from error


def _cannot_listen(host: str, port: int, error: OSError) -> SecondaryListenerFailed:
    return SecondaryListenerFailed(f"cannot listen on thrift://{host}:{port}: {error.strerror or error}")


def failure_of(error: Exception) -> BridgeError | None:
    """What a call that the gateway could not run means for a Thrift client."""
    if isinstance(error, Refused):
        return NotTried(error.text) if error.headers == NOT_TRIED else CallFailed(error.text, error.reason)
    if isinstance(error, ClientGone):
        return CallFailed("the client has gone", "client_gone")
    return None


def _mechanisms(settings: Settings, parts: LoginParts) -> dict[str, Mechanism]:
    """How clients may log in besides PLAIN. Raises KerberosError."""
    mechanisms: dict[str, Mechanism] = {}
    keys = service_keys(settings)
    if keys is not None:
        mechanisms["GSSAPI"] = partial(TicketExchange, SaslTickets(keys, settings.kerberos.realms), parts.checks)
    delegation = parts.delegation
    if delegation is not None:

        async def prove(proof: Proof, owner: str, share_address: str | None) -> str:
            try:
                return (await delegation.login(proof, share_address)).answer
            except Refused as refused:
                raise LoginRefused(refused.text, refused.limit or refused.reason) from refused

        mechanisms["DIGEST-MD5"] = partial(TokenExchange, prove)
    return mechanisms


def _tls(settings: Settings, edge: EdgeComponents) -> ListenerTls:
    assert edge.certificate is not None  # the settings have seen to it
    proxies, is_required = edge.endpoint.proxies, settings.client_certificates.use == "require"
    return ListenerTls(edge.certificate.context, proxies.certificate_of, proxies.objection, is_required)


def _own_account(settings: Settings) -> str | None:
    """The user whose rights a process of the gateway's own account has, which could open the database as well."""
    return settings.administrators[0] if settings.authorization == "grants" and settings.administrators else None


class _Identification:
    """Passwords of SASL PLAIN are those of HTTP, tickets and certificates prove themselves. Without these
    `network_users` decides about clients of networks; others are `own_account`, or without one who `set_ugi` says.
    Records have that name, too.
    """

    def __init__(
        self, edge: EdgeComponents, refusals: Refusals, network_users: NetworkUsers, own_account: str | None = None
    ) -> None:
        self._network_users = network_users
        self._own_account = own_account
        self._authenticator = edge.endpoint.authenticator
        self._delegation = edge.logins.delegation
        self._is_reserved = edge.logins.users.is_reserved
        self._groups = edge.logins.groups
        self._refusals = refusals

    async def __call__(self, session: Session) -> Caller:
        credentials = session.credentials
        if session.proven_user is not None:
            return self._claimed(session, await self._proven(session, session.proven_user), host_of(session.address))
        if credentials is None and session.is_in_network:
            return self._claimed(session, self._of_network(session), host_of(session.address))
        if credentials is None:
            return await user_as_named(session) if self._own_account is None else self._as(session, self._own_account)
        if ":" in credentials.user:
            raise CallFailed("user or password is wrong", "unauthorized")
        token = b64encode(f"{credentials.user}:{credentials.password}".encode())
        field = (b"authorization", b"Basic " + token)
        head = RequestHead(dict([field]), [field], b"", host_of(session.address))
        try:
            identity = self._authenticator.remembered(head) or await self._authenticator.authenticate(head)
        except Refused as refused:
            if refused.limit:
                self._refusals.note(refused.limit, user=credentials.user, address=head.peer)
            raise CallFailed(refused.text, refused.reason) from refused
        session.logged_in_as = identity.user
        caller = Caller(identity.user, identity.groups, may_get_token=not identity.by_token)
        return self._claimed(session, caller, identity.address)

    @staticmethod
    def _as(session: Session, user: str, groups: frozenset[str] = frozenset()) -> Caller:
        session.logged_in_as = user
        session.real_user = "" if session.user == user else session.user
        return Caller(user, groups, real_user=session.real_user)

    def _of_network(self, session: Session) -> Caller:
        """The user of a client without a login. Raises CallFailed."""
        try:
            user = self._network_users.user(session.user or ANONYMOUS)
            check_reserved(user, self._is_reserved)
        except Refused as refused:
            raise failure_of(refused) or refused from refused
        caller = self._as(session, user, self._groups_of(user))
        return caller._replace(may_administer=self._network_users.may_administer(user))

    async def _proven(self, session: Session, user: str) -> Caller:
        """The user whose ticket or certificate was accepted, or whose token is still valid. Raises CallFailed."""
        try:
            if session.proof is None or self._delegation is None:
                check_reserved(user, self._is_reserved)
                return Caller(user, self._groups_of(user), may_get_token=session.proof is None)
            login = await self._delegation.login(session.proof, session.share_address)
        except Refused as refused:
            raise failure_of(refused) or refused from refused
        session.real_user = login.real_user
        return Caller(login.user, self._groups_of(login.user), real_user=login.real_user)

    def _groups_of(self, user: str) -> frozenset[str]:
        return frozenset() if self._groups is None else self._groups.of(user)

    def _claimed(self, session: Session, caller: Caller, address: str) -> Caller:
        """Count the connection as the caller's. Raises NotTried."""
        bound = session.claim(caller.user)
        if bound is not None:
            self._refusals.note(bound.name, user=caller.user, address=address)
            raise NotTried(f"there are too many connections of this user ({bound.name}); try again")
        return caller


class _Recorder:
    """The recorder of the Thrift port; a call is counted when its line is written."""

    def __init__(self, edge: EdgeComponents, refusals: Refusals) -> None:
        self._metrics = edge.endpoint.metrics
        self._refusals = refusals
        self._sinks = edge.endpoint.sinks
        self._traces = edge.endpoint.traces

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """What is watched here is seen in the process's open files."""

    def refused(self, reason: str, *, user: str = "", address: str = "") -> None:
        self._metrics.thrift_refusals[reason] += 1
        if reason in LIMITS:
            self._refusals.note(reason, user=user, address=address)

    def write(self, record: CallRecord) -> None:
        if record.cached:
            self._metrics.cache_hits += 1
        if self._traces is not None:
            # Thrift has no headers, so that the call begins a trace; its parts are not known here.
            record.trace = self._traces.begin((), ())
        for sink in self._sinks:
            sink(record)
