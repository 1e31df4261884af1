"""Makes the issuers that the settings name: where the keys of each come from, and what its tokens need."""

import time
from collections.abc import Callable
from functools import partial

from hms_gateway.gateway.auth.issuer_documents import discovered_keys_url, fetch
from hms_gateway.gateway.auth.issuer_keys import FetchedKeys, FileKeys, IssuerKeys
from hms_gateway.gateway.auth.signed_tokens import Issuer
from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.settings import TokenIssuer


def make_issuer(settings: TokenIssuer, monotonic: Callable[[], float] = time.monotonic) -> Issuer:
    """Asks nothing yet: a gateway starts while an issuer is away."""
    return Issuer(
        settings.issuer,
        frozenset(settings.audience),
        frozenset(settings.algorithms),
        _keys(settings, monotonic),
        settings.user_claim,
        settings.groups_claim,
        settings.clock_skew_seconds,
    )


def _keys(settings: TokenIssuer, monotonic: Callable[[], float]) -> IssuerKeys:
    if settings.keys_file is not None:
        return FileKeys(settings.issuer, WatchedFile(settings.keys_file, monotonic))
    return FetchedKeys(
        settings.issuer,
        partial(_fetched, settings),
        refresh_seconds=settings.keys_refresh_seconds,
        kept_seconds=settings.keys_kept_seconds,
        monotonic=monotonic,
    )


def _fetched(settings: TokenIssuer) -> bytes:
    """Raises NotFetched."""
    url = settings.keys_url or discovered_keys_url(settings.issuer, settings.authority)
    return fetch(url, settings.authority)
