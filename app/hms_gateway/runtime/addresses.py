"""Reach of an address that a server listens on; addresses of one caller; networks."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """True if only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_safe_url(url: str) -> bool:
    """True if nobody can change what `url` returns: HTTPS, or HTTP on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def host_and_port(host: str, port: int) -> str:
    """An end of a connection as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_of(address: str) -> str:
    """The host of what `host_and_port` wrote, or of an address without a port."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


@lru_cache(maxsize=4096)
def share_of(address: str) -> str:
    """Whose share of the connections an address uses: its own, or that of the /64 a host of IPv6 has to itself."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address


def normal_address(text: str) -> str:
    """The one spelling of an address, IPv4 where IPv6 only wraps it; "" for what is not an address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return ""
        address = address.ipv4_mapped or address
    return str(address)


class Networks:
    """Some networks; answers for an address are cached."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = [ipaddress.ip_network(network, strict=False) for network in networks]
        self.contain = lru_cache(maxsize=4096)(self._contain)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def _contain(self, address: str) -> bool:
        # A peer of this link is written with the name of the interface.
        normal = normal_address(address.partition("%")[0])
        return bool(normal) and any(ipaddress.ip_address(normal) in network for network in self._networks)
