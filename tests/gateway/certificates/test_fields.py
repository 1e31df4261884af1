"""The fields of a certificate that the gateway looks at: until when it is valid, and who made it."""

import contextlib
import datetime
import ssl
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_gateway.gateway.certificates.tls import CertificateError, CertificateFields, make_certificate, read_fields
from tests.support.certificates import der_of, write_certificate
from tests.support.sample import sample


@pytest.mark.parametrize("year", [1960, 1999, 2026, 2049, 2050, 2120])
@pytest.mark.parametrize("is_rsa", [True, False])
def test_the_end_of_one_that_is_not_ours(tmp_path, year, is_rsa):
    expires = datetime.datetime(year, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    certificate = tmp_path / "certificate"
    write_certificate(certificate, tmp_path / "key", expires=expires, is_rsa=is_rsa, name="n" * 64)
    assert read_fields(certificate) == CertificateFields(int(expires.timestamp()), False)


@pytest.mark.parametrize("now_seconds", [0, 2_000_000_000, 2_600_000_000])
def test_the_end_of_our_own(tmp_path, now_seconds):
    make_certificate(tmp_path / "certificate", tmp_path / "key", now_seconds)
    assert read_fields(tmp_path / "certificate") == CertificateFields(now_seconds + 820 * 86_400, True)


@pytest.mark.parametrize("is_of_a_crl", [True, False])
def test_the_end_of_one_with_names_that_are_not_utf_8(tmp_path, is_of_a_crl):
    expires = datetime.datetime(2090, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    written, odd = tmp_path / "certificate", tmp_path / "odd"
    write_certificate(written, tmp_path / "key", expires=expires, name="hete.example", crl="http://hete.example/crl")
    before, after = (b"//hete", b"//h\xe9te") if is_of_a_crl else (b"\x82\x0chete", b"\x82\x0ch\xe9te")
    assert before in der_of(written)
    odd.write_text(ssl.DER_cert_to_PEM_cert(der_of(written).replace(before, after)))
    assert read_fields(odd) == CertificateFields(int(expires.timestamp()), False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    write_certificate(folder / "certificate", folder / "key")
    return folder / "certificate"


@pytest.mark.slow
@given(cut=st.integers(0, 400), at=st.integers(0, 200), byte=st.integers(0, 255))
@settings(max_examples=sample(60, of=300))
def test_what_is_not_a_certificate_is_an_error_of_certificates(certificate, cut, at, byte):
    der = der_of(certificate)
    damaged = bytearray(der[: max(1, len(der) - cut)])
    damaged[at % len(damaged)] = byte
    file = certificate.with_name("damaged")
    file.write_text(ssl.DER_cert_to_PEM_cert(bytes(damaged)))
    with contextlib.suppress(CertificateError):
        read_fields(file)
