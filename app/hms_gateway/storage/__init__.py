"""The catalog in a relational database: SQLAlchemy Core behind `metastore.ports.store` (design D6)."""

from hms_gateway.storage.migrations.revisions import migrate, revision_of
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.writing.store import SqlStore, open_store

__all__ = ["REVISION", "SqlStore", "migrate", "open_store", "revision_of"]
