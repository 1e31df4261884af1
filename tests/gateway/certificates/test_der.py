"""The fields of a certificate, against what a library for it reads."""

import contextlib
import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_gateway.gateway.certificates.der import CertificateFields, certificate_fields
from hms_gateway.gateway.certificates.self_signed import make_certificate
from tests.support.certificates import der_of, write_certificate


@pytest.mark.parametrize("year", [1960, 1999, 2026, 2049, 2050, 2120])
@pytest.mark.parametrize("is_rsa", [True, False])
def test_the_end_of_one_that_is_not_ours(tmp_path, year, is_rsa):
    expires = datetime.datetime(year, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    certificate = tmp_path / "certificate"
    write_certificate(certificate, tmp_path / "key", expires=expires, is_rsa=is_rsa, name="n" * 64)
    assert certificate_fields(der_of(certificate)) == CertificateFields(int(expires.timestamp()), False)


@pytest.mark.parametrize("now_seconds", [0, 2_000_000_000, 2_600_000_000])
def test_the_end_of_our_own(tmp_path, now_seconds):
    make_certificate(tmp_path / "certificate", tmp_path / "key", now_seconds)
    assert certificate_fields(der_of(tmp_path / "certificate")) == CertificateFields(now_seconds + 820 * 86_400, True)


@pytest.fixture(scope="module")
def der(tmp_path_factory):
    folder = tmp_path_factory.mktemp("der")
    write_certificate(folder / "certificate", folder / "key")
    return der_of(folder / "certificate")


@given(cut=st.integers(0, 400), at=st.integers(0, 200), byte=st.integers(0, 255))
@settings(max_examples=300, deadline=None)
def test_what_is_not_a_certificate_is_a_value_error(der, cut, at, byte):
    damaged = bytearray(der[: max(1, len(der) - cut)])
    damaged[at % len(damaged)] = byte
    with contextlib.suppress(ValueError):
        certificate_fields(bytes(damaged))
