"""Who can reach an address that a server listens on, and which addresses are one caller's."""

import ipaddress
from functools import lru_cache


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def share_of(address: str) -> str:
    """Whose share of the connections an address uses: its own, or that of the /64 a host of IPv6 has to itself."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
