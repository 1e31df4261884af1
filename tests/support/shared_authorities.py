"""The machine's certificate authorities, read once: reading them takes longer than most things a client does."""

import os
import ssl
from functools import cache

import httpx
from httpx._transports import default

_load = httpx.create_ssl_context
# httpx looks at them.
_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def share_authorities() -> None:
    """From now on, for all clients of httpx in this process that are told nothing of TLS."""
    setattr(default, "create_ssl_context", _shared_or_own)  # noqa: B010


def _shared_or_own(
    verify: ssl.SSLContext | str | bool = True, cert: None = None, trust_env: bool = True
) -> ssl.SSLContext:
    if verify is True and cert is None and trust_env:
        return _of_machine(*map(os.environ.get, _VARIABLES))
    return _load(verify, cert, trust_env)


@cache
def _of_machine(*_variables: str | None) -> ssl.SSLContext:
    return _load()
