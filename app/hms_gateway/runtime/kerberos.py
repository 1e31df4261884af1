"""Kerberos tickets as HTTP (SPNEGO, RFC 4559) and Thrift's SASL (GSSAPI, RFC 4752) carry them.

The work is done by the system's Kerberos library through the package gssapi (extra `kerberos`), which is loaded when
the first of these classes is made. Realms, ticket caches and clocks are the library's business: krb5.conf, KRB5CCNAME.
"""

import base64
import binascii
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from hms_gateway.runtime.file_versions import file_version

SCHEME: Final = "Negotiate"
# Of what is wrapped, in both directions.
WRAPPED_BYTES_MAX: Final = 64 * 1024
# A login takes three, or four with a client that begins with an empty one.
MESSAGES_MAX: Final = 8
_WRAPPED_BYTES_MIN: Final = 1024
_NO_LAYER: Final = 1
_INTEGRITY: Final = 2
_PRIVACY: Final = 4
_ALL_LAYERS: Final = _NO_LAYER | _INTEGRITY | _PRIVACY
_SPNEGO: Final = "1.3.6.1.5.5.2"
_INSTALL: Final = "pip install 'hms-gateway[kerberos]'"


class KerberosError(Exception):
    """Kerberos cannot be used, or a ticket is not accepted; the text is meant for who runs it or sends it."""


class Accepted(NamedTuple):
    """Whose ticket was accepted, of which of our services it was, and what is sent back to the client."""

    principal: str
    service: str
    answer: bytes


class ServiceKeys:
    """The keys of our services in a keytab; which of them a client takes is the client's choice.

    The file is read again when it changes; one that cannot be used is logged and leaves the keys before.
    """

    def __init__(self, keytab: Path) -> None:
        """Raises KerberosError when the keytab or the package gssapi is not there."""
        self._gssapi = _gssapi()
        self._keytab = keytab
        self._version = file_version(keytab)
        self._before = self._read = _ReadKeytab(self._gssapi, keytab)

    def context(self) -> Any:
        """The server's side of a new exchange of tickets."""
        self._look()
        return self._gssapi.SecurityContext(creds=self._read.keys, usage="accept")

    def _look(self) -> None:
        version = file_version(self._keytab)
        if version == self._version:
            return
        self._version = version
        try:
            # Those before are in use by exchanges that have begun.
            self._before, self._read = self._read, _ReadKeytab(self._gssapi, self._keytab)
            _log().info("keytab read again", file=str(self._keytab))
        except KerberosError as error:
            _log().error("the new keytab cannot be used, the keys before stay", problem=str(error))

    def accept(self, token: bytes) -> Accepted:
        """Check what a client sent behind `Negotiate`, base64. Raises KerberosError with what is wrong with it.

        Blocks, for some 40 µs. A token is accepted once: the library remembers those it has seen.
        """
        try:
            decoded = base64.b64decode(token.strip(), validate=True)
        except binascii.Error:
            raise KerberosError("what follows Negotiate is not base64") from None
        if decoded.startswith(b"NTLMSSP\0"):
            raise KerberosError("it is NTLM: the client has no Kerberos ticket for this server")
        try:
            context = self.context()
            answer = context.step(decoded)
            # Asked now: after an error that has an answer, it is only the next question that raises it.
            if not context.complete:
                # A second leg would need the connection to remember the first; clients with a ticket need one.
                raise KerberosError("it holds no ticket, only the offer to negotiate")
            return Accepted(str(context.initiator_name), str(context.target_name), base64.b64encode(answer or b""))
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(_reason(error)) from error


class _ReadKeytab:
    """The keys of one version of the file. The library opens a keytab for every ticket, so it is given a copy.

    Only Linux has files that are only in memory; elsewhere the library reads the keytab as it is at that moment.
    """

    def __init__(self, gssapi: ModuleType, keytab: Path) -> None:
        """Raises KerberosError."""
        self._copy: int | None = None
        try:
            content = keytab.read_bytes()
            if hasattr(os, "memfd_create"):
                self._copy = os.memfd_create("keytab", os.MFD_CLOEXEC)
                os.write(self._copy, content)
            place = str(keytab) if self._copy is None else f"/proc/self/fd/{self._copy}"
            self.keys = gssapi.Credentials(usage="accept", store={"keytab": place})
        except OSError as error:
            raise KerberosError(f"keytab {keytab} cannot be read: {error.strerror}") from error
        except gssapi.exceptions.GSSError as error:
            raise KerberosError(f"keytab {keytab} cannot be used: {_reason(error)}") from error

    def __del__(self) -> None:
        if self._copy is not None:
            os.close(self._copy)


class SaslTickets:
    """Lets in users of some realms by SASL GSSAPI; without `realms`, of the one of our own service."""

    def __init__(self, keys: ServiceKeys, realms: Collection[str] = ()) -> None:
        self._keys = keys
        self._realms = frozenset(realms)

    def begin(self) -> "SaslExchange":
        return SaslExchange(self._keys.context(), self._realms)


