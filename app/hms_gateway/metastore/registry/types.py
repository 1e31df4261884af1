"""Types of the old type registry, which no client uses (semantics §2.4)."""

import msgspec

from hms_gateway.metastore.checks.errors import required, unstorable_as_meta
from hms_gateway.metastore.ports.store import DuplicateKey, Store
from hms_gateway.metastore.vocabulary.names import InvalidName, check_type_name, trim
from hms_gateway.structs import AlreadyExistsException, InvalidObjectException, NoSuchObjectException, Type


class TypeService:
    """Types by name. Case counts, other than with everything else."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, given: Type | None) -> None:
        """Raises InvalidObjectException, AlreadyExistsException, MetaException."""
        new = required(given, "type")
        if new.fields is None:
            new = msgspec.structs.replace(new, fields=[])
        try:
            check_type_name(required(new.name, "type name"))
        except InvalidName as error:
            raise InvalidObjectException(str(error)) from error
        try:
            with unstorable_as_meta():
                self._store.write(lambda tx: tx.types.insert(new))
        except DuplicateKey as error:
            raise AlreadyExistsException(f"Type {new.name} already exists") from error

    def get(self, name: str | None) -> Type:
        """Raises NoSuchObjectException, MetaException."""
        key = trim(required(name, "type name"))
        found = self._store.read(lambda snapshot: snapshot.types.find(key))
        if found is None:
            raise NoSuchObjectException(f'Type "{name}" not found.')
        return found

    def drop(self, name: str | None) -> None:
        """A missing one is ignored. Raises MetaException."""
        key = trim(required(name, "type name"))
        self._store.write(lambda tx: tx.types.delete(key))
