"""Proxies: which peers are proxies, their proof, and the address of the client behind them.

Two kinds: a trusted proxy names the user of a request (`trusted_proxy`); a forwarding proxy passes Authorization on and
is asked for nothing but the client's address. What any other peer says about addresses is not looked at.
"""

import hmac
from asyncio import BaseTransport
from collections.abc import Callable, Sequence
from functools import lru_cache

from hms_gateway.gateway.admission.identity import HeaderList, ProxyTrust, RequestHead
from hms_gateway.runtime.addresses import Networks, normal_address, share_of
from hms_gateway.runtime.door import ShownCertificate

X_FORWARDED_FOR = b"x-forwarded-for"
# Of a long list of hops only the end is read: the proxies nearest to the gateway wrote it.
FORWARDED_BYTES_MAX = 1_024
NODE_CHARACTERS_MAX = 64


class Proxies:
    """Makes the head of every request. Without any proxy that is all it does.

    `secret` is the value of the header `secret_header` that a trusted proxy has to send beside its address. With
    `needs_certificate` its certificate has to prove it, too; where no address is `trusted`, the certificate alone does.
    `certificate_of` reads what a new connection has shown, and `objection` says why that does not hold now.
    `forwarded_header` is the one header that is read for the client's address.
    """

    def __init__(
        self,
        trusted: Sequence[str] = (),
        forwarding: Sequence[str] = (),
        *,
        secret: str | None = None,
        secret_header: str = "x-proxy-secret",
        needs_certificate: bool = False,
        certificate_of: Callable[[BaseTransport], ShownCertificate | None] = lambda transport: None,
        objection: Callable[[ShownCertificate], str] = lambda certificate: "",
        forwarded_header: str = "x-forwarded-for",
    ) -> None:
        self._trusted = Networks(trusted)
        self._all = Networks([*trusted, *forwarding])
        self._forwarding = Networks(forwarding)
        self._has_any = bool(self._all) or needs_certificate
        self._secret = None if secret is None else secret.encode()
        self._secret_header = secret_header.lower().encode()
        self._needs_certificate = needs_certificate
        self._is_known_by_certificate = needs_certificate and not trusted
        self.certificate_of = certificate_of
        self.objection = objection
        self._forwarded_header = forwarded_header.lower().encode()
        self._client_behind = lru_cache(maxsize=1024)(self._client_of)

    def share_of(self, address: str) -> str | None:
        """Whose share of an address a request from there uses; None for a proxy, since many call from its address.

        A client's address that a proxy named is never a proxy's.
        """
        return None if self._has_any and self._all.contain(address) else share_of(address)

    def head(
        self,
        headers: dict[bytes, bytes],
        header_list: HeaderList,
        query: bytes,
        peer: str,
        certificate: ShownCertificate | None = None,
        digests: dict[bytes, bytes] | None = None,
    ) -> RequestHead:
        """Runs for every request. `certificate` and `digests` are of the request's connection."""
        if not self._has_any or not (
            self._all.contain(peer) or (self._is_known_by_certificate and self._proves_proxy(certificate))
        ):
            return RequestHead(headers, header_list, query, peer, "", ProxyTrust.NONE, certificate, digests)
        trust = self._trust(header_list, peer, certificate)
        address = ""
        if trust is ProxyTrust.TRUSTED or self._forwarding.contain(peer):
            address = self._forwarded_address(header_list)
        return RequestHead(headers, header_list, query, peer, address, trust, certificate, digests)

    def _proves_proxy(self, certificate: ShownCertificate | None) -> bool:
        return certificate is not None and not certificate.user and not self.objection(certificate)

    def _trust(self, header_list: HeaderList, peer: str, certificate: ShownCertificate | None) -> ProxyTrust:
        if not self._is_known_by_certificate and not self._trusted.contain(peer):
            return ProxyTrust.NONE
        if self._needs_certificate and not self._proves_proxy(certificate):
            # Without addresses nothing but the certificate says that it is a proxy.
            return ProxyTrust.NONE if self._is_known_by_certificate else ProxyTrust.UNPROVEN
        if self._secret is None:
            return ProxyTrust.TRUSTED
        given = [value for name, value in header_list if name == self._secret_header]
        is_right = len(given) == 1 and hmac.compare_digest(given[0], self._secret)
        return ProxyTrust.TRUSTED if is_right else ProxyTrust.UNPROVEN

    def _forwarded_address(self, header_list: HeaderList) -> str:
        values = [value for name, value in header_list if name == self._forwarded_header]
        return self._client_behind(b",".join(values)[-FORWARDED_BYTES_MAX - 1 :]) if values else ""

    def _client_of(self, hops: bytes) -> str:
        """The right-most hop that is not a proxy of ours; "" where the list ends or cannot be read before.

        Every proxy adds at the right, so what is left of that hop was written by the client, whatever it says.
        """
        is_cut = len(hops) > FORWARDED_BYTES_MAX
        nodes = hops.decode("latin-1").split(",")[is_cut:]
        for node in reversed(nodes):
            address = node_address(node) if self._forwarded_header == X_FORWARDED_FOR else element_address(node)
            if not address:
                return ""
            if not self._all.contain(address):
                return address
        return ""


def element_address(element: str) -> str:
    """The address of `for=` in one element of the header Forwarded (RFC 7239); "" when there is not exactly one."""
    pairs = [pair.strip().partition("=") for pair in element.split(";")]
    nodes = [node for name, _, node in pairs if name.lower() == "for"]
    return node_address(nodes[0]) if len(nodes) == 1 else ""


def node_address(node: str) -> str:
    """The address of `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`, quoted or not; "" for others."""
    node = node.strip()
    if len(node) > NODE_CHARACTERS_MAX:
        return ""
    if len(node) >= 2 and node[0] == node[-1] == '"':
        node = node[1:-1]
    if node.startswith("["):
        host, bracket, port = node[1:].partition("]")
        return normal_address(host) if bracket and ":" in host and _is_port(port) else ""
    if node.count(":") == 1:
        host, _, port = node.partition(":")
        return normal_address(host) if _is_port(f":{port}") else ""
    return normal_address(node)


def _is_port(text: str) -> bool:
    return not text or (text[0] == ":" and text[1:].isascii() and text[1:].isdigit() and len(text) <= 6)
