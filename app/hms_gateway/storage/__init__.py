"""The catalog in a relational database: SQLAlchemy Core behind `metastore.ports.store` (design D6)."""

from hms_gateway.storage.migrations.revisions import migrate, revision_of
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.writing.store import SqlStore, connections_wanted, open_store

__all__ = ["REVISION", "SqlStore", "connections_wanted", "migrate", "open_store", "revision_of"]
