"""An authority that signs certificates of clients, and says which it has revoked."""

import base64
import datetime
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

from tests.support.server import trusting

_DAY = datetime.timedelta(days=1)
# A name as it is made here, and as authorities of old wrote it: Latin-1, as a TeletexString.
LATIN_1_NAME = "Societe"
_UTF_8, _LATIN_1 = b"\x0c\x07Societe", b"\x14\x07Soci\xe9t\xe9"


class ClientAuthority:
    """Signs with a key of its own. Files go into `folder`."""

    def __init__(self, folder: Path, name: str = "Clients") -> None:
        self._folder = folder
        self._name = _name(name)
        self._key = ed25519.Ed25519PrivateKey.generate()
        self._made = 0
        now = datetime.datetime.now(datetime.UTC)
        self._certificate = (
            _builder(self._name, self._name, self._key, now - _DAY, now + 30 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, None)
        )
        self.pem = self._pem(self._certificate)

    def issue(
        self, common_name: str, *others: x509.GeneralName, days: float = 10
    ) -> tuple[ssl.SSLContext, x509.Certificate]:
        """A client that shows a new certificate with these alternative names, and the certificate."""
        file, made = self.write(common_name, *others, days=days)
        context = trusting()
        context.load_cert_chain(file)
        return context, made

    def write(self, common_name: str, *others: x509.GeneralName, days: float = 10) -> tuple[Path, x509.Certificate]:
        """A file with the new certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        builder = _builder(_name(common_name), self._name, key, now - 20 * _DAY, now + days * _DAY)
        if others:
            builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
        made = builder.sign(self._key, None)
        self._made += 1
        file = self._folder / f"client-{self._certificate.serial_number}-{self._made}.pem"
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file.write_bytes(key.private_bytes(*form) + self._pem(made))
        return file, made

    def revocations(self, revoked: Sequence[x509.Certificate] = (), days: float = 10) -> bytes:
        """The list of these certificates, PEM."""
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        builder = builder.last_update(now - 20 * _DAY).next_update(now + days * _DAY)
        for certificate in revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number).revocation_date(now)
            builder = builder.add_revoked_certificate(entry.build())
        return self._pem(builder.sign(self._key, None))

    def _pem(self, made: x509.Certificate | x509.CertificateRevocationList) -> bytes:
        """PEM, with LATIN_1_NAME in its own encoding."""
        if isinstance(made, x509.Certificate):
            label, signed = b"CERTIFICATE", made.tbs_certificate_bytes
        else:
            label, signed = b"X509 CRL", made.tbs_certlist_bytes
        signed_here = signed.replace(_UTF_8, _LATIN_1)
        whole = made.public_bytes(serialization.Encoding.DER).replace(signed, signed_here)
        whole = whole.removesuffix(made.signature) + self._key.sign(signed_here)
        return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (label, base64.encodebytes(whole), label)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey,
    begins: datetime.datetime,
    ends: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
