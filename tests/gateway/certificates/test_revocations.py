"""Lists of revoked certificates (CRL), against the library that makes them."""

import base64
import contextlib
import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_gateway.gateway.certificates.client_certificates import read_revocations
from hms_gateway.gateway.certificates.tls import CertificateError
from hms_gateway.runtime.door import Serial
from tests.support.sample import sample

BEGIN = datetime.datetime(2026, 1, 1)
ISSUER = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority")])
BEGIN_LINE, END_LINE = b"-----BEGIN X509 CRL-----\n", b"\n-----END X509 CRL-----\n"
NUMBERS = [1, 127, 128, 255, 256, 2**159 - 1]


def list_of(numbers: list[int]) -> bytes:
    builder = x509.CertificateRevocationListBuilder().issuer_name(ISSUER)
    builder = builder.last_update(BEGIN).next_update(BEGIN + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.CRLNumber(7), critical=False)
    for number in numbers:
        entry = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(BEGIN)
        entry = entry.add_extension(x509.CRLReason(x509.ReasonFlags.key_compromise), critical=False)
        builder = builder.add_revoked_certificate(entry.build())
    return builder.sign(ed25519.Ed25519PrivateKey.generate(), None).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("numbers", [[], [1], NUMBERS, list(range(1, 300))])
def test_the_numbers_of_all_lists_of_a_file_are_read(tmp_path, numbers):
    file = tmp_path / "crl.pem"
    file.write_bytes(b"said before\n" + list_of(numbers) + list_of([5_000]))
    # Without the tag and the length of the name.
    authority = ISSUER.public_bytes()[2:]
    assert read_revocations(file) == {Serial(authority, number) for number in [*numbers, 5_000]}


def test_the_name_of_the_authority_is_kept_once(tmp_path):
    file = tmp_path / "crl.pem"
    file.write_bytes(list_of(NUMBERS))
    assert len({id(serial.authority) for serial in read_revocations(file)}) == 1


@pytest.fixture(scope="module")
def listed(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("revocations") / "crl.pem"
    file.write_bytes(list_of(NUMBERS))
    return file


@pytest.mark.slow
@given(cut=st.integers(0, 400), at=st.integers(0, 200), byte=st.integers(0, 255))
@settings(max_examples=sample(60, of=300))
def test_what_is_not_a_list_is_an_error_of_certificates(listed, cut, at, byte):
    der = base64.b64decode(b"".join(listed.read_bytes().splitlines()[1:-1]))
    damaged = bytearray(der[: max(1, len(der) - cut)])
    damaged[at % len(damaged)] = byte
    file = listed.with_name("damaged")
    file.write_bytes(BEGIN_LINE + base64.b64encode(damaged) + END_LINE)
    with contextlib.suppress(CertificateError):
        read_revocations(file)


@pytest.mark.parametrize("content", [b"", b"\x30", b"\x30\x00", b"\x30\x82\x01", b"\x30\x03\x30\x01\x02"])
def test_what_ends_too_early_is_named(tmp_path, content):
    file = tmp_path / "crl.pem"
    file.write_bytes(BEGIN_LINE + base64.b64encode(content) + END_LINE)
    with pytest.raises(CertificateError, match=r"crl.pem cannot be used: "):
        read_revocations(file)
