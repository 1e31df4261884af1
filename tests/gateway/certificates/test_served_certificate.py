"""What new connections are shown follows the files, and its end is said in time."""

import contextlib
import json
import os
import ssl
import threading

import pytest

from hms_gateway.gateway.certificates.served_certificate import ServedCertificate
from hms_gateway.gateway.certificates.tls import (
    CertificateError,
    CertificateFiles,
    certificate_fingerprint,
    ensure_certificate,
)
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.metrics_text import metrics_text
from hms_gateway.runtime.logging import configure_logging
from tests.support.certificates import days_from, der_of, expires_of, write_certificate
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_SECONDS

DAY = 86_400
EXPIRES = "hms_gateway_certificate_expires_timestamp_seconds"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def metrics():
    return Metrics(())


@pytest.fixture
def log(tmp_path_factory):
    with (tmp_path_factory.mktemp("log") / "log").open("w+") as stream:
        configure_logging(stream=stream)
        yield lambda: [json.loads(line) for line in _lines(stream)]


@pytest.fixture
def files(tmp_path):
    return CertificateFiles(tmp_path / "chain.pem", tmp_path / "key.pem")


def _lines(stream):
    stream.flush()
    stream.seek(0)
    return stream.read().splitlines()


def served(files, clock, metrics, days=90.0, **kind):
    write_certificate(files.certificate, files.key, expires=days_from(clock.seconds(), days), **kind)
    return ServedCertificate(files, clock, metrics)


