"""What the rules of the smaller aggregates need from storage; each is an attribute of the units of work in `ports`."""

from typing import Protocol

import msgspec

from hms_gateway.metastore.vocabulary.names import DatabaseId, IndexId, TableId
from hms_gateway.structs import Index


class StoredIndex(msgspec.Struct, frozen=True):
    """An index as get_index_by_name returns it, and its id."""

    index_id: IndexId
    index: Index


class IndexReads(Protocol):
    """Names are lower-cased by the caller."""

    def find(self, table_id: TableId, name: str) -> StoredIndex | None: ...

    def of_table(self, table_id: TableId) -> list[StoredIndex]:
        """Ordered by name."""

    def of_database(self, database_id: DatabaseId) -> list[StoredIndex]:
        """Those on tables of the database, in no order."""


class IndexWrites(IndexReads, Protocol):
    def insert(self, table_id: TableId, index: Index) -> None:
        """Raises DuplicateKey."""

    def update(self, index_id: IndexId, index: Index) -> None:
        """Replace everything but name and table."""

    def delete(self, index_id: IndexId) -> None: ...


class TokenReads(Protocol):
    """Delegation tokens by identifier, and master keys by number: opaque texts (semantics §2.19)."""

    def token(self, identifier: str) -> str | None: ...

    def identifiers(self) -> list[str]: ...

    def tokens(self) -> dict[str, str]:
        """By identifier."""

    def master_keys(self) -> dict[int, str]:
        """By number, in the order of their numbers."""


class TokenWrites(TokenReads, Protocol):
    def insert_token(self, identifier: str, token: str) -> bool:
        """False when the identifier is there already; then nothing changes."""

    def update_token(self, identifier: str, token: str) -> bool:
        """Whether it was there."""

    def leave_no_traces(self) -> None:
        """What is overwritten from now on does not stay readable in the database's file, where that is in our hands."""

    def delete_token(self, identifier: str) -> bool:
        """Whether it was there."""

    def insert_master_key(self, key: str) -> int:
        """The new number; numbers are never given twice."""

    def update_master_key(self, number: int, key: str) -> bool:
        """Whether it was there."""

    def delete_master_key(self, number: int) -> bool:
        """Whether it was there."""
