"""The public keys of one OAuth2 issuer, and checking signatures with them (RFC 7515, 7517, 8725).

Which algorithms count is the operator's choice, and which kind of key each needs is fixed here: neither the header of a
token nor a key set can make a public key a shared secret. joserfc is loaded with the first key set.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from joserfc.jwk import Key

KEYS_MAX: Final = 100
RSA_BITS_MIN: Final = 2048
# More keys of one name are not tried: each try costs a signature check.
TRIED_MAX: Final = 3
HEADER_BYTES_MAX: Final = 8 * 1024

_RSA = ("RSA", None)
# Kind of key and curve of each algorithm; shared secrets (HS256) and `none` are not among them.
KEY_KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), _RSA),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
_PUBLIC_FIELDS: Final = ("kty", "crv", "x", "y", "n", "e")


class KeySetError(Exception):
    """A key set cannot be used; the text says why."""


class SigningKey(msgspec.Struct, frozen=True):
    """One public key. `material` are its own fields, by which two versions of a set are compared."""

    kid: str | None
    kind: tuple[str, str | None]
    algorithm: str | None
    material: tuple[str, ...]
    key: "Key"

    def fits(self, algorithm: str) -> bool:
        kind = KEY_KINDS[algorithm]
        return kind[0] == self.kind[0] and kind[1] in (None, self.kind[1]) and self.algorithm in (None, algorithm)


class KeySet:
    """The keys that an issuer has at one time."""

    def __init__(self, keys: Sequence[SigningKey]) -> None:
        self._keys = keys

    def find(self, kid: str | None, algorithm: str) -> Sequence[SigningKey]:
        """The keys that may have signed; for a token without `kid`, the one key that fits."""
        fitting = [key for key in self._keys if key.fits(algorithm)]
        if kid is None:
            return fitting if len(fitting) == 1 else ()
        return [key for key in fitting if key.kid == kid][:TRIED_MAX]

    def has_all_of(self, other: "KeySet") -> bool:
        """True if tokens signed by the other's keys are valid here too."""
        own = {(key.kid, key.material) for key in self._keys}
        return all((key.kid, key.material) in own for key in other._keys)


def read_key_set(document: bytes) -> KeySet:
    """Read a JWK set. Keys of other kinds and for other uses are left out. Raises KeySetError."""
    try:
        decoded = msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError) as error:
        raise KeySetError(f"it is not JSON: {error}") from None
    listed = decoded.get("keys") if isinstance(decoded, dict) else None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise KeySetError(f'it is not a JWK set: it needs a list "keys" of at most {KEYS_MAX} keys')
    keys = [key for one in listed if isinstance(one, dict) and (key := _signing_key(one)) is not None]
    if not keys:
        raise KeySetError(
            "it has no public key for signatures that can be used (RSA of 2048 bits and more, EC, Ed25519)"
        )
    return KeySet(keys)


def verified_payload(token: bytes, keys: Sequence[SigningKey], algorithm: str) -> bytes | None:
    """The payload of a token that one of the keys has signed, else None."""
    from joserfc.errors import JoseError
    from joserfc.jws import deserialize_compact

    registry = _registry(len(token))
    for key in keys:
        try:
            return deserialize_compact(token, key.key, [algorithm], registry).payload
        # Whatever of its bytes cannot be read is the sender's: the library lets errors of base64 and JSON through.
        except (JoseError, ValueError, TypeError, KeyError, RecursionError):
            continue
    return None


def _registry(bytes_max: int) -> Any:
    """joserfc's own bounds are narrower than the one that a token has passed, and its check of names refuses some."""
    from joserfc.jws import JWSRegistry

    class Registry(JWSRegistry):
        max_header_length = max_payload_length = bytes_max

        def get_alg(self, name: str) -> Any:
            # What may be used was decided by the caller; the library warns of EdDSA's name.
            return self.algorithms[name]

    return Registry(strict_check_header=False)


def _signing_key(fields: Mapping[str, object]) -> SigningKey | None:
    """None for one that is not for signatures, or of a kind that none of the algorithms uses."""
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    kind, curve = fields.get("kty"), fields.get("crv")
    public = {name: value for name in _PUBLIC_FIELDS if isinstance(value := fields.get(name), str)}
    known = (str(kind), None if kind == "RSA" else str(curve))
    if known not in KEY_KINDS.values() or fields.get("use", "sig") != "sig":
        return None
    try:
        # Asked before: the library imports it with a warning.
        if kind == "RSA" and len(public.get("n", "")) * 6 < RSA_BITS_MIN:
            return None
        key = JWKRegistry.import_key(dict(public))
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    kid, algorithm = fields.get("kid"), fields.get("alg")
    material = tuple(public.get(name, "") for name in _PUBLIC_FIELDS)
    return SigningKey(
        kid if isinstance(kid, str) else None, known, algorithm if isinstance(algorithm, str) else None, material, key
    )