def shown(certificate, server_name=None):
    """What a client sees: a handshake in memory."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=server_name),
        certificate.context.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return ends[0].getpeercert(binary_form=True)


@pytest.mark.parametrize("server_name", [None, "localhost"])
@pytest.mark.parametrize("kinds", [(False, False), (False, True), (True, False)])
def test_a_new_certificate_is_shown_whatever_its_key(files, clock, metrics, kinds, server_name):
    certificate = served(files, clock, metrics, is_rsa=kinds[0])
    first = der_of(files.certificate)
    certificate.look()
    assert shown(certificate, server_name) == first
    for is_rsa in (kinds[1], kinds[0]):
        write_certificate(files.certificate, files.key, is_rsa=is_rsa)
        certificate.look()
        assert shown(certificate, server_name) == der_of(files.certificate) != first
        assert metrics.certificate_expires_seconds == expires_of(files.certificate)


def test_files_that_did_not_change_are_not_read(files, clock, metrics, log):
    certificate = served(files, clock, metrics)
    certificate.look()
    assert log() == []
    certificate.read_again()
    certificate.look()
    certificate.look()
    [line] = log()
    assert (line["event"], line["cause"]) == ("certificate read again", "SIGHUP")
    assert line["fingerprint"] == certificate_fingerprint(files.certificate)


@pytest.mark.parametrize("breaking", ["another key", "nonsense", "no key", "no certificate", "an encrypted key"])
def test_a_broken_one_leaves_the_one_before_in_its_place(files, clock, metrics, log, tmp_path, breaking):
    certificate = served(files, clock, metrics)
    first, first_expires = shown(certificate), metrics.certificate_expires_seconds
    other = CertificateFiles(tmp_path / "other.pem", tmp_path / "other-key.pem")
    write_certificate(other.certificate, other.key)
    if breaking == "another key":
        os.replace(other.key, files.key)
    elif breaking == "nonsense":
        files.certificate.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    elif breaking == "an encrypted key":
        files.key.write_bytes(encrypted_key())
    else:
        (files.key if breaking == "no key" else files.certificate).unlink()
    for _ in range(3):
        certificate.look()
    assert shown(certificate) == first
    assert (metrics.certificate_expires_seconds, metrics.certificate_unusable) == (first_expires, 1)
    [line] = log()
    assert line["level"] == "error"
    assert str(files.key) in line["problem"]
    write_certificate(files.certificate, files.key)
    certificate.look()
    assert shown(certificate) == der_of(files.certificate) != first
    assert metrics.certificate_unusable == 0


def test_a_look_between_the_two_files_says_nothing(files, clock, metrics, log, tmp_path):
    certificate = served(files, clock, metrics)
    next_certificate, next_key = tmp_path / "next.pem", tmp_path / "next-key.pem"
    write_certificate(next_certificate, next_key)
    os.replace(next_key, files.key)
    certificate.look()
    assert (log(), metrics.certificate_unusable) == ([], 0)
    os.replace(next_certificate, files.certificate)
    certificate.look()
    assert shown(certificate) == der_of(files.certificate)
    assert [line["event"] for line in log()] == ["certificate read again"]


def test_a_first_one_that_cannot_be_used_is_an_error(files, clock, metrics):
    files.certificate.write_text("nonsense")
    with pytest.raises(CertificateError, match="chain"):
        ServedCertificate(files, clock, metrics)


def test_its_end_is_said_every_day_from_a_month_before(files, clock, metrics, log):
    certificate = served(files, clock, metrics, days=31.5)
    certificate.look()
    assert log() == []
    clock.advance(2 * DAY)
    for _ in range(3):
        certificate.look()
    clock.advance(DAY - 1)
    certificate.look()
    assert [(line["level"], line["days_left"]) for line in log()] == [("warning", 29)]
    clock.advance(1)
    certificate.look()
    clock.advance(29 * DAY)
    certificate.look()
    assert [(line["level"], line["days_left"]) for line in log()[1:]] == [("warning", 28), ("error", -1)]
    assert "has expired" in log()[-1]["event"]


def test_metrics_show_its_end(files, clock, metrics):
    assert EXPIRES not in metrics_text(metrics).decode()
    served(files, clock, metrics)
    lines = dict(line.rsplit(" ", 1) for line in metrics_text(metrics).decode().splitlines() if line[0] != "#")
    assert float(lines[EXPIRES]) == clock.seconds() + 90 * DAY
    assert float(lines["hms_gateway_certificate_unusable"]) == 0


def test_our_own_is_renewed_in_time(tmp_path, clock, metrics, log):
    files = ensure_certificate(tmp_path, clock)
    certificate = ServedCertificate(files, clock, metrics)
    first = shown(certificate)
    clock.advance(789 * DAY)
    certificate.look()
    assert shown(certificate) == first
    clock.advance(2 * DAY)
    certificate.look()
    assert shown(certificate) == der_of(files.certificate) != first
    assert metrics.certificate_expires_seconds == clock.seconds() + 820 * DAY
    assert [(line["event"], line.get("days_left")) for line in log()] == [
        ("renewed the self-signed certificate", 29),
        ("certificate read again", 820),
    ]


def test_of_several_processes_one_renews_and_all_show_the_same(tmp_path, clock):
    files = ensure_certificate(tmp_path, clock)
    replicas = [ServedCertificate(files, clock, Metrics(())) for _ in range(4)]
    clock.advance(800 * DAY)
    threads = [threading.Thread(target=replica.look) for replica in replicas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    for replica in replicas:
        replica.look()
    assert {shown(replica) for replica in replicas} == {der_of(files.certificate)}
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"certificate.pem", "key.pem"}


def test_a_renewal_that_fails_is_said_and_the_old_one_is_shown(tmp_path, clock, metrics, log):
    files = ensure_certificate(tmp_path, clock)
    certificate = ServedCertificate(files, clock, metrics)
    first = shown(certificate)
    (tmp_path / ".certificate-lock").unlink()
    (tmp_path / ".certificate-lock").mkdir()
    clock.advance(800 * DAY)
    for _ in range(3):
        certificate.look()
    assert shown(certificate) == first
    assert [line["event"] for line in log()] == [
        "the certificate cannot be renewed",
        "the certificate expires soon; replace it",
    ]


def test_what_others_signed_is_never_replaced(tmp_path, clock, metrics):
    files = CertificateFiles(tmp_path / "certificate.pem", tmp_path / "key.pem", is_ours=True)
    write_certificate(files.certificate, files.key, issuer="authority", expires=days_from(clock.seconds(), 1))
    before = der_of(files.certificate)
    assert ensure_certificate(tmp_path, clock) == files
    certificate = ServedCertificate(files, clock, metrics)
    clock.advance(2 * DAY)
    certificate.look()
    ensure_certificate(tmp_path, clock)
    assert der_of(files.certificate) == before


def test_what_a_killed_renewal_leaves_is_made_anew_by_the_next_start(tmp_path, clock):
    files = ensure_certificate(tmp_path, clock)
    files.key.unlink()
    ServedCertificate(ensure_certificate(tmp_path, clock), clock, Metrics(()))
    write_certificate(tmp_path / "other.pem", files.key)
    ServedCertificate(ensure_certificate(tmp_path, clock), clock, Metrics(()))


def encrypted_key():
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    encryption = serialization.BestAvailableEncryption(b"secret")
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
