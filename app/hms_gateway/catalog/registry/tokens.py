"""Delegation tokens and master keys of Hive's token managers, kept for them and sealed at rest (semantics §2.19)."""

import logging
from typing import Final

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Snapshot, Store, Transaction
from hms_gateway.runtime.sealing import Seal, SealingError, is_sealed
from hms_gateway.structs import MetaException

_MASTER_KEY = "master key"
# How the names of tokens begin that are logins here (`registry.delegation_tokens`); base64 has no colon.
LOGIN: Final = "login:"

_log = logging.getLogger(__name__)


class TokenService:
    def __init__(self, store: Store, seal: Seal) -> None:
        self._store = store
        self._seal = seal
        self._is_warned = False

    def add(self, identifier: str | None, token: str | None) -> bool:
        """False when the identifier is taken. Raises MetaException without one, SealingError."""
        key = required(identifier, "token identifier")
        if key.startswith(LOGIN):
            raise MetaException(f"token identifier begins with {LOGIN}; choose another one")
        sealed = self._sealed(token or "", _token(key))
        return self._store.write(lambda tx: tx.tokens.insert_token(key, sealed))

    def remove(self, identifier: str | None) -> bool:
        """Whether it was there."""
        return _is_kept(identifier) and self._store.write(lambda tx: tx.tokens.delete_token(identifier or ""))

    def get(self, identifier: str | None) -> str | None:
        """None for an unknown identifier. Raises SealingError when its key is not there."""
        if identifier is None or not _is_kept(identifier):
            return None
        stored = self._store.read(lambda snapshot: snapshot.tokens.token(identifier))
        return None if stored is None else self._seal.open(stored, _token(identifier))

    def identifiers(self) -> list[str]:
        """Sorted."""
        return list(filter(_is_kept, self._store.read(lambda snapshot: snapshot.tokens.identifiers())))

    def sealed(self, identifier: str, text: str) -> str:
        """What is kept of a token with this identifier. Raises SealingError."""
        return self._sealed(text, _token(identifier))

    def opened(self, identifier: str, stored: str) -> str:
        """What `sealed` has sealed. Raises SealingError."""
        return self._seal.open(stored, _token(identifier))

    def add_master_key(self, key: str | None) -> int:
        """The new key's number, from 1 on. Raises MetaException, SealingError."""
        sealed = self._sealed(required(key, "key"), _MASTER_KEY)
        return self._store.write(lambda tx: tx.tokens.insert_master_key(sealed))

    def update_master_key(self, number: int, key: str | None) -> bool:
        """Whether there is a key with this number. Raises MetaException, SealingError."""
        sealed = self._sealed(required(key, "key"), _MASTER_KEY)
        return self._store.write(lambda tx: tx.tokens.update_master_key(number, sealed))

    def remove_master_key(self, number: int) -> bool:
        """Whether there was one with this number."""
        return self._store.write(lambda tx: tx.tokens.delete_master_key(number))

    def master_keys(self) -> list[str]:
        """In the order of their numbers. Raises SealingError when the key they were sealed with is not there."""
        stored = self._store.read(lambda snapshot: snapshot.tokens.master_keys())
        return [self._seal.open(one, _MASTER_KEY) for one in stored.values()]

    def seal_all(self) -> int:
        """Seal what earlier versions kept readable, or an earlier key sealed; how many."""
        try:
            # All of them are looked at first: where one is sealed, there has to be its key, and none is made.
            if [stored for stored in self._store.read(_all_secrets) if self._is_stale(stored)]:
                return self._store.write(self._seal_again)
        except SealingError as error:
            if not self._is_warned:
                _log.error("delegation tokens and master keys in the database cannot be sealed: %s", error)
            self._is_warned = True
        return 0

    def _seal_again(self, transaction: Transaction) -> int:
        tokens = transaction.tokens
        tokens.leave_no_traces()
        count = 0
        for identifier, stored in tokens.tokens().items():
            if self._is_stale(stored):
                count += tokens.update_token(identifier, self._again(stored, _token(identifier)))
        for number, stored in tokens.master_keys().items():
            if self._is_stale(stored):
                count += tokens.update_master_key(number, self._again(stored, _MASTER_KEY))
        return count

    def _again(self, stored: str, purpose: str) -> str:
        return self._seal.seal(self._seal.open(stored, purpose), purpose)

    def _is_stale(self, stored: str) -> bool:
        """Raises SealingError."""
        return not (is_sealed(stored) and self._seal.is_current(stored))

    def _sealed(self, text: str, purpose: str) -> str:
        """Raises SealingError."""
        # A second key for one database would make two kinds of gateways that cannot read each other's secrets.
        may_make_key = self._seal.has_key or not any(map(is_sealed, self._store.read(_all_secrets)))
        return self._seal.seal(text, purpose, may_make_key=may_make_key)


def _all_secrets(snapshot: Snapshot) -> list[str]:
    return [*snapshot.tokens.tokens().values(), *snapshot.tokens.master_keys().values()]


def _is_kept(identifier: str | None) -> bool:
    """Whether it may be a token that is kept for others, and not a login."""
    return identifier is not None and not identifier.startswith(LOGIN)


def _token(identifier: str) -> str:
    """What a token is sealed for: in the place of another one it cannot be opened."""
    return f"delegation token {identifier}"