class SaslExchange:
    """The server's side of one login: the client's messages in, ours out, until there is a `user`.

    `wraps` says whether what follows is wrapped, for its integrity or to be unreadable: the client chooses.
    """

    def __init__(self, context: Any, realms: frozenset[str]) -> None:
        self._gssapi = _gssapi()
        self._context = context
        self._realms = realms
        self._has_offered = False
        self._messages = 0
        self._is_confidential = False
        self._piece_bytes_max = 0
        self.user: str | None = None
        self.wraps = False

    def answer(self, message: bytes) -> bytes:
        """Our answer to the client's next message. Raises KerberosError."""
        self._messages += 1
        if self._messages > MESSAGES_MAX:
            raise KerberosError("it takes too many messages")
        try:
            if not self._context.complete:
                token: bytes = self._context.step(message) or b""
                # A client that gets a token answers it with an empty message.
                return token if token or not self._context.complete else self._offer()
            if not self._has_offered:
                return self._offer()
            self._choose(self._context.unwrap(message).message)
            return b""
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(_reason(error)) from error

    def wrap(self, content: bytes) -> Iterator[bytes]:
        """The wrapped `content`, in pieces that the client can take."""
        for begin in range(0, len(content), self._piece_bytes_max):
            piece = content[begin : begin + self._piece_bytes_max]
            yield self._context.wrap(piece, self._is_confidential).message

    def unwrap(self, content: bytes) -> bytes:
        """The content of a message that the client has wrapped. Raises KerberosError."""
        try:
            unwrapped = self._context.unwrap(content)
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(_reason(error)) from error
        if self._is_confidential and not unwrapped.encrypted:
            raise KerberosError("a part of a message is not encrypted")
        message: bytes = unwrapped.message
        return message

    def _offer(self) -> bytes:
        self._has_offered = True
        offer = bytes([_ALL_LAYERS]) + WRAPPED_BYTES_MAX.to_bytes(3, "big")
        wrapped: bytes = self._context.wrap(offer, False).message
        return wrapped

    def _choose(self, choice: bytes) -> None:
        """The layer that the client wants, and as whom. Raises KerberosError."""
        if len(choice) < 4 or choice[0] not in (_NO_LAYER, _INTEGRITY, _PRIVACY):
            raise KerberosError("the choice of a security layer cannot be read")
        self.wraps = choice[0] != _NO_LAYER
        self._is_confidential = choice[0] == _PRIVACY
        if self.wraps:
            wanted = max(int.from_bytes(choice[1:4], "big"), _WRAPPED_BYTES_MIN)
            self._piece_bytes_max = self._context.get_wrap_size_limit(min(wanted, WRAPPED_BYTES_MAX))
        principal, service = str(self._context.initiator_name), str(self._context.target_name)
        realm = principal.rpartition("@")[2]
        if realm not in (self._realms or {service.rpartition("@")[2]}):
            raise KerberosError(f"users of the realm {realm} are not let in")
        wanted_user = choice[4:].decode("utf-8", "replace")
        if wanted_user not in ("", principal, short_name(principal)):
            raise KerberosError("it asks to act for another user")
        self.user = short_name(principal)


class ServiceTickets:
    """Tickets for the server of a host name, from the ticket cache or the client keytab of this process."""

    def __init__(self, host: str) -> None:
        """Raises KerberosError when the package gssapi is not there."""
        self._gssapi = _gssapi()
        self._host = host
        kind = self._gssapi.NameType.hostbased_service
        self._service = self._gssapi.Name(f"HTTP@{host}", kind)
        self._mechanism = self._gssapi.OID.from_int_seq(_SPNEGO)

    def user(self) -> str:
        """The first part of the principal whose tickets these are. Raises KerberosError when there are none."""
        try:
            return short_name(str(self._gssapi.Credentials(usage="initiate").name))
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(f"no Kerberos ticket: {_reason(error)}") from error

    def authorization(self) -> str:
        """A new value of the header Authorization, for one request. Asks the KDC without a ticket.

        Raises KerberosError.
        """
        try:
            context: Any = self._gssapi.SecurityContext(name=self._service, usage="initiate", mech=self._mechanism)
            token = context.step()
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(f"no Kerberos ticket for HTTP/{self._host}: {_reason(error)}") from error
        return f"{SCHEME} {base64.b64encode(token).decode()}"


def short_name(principal: str) -> str:
    """`alice` of alice@LAKE.EXAMPLE, `spark` of spark/host.example@LAKE.EXAMPLE, as by Hadoop's default rule."""
    return principal.rpartition("@")[0].partition("/")[0]


def _gssapi() -> ModuleType:
    try:
        import gssapi
    except ImportError as error:
        raise KerberosError(f"Kerberos needs the package gssapi, which is missing ({error}): {_INSTALL}") from error
    module: ModuleType = gssapi
    return module


def _reason(error: Any) -> str:
    """The most useful part of the library's message."""
    if error.min_code:
        return str(error.get_all_statuses(error.min_code, False)[-1])
    return str(error.get_all_statuses(error.maj_code, True)[-1])


def _log() -> Any:
    # Commands that only send tickets do not load it.
    import structlog

    return structlog.get_logger("hms_gateway.kerberos")
