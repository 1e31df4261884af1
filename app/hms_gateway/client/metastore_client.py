"""A small synchronous client of any metastore that speaks Thrift over HTTP in TJSON ([MS-HMSHTTP])."""

import itertools
import ssl
from collections.abc import Callable, Generator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

import httpx

from hms_gateway.client.in_catalog import call_in_catalog, catalog_named, lack_of_catalog
from hms_gateway.client.transaction import MetastoreTransaction
from hms_gateway.rpc.structs import METHODS, Method, Struct
from hms_gateway.rpc.wire import (
    ApplicationError,
    ApplicationErrorType,
    Message,
    MessageType,
    ProtocolError,
    TApplicationException,
)
from hms_gateway.rpc.wire.tjson_codec import TJsonCodec
from hms_gateway.rpc.wire.tjson_shapes import Fields
from hms_gateway.runtime.kerberos import KerberosError, ServiceTickets
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.client_certificate import refuses_certificate
from hms_gateway.runtime.logins.login_tokens import LoginToken, TokenError

# Called with the bytes received so far and the whole number of bytes, None when the server does not send it.
Progress = Callable[[int, int | None], None]

_CONTENT_TYPE = "application/vnd.apache.thrift.json"
# Catalogs are read with it, not data: insert-only tables are shown, also by calls that have no field for capabilities.
_CAPABILITIES = {"x-hms-capabilities": "INSERT_ONLY_TABLES"}
_SHOWN_CHARACTERS_MAX = 200
_NO_LOGIN_HINT = "log in with a user and password, a token or a client certificate"
_DENIED_HINT = "give another user or password; `hms-gateway user add NAME` beside the gateway sets a password"


class ClientError(Exception):
    """The call got no answer of the metastore; `hint` says what to look at, empty when there is nothing to say."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


class NotReached(ClientError):
    """The URL does not answer, or the connection broke.

    was_sent  the request may have arrived, and been done
    may_pass  another try may be lucky: the server is restarting, the connection broke
    """

    def __init__(self, text: str, hint: str = "", *, was_sent: bool = False, may_pass: bool = False) -> None:
        super().__init__(text, hint)
        self.was_sent = was_sent
        self.may_pass = may_pass


class NotTrusted(ClientError):
    """The server's certificate is not accepted."""


class NotAuthorized(ClientError):
    """The server does not take who we are, or does not let us in (HTTP 401 or 403); or we have no ticket."""


class NoCatalog(ClientError):
    """The metastore does not have the catalog of the client, or knows no catalogs."""


class NotAMetastore(ClientError):
    """Something answered, but not with the Thrift message that belongs to the call."""


class Busy(NotAMetastore):
    """The server asks to try again later (HTTP 429 or 503); nothing is known about whether the call was made."""

    def __init__(self, text: str, hint: str = "", retry_after_seconds: float = 0.0) -> None:
        super().__init__(text, hint)
        self.retry_after_seconds = retry_after_seconds


class TicketAuth(httpx.Auth):
    """Logs in with Kerberos tickets, one for each request."""

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Raises KerberosError."""
        request.headers["Authorization"] = ServiceTickets(request.url.host).authorization()
        yield request


class TokenAuth(httpx.Auth):
    """Logs in with a token (`Authorization: Bearer`); one of a file or a program is read again when it is refused."""

    def __init__(self, token: str | LoginToken) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Raises TokenError."""
        source = self._token
        token = source if isinstance(source, str) else source.known() or source.read()
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == 401 and not isinstance(source, str):
            another = source.renewed(token)
            if another is not None:
                request.headers["Authorization"] = f"Bearer {another}"
                yield request


class OfCatalog:
    """Base of clients: calls about one catalog, empty for the default one, which is looked for before the first."""

    def __init__(self, place: str, catalog: str) -> None:
        self._place = place
        self._catalog = catalog_named(catalog)
        self._has_catalog = not self._catalog

    def _about_catalog(self, sending: Callable[..., Any], name: str, arguments: Struct) -> Any:
        """Raises NoCatalog."""
        if not self._has_catalog and (lack := lack_of_catalog(sending, self._catalog)) is not None:
            raise NoCatalog(f"{self._place}: {lack}", "give another --catalog, or none")
        self._has_catalog = True
        return call_in_catalog(sending, self._catalog, name, arguments)


