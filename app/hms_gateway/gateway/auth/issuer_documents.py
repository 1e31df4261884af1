"""Fetches what an OAuth2 issuer publishes: its configuration (OpenID discovery) and its key set.

Blocks, for a bounded time.
"""

import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from hms_gateway.runtime.addresses import is_safe_url

DOCUMENT_BYTES_MAX: Final = 1024 * 1024
# Of one step of a connection, and of a document as a whole.
STEP_SECONDS_MAX: Final = 4.0
DOCUMENT_SECONDS_MAX: Final = 8.0
_DISCOVERY: Final = "/.well-known/openid-configuration"
_PIECE_BYTES: Final = 64 * 1024


class NotFetched(Exception):
    """The issuer does not answer, or not with what it should; the text says what was asked."""


class _Configuration(msgspec.Struct):
    issuer: str
    jwks_uri: str


def discovered_keys_url(issuer: str, authority: Path | None) -> str:
    """URL of the issuer's key set, from its own configuration. Raises NotFetched."""
    url = issuer.rstrip("/") + _DISCOVERY
    try:
        configuration = msgspec.json.decode(fetch(url, authority), type=_Configuration)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NotFetched(f"{url} is not an OpenID configuration: {error}") from None
    if configuration.issuer != issuer:
        raise NotFetched(f"{url} is of the issuer {configuration.issuer!r}; set issuer to this text")
    if not is_safe_url(configuration.jwks_uri):
        raise NotFetched(f"{url} names the key set {configuration.jwks_uri!r}, which is not https://")
    return configuration.jwks_uri


def fetch(url: str, authority: Path | None, monotonic: Callable[[], float] = time.monotonic) -> bytes:
    """The document at `url`. Raises NotFetched, after DOCUMENT_SECONDS_MAX and STEP_SECONDS_MAX at the latest."""
    # Loaded here: a start without an issuer does without.
    from http.client import HTTPException

    end = monotonic() + DOCUMENT_SECONDS_MAX
    pieces, size = [], 0
    try:
        with _opener(authority, is_secure=url.startswith("https:")).open(url, timeout=STEP_SECONDS_MAX) as response:
            while piece := response.read1(_PIECE_BYTES):
                pieces.append(piece)
                size += len(piece)
                if size > DOCUMENT_BYTES_MAX:
                    raise NotFetched(f"{url} is longer than {DOCUMENT_BYTES_MAX} bytes")
                if monotonic() > end:
                    raise NotFetched(f"{url} takes longer than {DOCUMENT_SECONDS_MAX:g} s")
    except (OSError, HTTPException, ValueError) as error:
        raise NotFetched(f"{url} cannot be fetched: {error}") from None
    return b"".join(pieces)


def _opener(authority: Path | None, *, is_secure: bool) -> Any:
    """Follows no redirects: where keys come from is written in the settings, or in the issuer's configuration."""
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, build_opener

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    if not is_secure:
        return build_opener(NoRedirects)
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    return build_opener(NoRedirects, HTTPSHandler(context=context))
