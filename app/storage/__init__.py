"""The catalog in a relational database: SQLAlchemy Core behind `app.metastore.ports` (design D6)."""

from app.storage.revisions import migrate, revision_of
from app.storage.schema import REVISION
from app.storage.store import SqlStore, open_store

__all__ = ["REVISION", "SqlStore", "migrate", "open_store", "revision_of"]
