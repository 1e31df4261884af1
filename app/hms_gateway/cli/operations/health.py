"""Work of `hms-gateway healthy`, and the pages of a gateway that need no login."""

import http.client
import ssl
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from hms_gateway.cli.terminal.output import EXIT_REFUSED, fail, out
from hms_gateway.runtime.settings import Settings

_EVERY_ADDRESS: Final = ("0.0.0.0", "::", "")
# Shorter than the timeout of the image's health check.
_ANSWER_SECONDS_MAX: Final = 3.0


class PageAnswer(NamedTuple):
    """An answer: its HTTP status, the first 1,000 bytes of its body, and its `Date`."""

    status: int
    text: str
    date: str | None


def run_health_check(settings: Settings) -> None:
    """Print whether the gateway of this machine answers. Ends with EXIT_REFUSED if it does not."""
    url = own_url(settings)
    try:
        page = get_page(url, "/healthz", _ANSWER_SECONDS_MAX)
    except (ssl.SSLError, ConnectionResetError) as error:
        # Where clients have to show a certificate, only a running process ends the handshake: this command has none.
        problem = None if settings.client_certificates.use == "require" else str(error)
    except (OSError, http.client.HTTPException) as error:
        problem = str(error) or type(error).__name__
    else:
        problem = None if page.status == 200 else f"{page.status} {page.text}"
    if problem is not None:
        fail(f"{url} does not answer: {problem}", exit_code=EXIT_REFUSED)
    out.print(f"{url} answers", markup=False, soft_wrap=True)


def own_url(settings: Settings) -> str:
    """The URL, without a path, at which this machine reaches a gateway with these settings."""
    host = "localhost" if settings.host in _EVERY_ADDRESS else settings.host
    return f"{'https' if settings.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{settings.port}"


def get_page(url: str, path: str, seconds_max: float) -> PageAnswer:
    """Ask for a page, with any certificate: the request has no secret.

    Raises OSError and http.client.HTTPException if there is no answer within `seconds_max` of each step.
    """
    place = urlsplit(url)
    host = place.hostname or "localhost"
    port = place.port or (443 if place.scheme == "https" else 80)
    connection = (
        http.client.HTTPSConnection(host, port, timeout=seconds_max, context=ssl._create_unverified_context())
        if place.scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=seconds_max)
    )
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return PageAnswer(answer.status, answer.read(1_000).decode(errors="replace").strip(), answer.getheader("date"))
    finally:
        connection.close()
