"""The certificate of a first start."""

import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from app.gateway.tls import CertificateError, certificate_fingerprint, ensure_certificate, server_context


def test_a_first_start_makes_a_private_p256_certificate_for_this_host(tmp_path):
    certificate, key = ensure_certificate(tmp_path / "var")
    assert key.stat().st_mode & 0o777 == 0o600
    assert certificate.stat().st_mode & 0o400
    made = x509.load_pem_x509_certificate(certificate.read_bytes())
    public_key = made.public_key()
    assert isinstance(public_key, ec.EllipticCurvePublicKey)
    assert public_key.curve.name == "secp256r1"
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert "127.0.0.1" in map(str, names.get_values_for_type(x509.IPAddress))
    assert sorted(path.name for path in certificate.parent.iterdir()) == ["certificate.pem", "key.pem"]


def test_later_starts_use_it_again(tmp_path):
    first = certificate_fingerprint(ensure_certificate(tmp_path)[0])
    assert certificate_fingerprint(ensure_certificate(tmp_path)[0]) == first


def test_a_certificate_that_expires_soon_or_is_broken_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("app.gateway.self_signed.VALID_DAYS", 20)
    first = certificate_fingerprint(ensure_certificate(tmp_path)[0])
    monkeypatch.undo()
    certificate, _ = ensure_certificate(tmp_path)
    second = certificate_fingerprint(certificate)
    assert second != first
    left = x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    assert left - datetime.datetime.now(datetime.UTC) > datetime.timedelta(days=300)
    certificate.write_text("broken")
    ensure_certificate(tmp_path)
    assert certificate_fingerprint(certificate) not in (first, second)


def test_the_fingerprint_is_what_browsers_show(tmp_path):
    fingerprint = certificate_fingerprint(ensure_certificate(tmp_path)[0])
    assert len(fingerprint.split(":")) == 32
    assert fingerprint == fingerprint.upper()


def test_unusable_files_are_named(tmp_path):
    (tmp_path / "a.pem").write_text("nonsense")
    with pytest.raises(CertificateError, match=r"a\.pem"):
        server_context(tmp_path / "a.pem", tmp_path / "none.pem")
    with pytest.raises(CertificateError, match=r"a\.pem"):
        certificate_fingerprint(tmp_path / "a.pem")


def test_old_tls_versions_are_off(tmp_path):
    assert server_context(*ensure_certificate(tmp_path)).minimum_version == ssl.TLSVersion.TLSv1_2
