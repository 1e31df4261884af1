"""Clients of SASL over TCP as Thrift's are: START, messages of a mechanism, then pieces with their lengths in front."""

import base64
import contextlib
import hashlib
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

from hms_gateway.bridge.thrift.sasl import SaslStatus, negotiation_message
from hms_gateway.rpc.structs import LeaseObject
from hms_gateway.runtime.logins.delegation_token import read_token_text
from tests.bridge.bridge_process import ApacheClient
from tests.support.patience import PATIENCE_SECONDS

Fields = dict[str, str]


class Refused(Exception):
    """The server has ended the negotiation; the text is its own."""


class SaslTransport:
    """Logs in when it is made, over TLS with a `context`; a subclass has the mechanism."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname="localhost")
        self._file = self._socket.makefile("rb")
        self._read = b""
        self._written = b""
        try:
            self.log_in()
        except BaseException:
            self.close()
            raise

    def log_in(self) -> None:
        raise NotImplementedError

    def send(self, status: SaslStatus, payload: bytes) -> None:
        self._socket.sendall(negotiation_message(status, payload))

    def receive(self, wanted: SaslStatus) -> bytes:
        """Raises Refused."""
        head = self._file.read(5)
        payload = self._file.read(int.from_bytes(head[1:5], "big"))
        if not head or head[0] != wanted:
            raise Refused(payload.decode())
        return payload

    def wrap(self, content: bytes) -> bytes:
        return content

    def unwrap(self, piece: bytes) -> bytes:
        return piece

    def write(self, data: bytes) -> None:
        self._written += data

    def flush(self) -> None:
        piece, self._written = self.wrap(self._written), b""
        self._socket.sendall(len(piece).to_bytes(4, "big") + piece)

    def readAll(self, size: int) -> bytes:
        while len(self._read) < size:
            head = self._file.read(4)
            if not head:
                raise EOFError
            self._read += self.unwrap(self._file.read(int.from_bytes(head, "big")))
        taken, self._read = self._read[:size], self._read[size:]
        return taken

    read = readAll

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class PlainTransport(SaslTransport):
    def __init__(self, port: int, user: str, password: str, context: ssl.SSLContext | None = None) -> None:
        self._user, self._password = user, password
        super().__init__(port, context)

    def log_in(self) -> None:
        self.send(SaslStatus.START, b"PLAIN")
        self.send(SaslStatus.COMPLETE, f"\0{self._user}\0{self._password}".encode())
        self.receive(SaslStatus.COMPLETE)


class DigestTransport(SaslTransport):
    """DIGEST-MD5 with a delegation token, as RFC 2831 has it and Hadoop uses it.

    `change` makes of a response another one; what was sent and received is in `response` and `challenge`.
    """

    def __init__(
        self,
        port: int,
        token: str,
        change: Callable[[Fields], Fields] = lambda fields: fields,
        context: ssl.SSLContext | None = None,
    ) -> None:
        name, password = read_token_text(token)
        self._user, self._password = base64.b64encode(name).decode(), base64.b64encode(password).decode()
        self._change = change
        super().__init__(port, context)

    def log_in(self) -> None:
        self.send(SaslStatus.START, b"DIGEST-MD5")
        self.send(SaslStatus.OK, b"")
        self.challenge = fields_of(self.receive(SaslStatus.OK).decode())
        self.response = self._change(response(self._user, self._password, self.challenge["nonce"]))
        self.send(SaslStatus.OK, ",".join(f'{name}="{value}"' for name, value in self.response.items()).encode())
        proof = self.receive(SaslStatus.COMPLETE).decode()
        assert proof == f"rspauth={digest(self._user, self._password, self.response, ':')}"


def response(user: str, password: str, nonce: str, **others: str) -> Fields:
    """That of a client with the password."""
    fields = {"username": user, "realm": "default", "nonce": nonce, "nc": "00000001", "cnonce": "of the client"}
    fields |= {"digest-uri": "null/default", "qop": "auth", **others}
    return {**fields, "response": digest(user, password, fields, "AUTHENTICATE:")}


def digest(user: str, password: str, fields: Fields, method: str) -> str:
    login = hashlib.md5(f"{user}:{fields['realm']}:{password}".encode()).digest()
    a1 = hashlib.md5(login + f":{fields['nonce']}:{fields['cnonce']}".encode()).hexdigest()
    a2 = hashlib.md5((method + fields["digest-uri"]).encode()).hexdigest()
    middle = ":".join(fields[name] for name in ("nonce", "nc", "cnonce", "qop"))
    return hashlib.md5(f"{a1}:{middle}:{a2}".encode()).hexdigest()


def fields_of(text: str) -> Fields:
    """Of a challenge, none of whose values has a comma."""
    return {name: value.strip('"') for name, _, value in (part.partition("=") for part in text.split(","))}


@contextlib.contextmanager
def logged_in(transport: SaslTransport) -> Iterator[ApacheClient]:
    """A client on the connection, which ends with it."""
    try:
        yield ApacheClient(transport)
    finally:
        transport.close()


def whose(client: Any) -> str:
    """Who the gateway takes a client for: the owner of a lease that it asks for."""
    wanted = [LeaseObject("default", "whose")]
    lease_id = client.grab_lease(wanted, 60, 0)
    (lease,) = client.list_lease(wanted)
    client.drop_lease(lease_id, [])
    user: str = lease.user
    return user
