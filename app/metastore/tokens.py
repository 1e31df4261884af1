"""Delegation tokens and master keys of Hive's token managers: opaque texts that are kept for them (semantics §2.19)."""

from app.metastore.errors import required
from app.metastore.ports import Store


class TokenService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, identifier: str | None, token: str | None) -> bool:
        """False when the identifier is taken. Raises MetaException without one."""
        key = required(identifier, "token identifier")
        return self._store.write(lambda tx: tx.tokens.insert_token(key, token or ""))

    def remove(self, identifier: str | None) -> bool:
        """Whether it was there."""
        return identifier is not None and self._store.write(lambda tx: tx.tokens.delete_token(identifier))

    def get(self, identifier: str | None) -> str | None:
        """None for an unknown identifier."""
        if identifier is None:
            return None
        return self._store.read(lambda snapshot: snapshot.tokens.token(identifier))

    def identifiers(self) -> list[str]:
        """Sorted."""
        return self._store.read(lambda snapshot: snapshot.tokens.identifiers())

    def add_master_key(self, key: str | None) -> int:
        """The new key's number, from 1 on. Raises MetaException."""
        value = required(key, "key")
        return self._store.write(lambda tx: tx.tokens.insert_master_key(value))

    def update_master_key(self, number: int, key: str | None) -> bool:
        """Whether there is a key with this number. Raises MetaException."""
        value = required(key, "key")
        return self._store.write(lambda tx: tx.tokens.update_master_key(number, value))

    def remove_master_key(self, number: int) -> bool:
        """Whether there was one with this number."""
        return self._store.write(lambda tx: tx.tokens.delete_master_key(number))

    def master_keys(self) -> list[str]:
        """In the order of their numbers."""
        return self._store.read(lambda snapshot: snapshot.tokens.master_keys())
