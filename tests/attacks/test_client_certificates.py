"""Certificates of users and proxies: whose calls they are, and what does not let in, from the first byte or later."""

import contextlib
import http.client
import os
import ssl
import sys
from typing import Any

import pytest
from cryptography.x509 import DNSName, RFC822Name, UniformResourceIdentifier

from hms_gateway.gateway.assembly import served_certificate
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.gateway.logins import build_authenticator, build_proxies
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.runtime import file_versions
from hms_gateway.runtime.settings import SettingsError
from hms_gateway.runtime.settings_reading import load_settings
from tests.gateway.serving import CALL, PATH, CannedProcessor, running
from tests.support.certificates import write_certificate
from tests.support.client_authority import LATIN_1_NAME, ClientAuthority
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import basic, trusting

BOB = basic("bob", "bob's password")
REFUSED = (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)


class Door:
    """A server that asks for certificates; calls of one client go over one connection."""

    def __init__(self, server, processor, certificate) -> None:
        self.server, self._processor, self.certificate = server, processor, certificate

    @contextlib.contextmanager
    def client(self, context):
        """Gives a function that calls: the user as whom the call ran, or the status."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.server.port, timeout=PATIENCE_SECONDS, context=context
        )

        def call(headers: dict[str, str] | None = None, query: str = "") -> Any:
            connection.request("POST", PATH + query, CALL, headers or {})
            answer = connection.getresponse()
            answer.read()
            return self._processor.calls[-1][1].principal if answer.status == 200 else answer.status

        try:
            yield call
        finally:
            connection.close()

    def ask(self, context, headers: dict[str, str] | None = None, query: str = "") -> Any:
        with self.client(context) as call:
            return call(headers, query)


@contextlib.contextmanager
def door(folder, **settings):
    write_certificate(folder / "certificate.pem", folder / "key.pem")
    files = {"tls_certificate": folder / "certificate.pem", "tls_key": folder / "key.pem"}
    loaded = load_settings(data_dir=folder, **files, **settings)
    add_user(loaded.users_path, "bob", "bob's password")
    processor, certificate = CannedProcessor(), served_certificate(loaded, Metrics(()))
    assert certificate is not None
    with running(
        processor,
        authenticator=build_authenticator(loaded),
        proxies=build_proxies(loaded),
        tls=certificate.context,
    ) as server:
        yield Door(server, processor, certificate)


@pytest.fixture
def users(tmp_path):
    authority = ClientAuthority(tmp_path)
    (tmp_path / "users.pem").write_bytes(authority.pem)
    return authority


def replace(file, content: bytes) -> None:
    """So that it is seen at once, whatever the clock of the file system."""
    before = file.stat().st_mtime_ns
    file.write_bytes(content)
    os.utime(file, ns=(before + 10**9, before + 10**9))


def test_a_certificate_is_a_login_beside_others(tmp_path, users):
    with door(tmp_path, client_certificates={"authority": tmp_path / "users.pem"}) as it:
        ann, _ = users.issue("ann")
        with it.client(ann) as call:
            assert [call(), call()] == ["ann", "ann"]
            assert call(BOB) == "bob"
            assert call(basic("bob", "wrong")) == 401
            assert call(query="?doAs=bob") == 403
            assert call() == "ann"
        assert it.ask(trusting(), BOB) == "bob"
        assert it.ask(trusting()) == 401
        for others in (users.issue("ann", days=-1), ClientAuthority(tmp_path).issue("ann")):
            with pytest.raises(REFUSED):
                it.ask(others[0])


@pytest.mark.parametrize(
    ("kind", "names", "user"),
    [
        ("email", [RFC822Name("ann@corp.example")], "ann@corp.example"),
        ("DNS", [DNSName("worker.corp.example")], "worker.corp.example"),
        ("URI", [UniformResourceIdentifier("spiffe://corp.example/etl")], "spiffe://corp.example/etl"),
        ("email", [RFC822Name("ann@corp.example"), RFC822Name("eve@corp.example")], 401),
        ("email", [DNSName("worker.corp.example")], 401),
        ("email", [], 401),
    ],
)
def test_the_field_that_is_set_names_the_user(tmp_path, users, kind, names, user):
    with door(tmp_path, client_certificates={"authority": tmp_path / "users.pem", "user": kind}) as it:
        assert it.ask(users.issue("ann", *names)[0]) == user


@pytest.mark.parametrize("name", [" ann", "ann\t", "a\x00b", "a\n"])
def test_a_name_that_cannot_be_one_is_none(tmp_path, users, name):
    with door(tmp_path, client_certificates={"authority": tmp_path / "users.pem"}) as it:
        assert it.ask(users.issue(name)[0]) == 401


@pytest.mark.slow
def test_a_certificate_may_be_required(tmp_path, users):
    with door(tmp_path, client_certificates={"authority": tmp_path / "users.pem", "use": "require"}) as it:
        assert it.ask(users.issue("ann")[0], BOB) == "bob"
        with pytest.raises(REFUSED):
            it.ask(trusting(), BOB)


@pytest.mark.slow
def test_revoked_certificates_do_not_let_in_and_end_on_open_connections(tmp_path, users):
    (ann, _), (eve, revoked) = users.issue("ann"), users.issue("eve")
    crl = tmp_path / "crl.pem"
    crl.write_bytes(users.revocations())
    with door(tmp_path, client_certificates={"authority": tmp_path / "users.pem", "revocations": crl}) as it:
        with it.client(eve) as call, it.client(ann) as other:
            assert (call(), other()) == ("eve", "ann")
            replace(crl, users.revocations([revoked]))
            until_refused(call)
            assert call(BOB) == "bob"
            it.certificate.look()
            with pytest.raises(REFUSED):
                it.ask(eve)
            # A broken list is logged and changes nothing.
            replace(crl, b"broken")
            it.certificate.look()
            assert (call(), other()) == (401, "ann")
        assert it.ask(ann) == "ann"
        with pytest.raises(REFUSED):
            it.ask(eve)


def test_the_name_of_an_authority_may_be_in_an_old_encoding(tmp_path, monkeypatch):
    users = ClientAuthority(tmp_path, LATIN_1_NAME)
    (tmp_path / "users.pem").write_bytes(users.pem)
    assert b"Soci\xe9t\xe9" in ssl.PEM_cert_to_DER_cert(users.pem.decode())
    (ann, _), (eve, revoked) = users.issue("ann"), users.issue("eve")
    crl = tmp_path / "crl.pem"
    crl.write_bytes(users.revocations())
    some = users.revocations([revoked])
    monkeypatch.setattr(file_versions, "LOOK_EVERY_SECONDS", 0.0)
    settings = {"authority": tmp_path / "users.pem", "revocations": crl}
    with door(tmp_path, client_certificates=settings) as it, it.client(eve) as call, it.client(ann) as other:
        assert (call(), other()) == ("eve", "ann")
        replace(crl, some)
        assert (call(), other()) == (401, "ann")


def test_certificates_are_read_without_the_library_that_makes_them(tmp_path, users, monkeypatch):
    with door(tmp_path, client_certificates={"authority": tmp_path / "users.pem"}) as it:
        ann, _ = users.issue("ann")
        # Imports of it fail.
        monkeypatch.setitem(sys.modules, "cryptography", None)
        assert it.ask(ann) == "ann"


def until_refused(call) -> None:
    for _ in range(100_000):
        if call() == 401:
            return
    raise AssertionError("it was not refused")


@pytest.mark.slow
def test_a_new_authority_is_taken_and_a_broken_file_keeps_the_one_before(tmp_path, users):
    with door(tmp_path, client_certificates={"authority": tmp_path / "users.pem"}) as it:
        ann, _ = users.issue("ann")
        later = ClientAuthority(tmp_path, "Later")
        bea, _ = later.issue("bea")
        with it.client(ann) as call:
            assert call() == "ann"
            replace(tmp_path / "users.pem", b"broken")
            it.certificate.look()
            assert it.ask(ann) == "ann"
            replace(tmp_path / "users.pem", later.pem)
            it.certificate.look()
            assert it.ask(bea) == "bea"
            with pytest.raises(REFUSED):
                it.ask(ann)
            # The connection that was open goes on.
            assert call() == "ann"


@pytest.mark.slow
def test_a_certificate_proves_a_proxy_at_any_address_and_only_of_its_own_authority(tmp_path, users):
    proxies = ClientAuthority(tmp_path, "Proxies")
    (tmp_path / "proxies.pem").write_bytes(proxies.pem)
    settings = {
        "client_certificates": {"authority": tmp_path / "users.pem"},
        "trusted_proxy": {
            "authority": tmp_path / "proxies.pem",
            "certificate_names": ["knox.example"],
            "user_header": "SM_USER",
        },
    }
    named = {"SM_USER": "bea"}
    with door(tmp_path, **settings) as it:
        knox, _ = proxies.issue("any", DNSName("knox.example"))
        assert it.ask(knox, named) == "bea"
        assert it.ask(knox, BOB) == "bob"
        assert it.ask(knox) == 401
        # The header of others means nothing.
        assert it.ask(trusting(), named) == 401
        assert it.ask(trusting(), {**BOB, **named}) == "bob"
        forged, _ = users.issue("ann", DNSName("knox.example"))
        assert it.ask(forged, named) == "ann"
        other, _ = proxies.issue("ann", DNSName("other.example"))
        assert it.ask(other, named) == 401


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"client_certificates": {"use": "require"}}, "client_certificates: use needs authority"),
        ({"client_certificates": {"revocations": "crl.pem"}}, "revocations needs client_certificates.authority"),
        ({"client_certificates": {"authority": "ca.pem"}, "tls": False}, "client_certificates.authority needs tls"),
        ({"trusted_proxy": {"authority": "ca.pem", "user_header": "SM_USER"}}, "has no effect without"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings, says):
    with pytest.raises(SettingsError, match=says):
        load_settings(**settings)
