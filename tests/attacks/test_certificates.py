"""M7: a certificate that is replaced, that expires, and a gateway that gets SIGHUP."""

import http.client
import os
import signal
import ssl
import time

import pytest

from hms_gateway.gateway.certificates.tls import make_certificate
from tests.gateway.serving import CALL
from tests.support.certificates import der_of, expires_of, shown_by, write_certificate
from tests.support.patience import until
from tests.support.server import API_PATH, GatewayServer, basic

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path):
    certificate, key = tmp_path / "chain.pem", tmp_path / "chain-key.pem"
    write_certificate(certificate, key)
    return certificate, key


def gateway(tmp_path, files, **settings):
    certificate, key = files
    paths = {"tls_certificate": str(certificate), "tls_key": str(key)}
    return GatewayServer(tmp_path / "var", settings=paths | settings)


def answer(connection: http.client.HTTPSConnection, server: GatewayServer) -> int:
    connection.request("POST", API_PATH, CALL, basic(server.user, server.password))
    response = connection.getresponse()
    response.read()
    return response.status


def test_a_new_certificate_is_shown_and_old_connections_stay(tmp_path, files):
    with gateway(tmp_path, files) as server, server.connection() as old:
        assert answer(old, server) == 200
        assert shown_by(server.port) == der_of(files[0])
        write_certificate(*files, is_rsa=True)
        until(lambda: shown_by(server.port) == der_of(files[0]))
        assert answer(old, server) == 200
        assert server.is_ready()
        with server.connection() as connection:
            connection.request("GET", "/metrics")
            assert "hms_gateway_certificate_expires_timestamp_seconds" in connection.getresponse().read().decode()


@pytest.mark.parametrize("workers", [1, 2])
def test_hang_up_never_ends_a_gateway(tmp_path, files, workers):
    with gateway(tmp_path, files, workers=workers) as server:
        until(lambda: "listening on" in server.log_text())
        with server.connection() as old:
            assert answer(old, server) == 200
            for _ in range(3):
                os.kill(server.pid, signal.SIGHUP)
            until(lambda: server.log_text().count('"cause":"SIGHUP"') >= workers)
            assert answer(old, server) == 200
        assert "died" not in server.log_text()
        assert server.stop() == 0


def test_a_broken_certificate_is_said_and_the_one_before_is_shown(tmp_path, files):
    with gateway(tmp_path, files) as server:
        first = der_of(files[0])
        write_certificate(tmp_path / "other.pem", files[1])
        until(lambda: "the new certificate cannot be used; the previous one stays in use" in server.log_text())
        assert str(files[1]) in server.log_text()
        assert shown_by(server.port) == first
        assert server.is_ready()


def test_a_certificate_of_our_own_is_renewed_while_the_gateway_runs(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    with GatewayServer(tmp_path) as server:
        # One that is about to end takes the place of ours, as after two years.
        begin = int(time.time()) - 815 * 86_400
        make_certificate(certificate, key, begin)
        until(lambda: expires_of(certificate) > time.time() + 800 * 86_400)
        until(lambda: shown_by(server.port) == der_of(certificate))
        context = ssl.create_default_context(cafile=str(certificate))
        assert shown_by(server.port, "localhost", context) == der_of(certificate)
