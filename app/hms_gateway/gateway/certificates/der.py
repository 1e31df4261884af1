"""The few fields of a certificate that the server looks at, read from its DER form (RFC 5280 section 4.1).

Python's ssl shows them of a peer's certificate only, and a library for it costs a tenth of the server's memory.
"""

from datetime import UTC, datetime
from typing import Final, TypeAlias

import msgspec

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_INTEGER: Final = 0x02
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
# Name and time of the certificates that the gateway makes, by which it knows them again.
OWN_NAME: Final = "hms-gateway"
# Apple's and other clients refuse certificates that live longer; the hour is for clocks that are behind.
OWN_VALID_SECONDS: Final = 820 * 86_400 + 3_600
# The set of the one name: kind (commonName) and UTF-8 text.
_OWN_SUBJECT: Final = b"\x31\x14\x30\x12\x06\x03\x55\x04\x03\x0c\x0b" + OWN_NAME.encode()


class CertificateFields(msgspec.Struct, frozen=True):
    """Until when a certificate is valid, in seconds since 1970, and whether the gateway made it."""

    expires_seconds: int
    is_made_here: bool


# The authority that signed a certificate, and the number that this gave it.
Serial: TypeAlias = tuple[bytes, bytes]


def certificate_fields(der: bytes) -> CertificateFields:
    """Read them. Raises ValueError for what is not a certificate."""
    fields = _fields(der)
    # After the serial number and the kind of signature.
    (_, issuer), (_, validity), (_, subject) = fields[2:5]
    times = _members(validity)
    if len(times) != 2:
        raise ValueError("its time of validity has another form")
    begins, expires = (_seconds(*time) for time in times)
    return CertificateFields(expires, issuer == subject == _OWN_SUBJECT and expires - begins == OWN_VALID_SECONDS)


def certificate_serial(der: bytes) -> Serial:
    """By which a list of revoked certificates names one. Raises ValueError."""
    fields = _fields(der)
    return fields[2][1], fields[0][1]


def revoked_serials(der: bytes) -> frozenset[Serial]:
    """Serial numbers of a revocation list (CRL, RFC 5280 section 5.1). Raises ValueError."""
    fields = _members(_content(_content(der)))
    if fields and fields[0][0] == _INTEGER:
        fields = fields[1:]
    # Kind of signature, authority, one or two times; a list without entries is left out.
    if len(fields) < 3:
        raise ValueError("it is not a list of revoked certificates")
    listed = next((content for tag, content in fields[3:5] if tag == _SEQUENCE), b"")
    return frozenset((fields[1][1], _members(entry)[0][1]) for _, entry in _members(listed))


def _fields(der: bytes) -> list[tuple[int, bytes]]:
    """The fields of a certificate, from its serial number on."""
    fields = _members(_content(_content(der)))
    if fields and fields[0][0] == _VERSION:
        fields = fields[1:]
    if len(fields) < 5:
        raise ValueError("it is not a certificate")
    return fields


def _content(data: bytes) -> bytes:
    """The content of the sequence at the beginning of `data`."""
    tag, content, _ = _element(data)
    if tag != _SEQUENCE:
        raise ValueError("it is not a certificate")
    return content


def _members(data: bytes) -> list[tuple[int, bytes]]:
    """Tag and content of each element in `data`."""
    members = []
    while data:
        tag, content, data = _element(data)
        members.append((tag, content))
    return members


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag and content of the first element, and what follows it."""
    if len(data) < 2:
        raise ValueError("it ends too early")
    tag, length, start = data[0], data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start])
    if len(data) < start + length:
        raise ValueError("it ends too early")
    return tag, data[start : start + length], data[start + length :]


def _seconds(tag: int, text: bytes) -> int:
    """A time as `YYMMDDHHMMSSZ` or, from 2050 on, with four digits of the year."""
    digits = text.decode("ascii").removesuffix("Z")
    if tag == _UTC_TIME:
        digits = ("19" if digits >= "50" else "20") + digits
    elif tag != _GENERALIZED_TIME:
        raise ValueError("its time of validity has another form")
    if len(digits) != 14:
        raise ValueError("its time of validity has another form")
    pairs = [int(digits[at : at + 2]) for at in range(4, 14, 2)]
    return int(datetime(int(digits[:4]), *pairs, tzinfo=UTC).timestamp())  # type: ignore[arg-type, misc]