class MetastoreClient(OfCatalog):
    """Calls methods by IDL name over one kept connection; nothing is retried. Use it as a context manager or close it.

    A context as `verify` that has loaded a certificate shows it, as the login where there is no `auth`.
    `methods` are those of the dialect in which the server speaks at this URL; without them it is that of 2.3, as
    the protocol says (design D2). With a `catalog` (Hive 3.1 and later), names of databases are names in it, and
    `@other#database` is in another one.
    """

    def __init__(
        self,
        url: str,
        auth: tuple[str, str] | httpx.Auth | None = None,
        verify: bool | ssl.SSLContext = True,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 600.0,
        methods: Mapping[str, Method] = METHODS,
        limits: Limits | None = None,
        transport: httpx.BaseTransport | None = None,
        catalog: str = "",
    ) -> None:
        super().__init__(url, catalog)
        self._url = url
        self._codec = TJsonCodec(limits or Limits())
        self._methods = methods
        self._seqids = itertools.count(1)
        self._denied_hint = _NO_LOGIN_HINT if auth is None else "" if isinstance(auth, httpx.Auth) else _DENIED_HINT
        self._http = httpx.Client(
            auth=auth,
            verify=verify,
            headers={**_CAPABILITIES, **(headers or {}), "Content-Type": _CONTENT_TYPE},
            timeout=httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, 20.0)),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        name: str,
        /,
        *arguments: Any,
        on_progress: Progress | None = None,
        idempotency_key: str | None = None,
        fields: Fields | None = None,
        headers: Mapping[str, str] | None = None,
        **named: Any,
    ) -> Any:
        """Call a method with arguments in IDL order or by IDL name; returns its value, None when it is void.

        A gateway does a call that it gets again with the same `idempotency_key` once, and repeats its answer.
        `headers` are sent with this call only.
        Of the structs that `fields` names only those fields are read, which takes less time; others may be unset.
        Raises the declared exception as the class of `structs`, ApplicationError when the server refuses the call
        as such (an unknown method, for instance), ClientError without an answer, TypeError for an unknown method
        or argument name.
        """
        sending = partial(
            self._call, on_progress=on_progress, idempotency_key=idempotency_key, fields=fields, headers=headers
        )
        return self._about_catalog(sending, name, self.arguments(name, arguments, named))

    def _call(
        self,
        name: str,
        /,
        *arguments: Any,
        on_progress: Progress | None,
        idempotency_key: str | None,
        fields: Fields | None,
        headers: Mapping[str, str] | None,
        **named: Any,
    ) -> Any:
        method = method_of(self._methods, name)
        # With a key the same call has to be the same message.
        seqid = next(self._seqids) if idempotency_key is None else 1
        body = self._encode(method, arguments_of(method, arguments, named), seqid)
        sent = dict(headers or {})
        if idempotency_key is not None:
            sent["Idempotency-Key"] = idempotency_key
        answer = self._post(body, sent, on_progress or _ignore)
        if method.oneway:
            return None
        return self._value(method, self._read_message(answer, name), fields)

    def arguments(self, name: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Struct:
        """The arguments of a call as the struct that is sent. Raises TypeError."""
        return arguments_of(method_of(self._methods, name), positional, named)

    def transaction(self) -> MetastoreTransaction:
        """A transaction to be entered by `with`: its reads see one snapshot, it commits at the end."""
        return MetastoreTransaction(self)

    def _encode(self, method: Method, arguments: Struct, seqid: int) -> bytes:
        kind = MessageType.ONEWAY if method.oneway else MessageType.CALL
        before, after = self._codec.envelope(method.name, kind, seqid)
        payload = self._codec.encode(arguments)
        return before + (payload if isinstance(payload, bytes) else b"".join(payload)) + after

    def _post(self, body: bytes, headers: Mapping[str, str], on_progress: Progress) -> bytes:
        try:
            with self._http.stream("POST", self._url, content=body, headers=headers) as response:
                answer = _received(response, on_progress)
        except httpx.HTTPError as error:
            raise _transport_error(self._url, error) from error
        except TokenError as error:
            raise NotAuthorized(str(error), error.hint) from error
        except KerberosError as error:
            raise NotAuthorized(str(error), "kinit gets a ticket, klist shows those you have") from error
        except httpx.InvalidURL as error:
            raise NotReached(f"{self._url!r} is not a URL: {error}") from error
        self._check_status(response, answer)
        return answer

    def _check_status(self, response: httpx.Response, answer: bytes) -> None:
        status = response.status_code
        if status in (401, 403):
            text = f"{self._url} answers {status} {response.reason_phrase}{self._problem_in(answer)}"
            raise NotAuthorized(text, self._denied_hint)
        if status == 404:
            raise NotAMetastore(f"{self._url} answers 404 Not Found", "the path of the URL is not the metastore's")
        if status != 200:
            text = f"{self._url} answers {status} {response.reason_phrase}{self._problem_in(answer)}"
            if status in (429, 503):
                after = response.headers.get("retry-after", "")
                hint = "the server is busy or its database is away; try again"
                raise Busy(text, hint, float(after) if after.isdecimal() else 0.0)
            raise NotAMetastore(text)

    def _problem_in(self, answer: bytes) -> str:
        """What an error answer says, ready to follow the status: the text of its Thrift exception, or plain text."""
        try:
            message = self._codec.read_message(answer)
            if message.type is MessageType.EXCEPTION:
                return f": {self._application_error(message)}"
        except ProtocolError:
            pass
        shown = answer[:_SHOWN_CHARACTERS_MAX].decode(errors="replace").strip()
        return f": {shown}" if shown and not shown.startswith("<") else ""

    def _read_message(self, answer: bytes, name: str) -> Message:
        try:
            message = self._codec.read_message(answer)
        except ProtocolError as error:
            shown = answer[:_SHOWN_CHARACTERS_MAX].decode(errors="replace")
            hint = f"is this the URL of a metastore? The answer begins with {shown!r}"
            raise NotAMetastore(f"{self._url} does not answer in Thrift JSON: {error}", hint) from error
        if message.name != name and message.type is not MessageType.EXCEPTION:
            raise NotAMetastore(f"{self._url} answers {message.name} to a call of {name}")
        return message

    def _value(self, method: Method, message: Message, fields: Fields | None) -> Any:
        """Sample replies carry another seqid than their requests, so it is not compared (protocol §3.1.5)."""
        try:
            if message.type is MessageType.EXCEPTION:
                raise self._application_error(message)
            if fields is None:
                result = self._codec.decode(method.result, message.payload)
            else:
                result = self._codec.decode_narrow(method.result, message.payload, fields)
        except ProtocolError as error:
            raise NotAMetastore(f"{self._url}: the answer to {method.name} is not readable: {error}") from error
        return value_of(method, result)

    def _application_error(self, message: Message) -> ApplicationError:
        return application_error(self._codec.decode(TApplicationException, message.payload))


def method_of(methods: Mapping[str, Method], name: str) -> Method:
    """Raises TypeError for an unknown name."""
    if name not in methods:
        raise TypeError(f"{name} is not a method of the metastore")
    return methods[name]


def arguments_of(method: Method, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Struct:
    """The arguments in IDL order or by IDL name as a struct. Raises TypeError for one too many or unknown."""
    names = [field.name for field in method.definition.arguments]
    if len(positional) > len(names):
        raise TypeError(f"{method.name} has {len(names)} arguments, {len(positional)} were given")
    values = dict(zip(names, positional, strict=False))
    for argument, value in named.items():
        if argument not in names or argument in values:
            raise TypeError(f"{method.name}: argument {argument} is unknown or given twice")
        values[argument] = value
    return method.arguments(**values)


def value_of(method: Method, result: Struct) -> Any:
    """What a result struct says: its value, None of a void method. Raises the declared exception in it."""
    for field in method.definition.throws:
        declared = getattr(result, field.name)
        if declared is not None:
            raise declared
    if method.definition.returns is None:
        return None
    value = getattr(result, "success", None)
    if value is None:
        raise ApplicationError(f"{method.name} failed: unknown result", ApplicationErrorType.MISSING_RESULT)
    return value


def application_error(said: TApplicationException) -> ApplicationError:
    """The application exception of a reply as an exception to raise."""
    try:
        kind = ApplicationErrorType(said.type or 0)
    except ValueError:
        kind = ApplicationErrorType.UNKNOWN
    return ApplicationError(said.message or "no message", kind)


def _ignore(received: int, total: int | None) -> None:
    """The default: progress is not shown."""


def _received(response: httpx.Response, on_progress: Progress) -> bytes:
    length = response.headers.get("content-length", "")
    total = int(length) if length.isdigit() and "content-encoding" not in response.headers else None
    parts = bytearray()
    for chunk in response.iter_bytes():
        parts += chunk
        on_progress(len(parts), total)
    return bytes(parts)


def _transport_error(url: str, error: httpx.HTTPError) -> ClientError:
    text = str(error) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in text:
        hint = "give its certificate with --cacert, or --insecure to take any certificate"
        return NotTrusted(f"the certificate of {url} is not trusted: {text}", hint)
    if refuses_certificate(text):
        hint = "give the one of your user with --certificate and --key, or in the context of a program"
        return NotAuthorized(f"{url} refuses the client certificate, or needs one: {text}", hint)
    if "WRONG_VERSION_NUMBER" in text or "wrong version number" in text.lower():
        return NotReached(f"{url} does not speak TLS", "use http:// if it is meant to serve without TLS")
    if isinstance(error, httpx.UnsupportedProtocol):
        return NotReached(f"{url!r} is not a URL", "it begins with https:// or http://")
    if isinstance(error, httpx.TimeoutException):
        was_sent = not isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
        hint = "raise --timeout if the call may take longer"
        return NotReached(f"{url} did not answer in time", hint, was_sent=was_sent)
    if isinstance(error, httpx.ConnectError):
        hint = "is the server running, and is the port right?"
        return NotReached(f"{url} cannot be reached: {text}", hint, may_pass=True)
    # asyncio's servers end a refused handshake without an alert.
    is_plain = url.lower().startswith("http:")
    looks_alike = "with TLS" if is_plain else "that refuses the client certificate, or needs one,"
    hint = f"over {'http' if is_plain else 'https'}:// a server {looks_alike} looks like this"
    return NotReached(f"the connection to {url} broke: {text}", hint, was_sent=True, may_pass=True)
