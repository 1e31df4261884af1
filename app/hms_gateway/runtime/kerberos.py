"""Kerberos tickets as HTTP carries them (SPNEGO, RFC 4559): accepted by a server, gotten by a client.

The work is done by the system's Kerberos library through the package gssapi (extra `kerberos`), which is loaded when
the first of these classes is made. Realms, ticket caches and clocks are the library's business: krb5.conf, KRB5CCNAME.
"""

import base64
import binascii
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

SCHEME: Final = "Negotiate"
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
    """The keys of our services in a keytab; which of them a client takes is the client's choice."""

    def __init__(self, keytab: Path) -> None:
        """Raises KerberosError when the keytab or the package gssapi is not there."""
        self._gssapi = _gssapi()
        try:
            with keytab.open("rb"):
                pass
            self._keys = self._gssapi.Credentials(usage="accept", store={"keytab": str(keytab)})
        except OSError as error:
            raise KerberosError(f"keytab {keytab} cannot be read: {error.strerror}") from error
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(f"keytab {keytab} cannot be used: {_reason(error)}") from error

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
            context = self._gssapi.SecurityContext(creds=self._keys, usage="accept")
            answer = context.step(decoded)
            # Asked now: after an error that has an answer, it is only the next question that raises it.
            if not context.complete:
                # A second leg would need the connection to remember the first; clients with a ticket need one.
                raise KerberosError("it holds no ticket, only the offer to negotiate")
            return Accepted(str(context.initiator_name), str(context.target_name), base64.b64encode(answer or b""))
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(_reason(error)) from error


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
