"""The certificate that a program of ours shows to a gateway: PEM files, checked before the first connection."""

import os
import re
import ssl
from pathlib import Path
from typing import IO, Final

import msgspec

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_CERTIFICATES: Final = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
_ENCRYPTED: Final = ("BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED")
# What OpenSSL says of a key that belongs to another certificate, or is of another kind.
_OTHER_KEY: Final = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")


class ClientCertificateError(Exception):
    """The certificate cannot be shown. `option` is the one whose file is wrong, `certificate` or `key`."""

    def __init__(self, option: str, text: str) -> None:
        super().__init__(text)
        self.option = option


class ClientCertificate(msgspec.Struct, frozen=True):
    """The file of a certificate and its chain, and that of the private key, which may be the same one."""

    certificate: Path
    key: Path | None = None

    @property
    def files(self) -> list[Path]:
        return [self.certificate] if self.key is None else [self.certificate, self.key]

    @property
    def _key_file(self) -> tuple[str, Path]:
        return ("certificate", self.certificate) if self.key is None else ("key", self.key)

    def text(self) -> str:
        """The chain and the key as they are now, in one text. Raises ClientCertificateError."""
        chain = [block for label, block in _blocks("certificate", self.certificate) if label in _CERTIFICATES]
        if not chain:
            raise ClientCertificateError("certificate", f"{self.certificate} has no certificate in PEM form")
        text = "\n".join([*chain, self._private_key(), ""])
        try:
            show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), text)
        except ssl.SSLError as error:
            raise self._unusable(error) from error
        return text

    def _private_key(self) -> str:
        """Raises ClientCertificateError."""
        option, file = self._key_file
        key = next((block for label, block in _blocks(option, file) if label.endswith("PRIVATE KEY")), None)
        if key is None and self.key is None:
            raise ClientCertificateError("certificate", f"{file} has no private key; name its file with the option key")
        if key is None:
            raise ClientCertificateError("key", f"{file} has no private key in PEM form")
        if any(sign in key for sign in _ENCRYPTED):
            raise ClientCertificateError(option, f"{file} has an encrypted key; decrypt it with openssl pkey")
        return key

    def _unusable(self, error: ssl.SSLError) -> ClientCertificateError:
        if error.reason in _OTHER_KEY:
            option, file = self._key_file
            text = f"the key in {file} is not that of the certificate in {self.certificate}; name its own"
            return ClientCertificateError(option, text)
        return ClientCertificateError("certificate", f"{self.certificate} cannot be used: {error.reason or error}")


def show(context: ssl.SSLContext, text: str) -> None:
    """Have new connections show what `ClientCertificate.text` gave. Raises ssl.SSLError."""
    # OpenSSL reads them from files only.
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("certificate"), "w", encoding="latin-1") as file:
            _load(context, file, f"/proc/self/fd/{file.fileno()}", text)
    else:
        import tempfile

        with tempfile.NamedTemporaryFile("w", encoding="latin-1") as file:
            _load(context, file, file.name, text)


def refuses_certificate(text: str) -> bool:
    """True if a TLS error says that the server refuses the certificate it was shown, or needs one."""
    return "ALERT" in text and ("CERTIFICATE" in text or "UNKNOWN_CA" in text)


def _load(context: ssl.SSLContext, file: IO[str], name: str, text: str) -> None:
    file.write(text)
    file.flush()
    # Without a password OpenSSL would ask at the terminal.
    context.load_cert_chain(name, password="")


def _blocks(option: str, file: Path) -> list[tuple[str, str]]:
    """The PEM blocks of a file with their labels. Raises ClientCertificateError."""
    try:
        text = file.read_text("latin-1")
    except (OSError, ValueError) as error:
        raise ClientCertificateError(option, f"{file} cannot be read: {error}") from error
    return [(match[1], match[0]) for match in _BLOCK.finditer(text)]
