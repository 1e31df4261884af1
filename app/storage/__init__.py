"""The catalog in a relational database: SQLAlchemy Core behind `app.metastore.ports` (design D6)."""

from app.storage.revisions import migrate
from app.storage.store import SqlStore, open_store

__all__ = ["SqlStore", "migrate", "open_store"]
