"""An operator's own pair in the data folder is never written over; the gateway renews only what it made."""

import pytest

from hms_gateway.gateway.certificates.served_certificate import ServedCertificate
from hms_gateway.gateway.certificates.tls import CertificateError, CertificateFiles, ensure_certificate
from hms_gateway.gateway.observability.metrics import Metrics
from tests.support.certificates import days_from, write_certificate
from tests.support.manual_clock import ManualClock

CLOCK = ManualClock()


@pytest.fixture
def files(tmp_path):
    return CertificateFiles(tmp_path / "certificate.pem", tmp_path / "key.pem", is_ours=True)


def contents(files):
    return [file.read_bytes() if file.exists() else None for file in (files.certificate, files.key)]


@pytest.mark.parametrize("name", ["localhost", "hms-gateway"])
@pytest.mark.parametrize("days", [19, -1])
def test_a_self_signed_pair_that_ends_soon_stays(files, name, days):
    write_certificate(files.certificate, files.key, name=name, expires=days_from(CLOCK.seconds(), days))
    before = contents(files)
    assert ensure_certificate(files.certificate.parent, CLOCK) == files
    ServedCertificate(files, CLOCK, Metrics(())).look()
    assert contents(files) == before


@pytest.mark.parametrize("breaking", ["another key", "no key", "no certificate", "another form"])
def test_a_pair_that_is_being_replaced_stays(files, tmp_path, breaking):
    write_certificate(files.certificate, files.key)
    if breaking == "another key":
        write_certificate(tmp_path / "other.pem", files.key)
    elif breaking == "another form":
        files.certificate.write_bytes(b"0\x82")
    else:
        (files.key if breaking == "no key" else files.certificate).unlink()
    before = contents(files)
    with pytest.raises(CertificateError):
        ServedCertificate(ensure_certificate(files.certificate.parent, CLOCK), CLOCK, Metrics(()))
    assert contents(files) == before
