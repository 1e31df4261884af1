"""Writes into docs/security.md who gets in without a login, for every combination of the settings that say so."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

from hms_gateway.bridge.server.admission import BridgeOptions
from hms_gateway.runtime.addresses import Networks
from hms_gateway.runtime.settings import Settings
from tools.marked import with_lines

MARKER: Final = "<!-- open doors: python -m tools doors -->"
HOSTS: Final = ("127.0.0.1", "0.0.0.0")
NETWORKS: Final[tuple[list[str], ...]] = ([], ["127.0.0.0/8"], ["10.0.0.0/8"])
SASL: Final = ("off", "allow", "require")
REFUSED: Final = "no start"
_LETS_IN: Final = {"logins": [], "account": ["own account"], "networks": ["networks", "own account"]}


def security_path() -> Path:
    return Path(__file__).resolve().parent.parent / "docs" / "security.md"


def thrift_door(host: str, networks: list[str], sasl: Any, **others: Any) -> str:
    """The clients that the Thrift port lets in, or REFUSED."""
    try:
        settings = Settings(thrift_port=9083, thrift_host=host, thrift_networks=networks, thrift_sasl=sasl, **others)
    except ValueError:
        return REFUSED
    required = "require" if settings.thrift_needs_login else settings.thrift_sasl
    options = BridgeOptions(host=host, sasl=required, networks=Networks(settings.thrift_networks))
    logins = [] if required == "off" else ["logins"]
    return ", ".join(_LETS_IN[options.lets_in] + logins)


def http_door(host: str, networks: list[str], **others: Any) -> str:
    """The clients that the HTTPS port lets in, or REFUSED."""
    try:
        settings = Settings(host=host, http_networks=networks, **others)
    except ValueError:
        return REFUSED
    return "networks, logins" if settings.http_networks else "logins"


def _lines() -> Iterator[str]:
    yield from ("", "| address | networks | " + " | ".join(f'`thrift_sasl = "{sasl}"`' for sasl in SASL) + " | HTTPS |")
    yield "|---|---|---|---|---|---|"
    for host, networks in product(HOSTS, NETWORKS):
        cells = [thrift_door(host, networks, sasl) for sasl in SASL]
        yield f"| `{host}` | {_shown(networks)} | {' | '.join([*cells, http_door(host, networks)])} |"
    yield ""


def _shown(texts: list[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts) or "–"


def security_text(document: str) -> str:
    """The document with its tables written anew."""
    return with_lines(document, MARKER, _lines())
