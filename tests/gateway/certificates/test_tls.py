"""The certificate of a first start."""

import datetime
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from hms_gateway.gateway.certificates.tls import (
    CertificateError,
    certificate_fingerprint,
    ensure_certificate,
    server_context,
)
from tests.gateway.serving import running
from tests.support.certificates import der_of, shown_by
from tests.support.manual_clock import ManualClock


def test_a_first_start_makes_a_private_p256_certificate_for_this_host(tmp_path):
    files = ensure_certificate(tmp_path / "var")
    certificate, key = files.certificate, files.key
    assert key.stat().st_mode & 0o777 == 0o600
    assert certificate.stat().st_mode & 0o400
    made = x509.load_pem_x509_certificate(certificate.read_bytes())
    public_key = made.public_key()
    assert isinstance(public_key, ec.EllipticCurvePublicKey)
    assert public_key.curve.name == "secp256r1"
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert "127.0.0.1" in map(str, names.get_values_for_type(x509.IPAddress))
    assert sorted(path.name for path in certificate.parent.glob("[!.]*")) == ["certificate.pem", "key.pem"]


def test_later_starts_use_it_again(tmp_path):
    first = fingerprint(tmp_path)
    assert fingerprint(tmp_path) == first


def test_a_certificate_that_expires_soon_is_made_anew(tmp_path):
    first = certificate_fingerprint(
        ensure_certificate(tmp_path, ManualClock(int(time.time()) - 800 * 86_400)).certificate
    )
    certificate = ensure_certificate(tmp_path).certificate
    second = certificate_fingerprint(certificate)
    assert second != first
    left = x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    assert left - datetime.datetime.now(datetime.UTC) > datetime.timedelta(days=300)


def test_the_fingerprint_is_what_browsers_show(tmp_path):
    shown = fingerprint(tmp_path)
    assert len(shown.split(":")) == 32
    assert shown == shown.upper()


def test_unusable_files_are_named(tmp_path):
    (tmp_path / "a.pem").write_text("nonsense")
    with pytest.raises(CertificateError, match=r"a\.pem"):
        server_context(tmp_path / "a.pem", tmp_path / "none.pem")
    with pytest.raises(CertificateError, match=r"a\.pem"):
        certificate_fingerprint(tmp_path / "a.pem")


def test_old_tls_versions_are_off(tmp_path):
    files = ensure_certificate(tmp_path)
    assert server_context(files.certificate, files.key).minimum_version == ssl.TLSVersion.TLSv1_2


def fingerprint(folder):
    return certificate_fingerprint(ensure_certificate(folder).certificate)


def test_a_client_may_trust_the_old_and_the_new_one_at_once(tmp_path):
    both = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in ("old", "new"):
        files = ensure_certificate(tmp_path / name)
        both.load_verify_locations(files.certificate)
    with running(tls=server_context(files.certificate, files.key)) as server:
        assert shown_by(server.port, "localhost", both) == der_of(files.certificate)
