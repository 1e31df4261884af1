"""The console, opened with a ticket and no password, in a real browser."""

import json
from pathlib import Path

import pytest

from tests.interop.page_server import find_chromium
from tests.kerberos.conftest import LogIn
from tests.support.chromium import chromium
from tests.support.server import GatewayServer

pytestmark = [
    pytest.mark.kerberos,
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium (command `chromium`)"),
]

# On Linux Chromium sends tickets from the first start on after a server has asked for one: its sandbox for networking,
# which lets no library be loaded, is off then. It keeps that here.
ASKED_BEFORE = {"net": {"received_http_auth_negotiate_headers": True}}


def test_a_ticket_opens_the_catalog(gateway: GatewayServer, log_in: LogIn, tmp_path: Path) -> None:
    log_in("alice")
    profile = tmp_path / "chromium"
    profile.mkdir()
    (profile / "Local State").write_text(json.dumps(ASKED_BEFORE))
    with chromium(profile, more_options=["--auth-server-allowlist=localhost"]) as browser:
        page = browser.page()
        page.open(f"https://localhost:{gateway.port}/ui/")
        page.click("label", "Kerberos ticket")
        page.wait("!document.querySelector('input[type=password]')")
        page.click("form button", "Log in")
        page.wait("[...document.querySelectorAll('main a')].some((one) => one.textContent === 'default')")
        assert page.run("violations") == []
        # Reloaded, it asks again for nothing.
        page.send("Page.reload")
        page.wait("[...document.querySelectorAll('main a')].some((one) => one.textContent === 'default')")
