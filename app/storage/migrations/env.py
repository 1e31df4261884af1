"""Runs migrations on the connection `app.storage.revisions` hands in; that opens and commits the transaction."""

from alembic import context

import app.storage.partial_indexes  # noqa: F401
from app.storage.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
