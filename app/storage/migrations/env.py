"""Runs migrations on the connection `app.storage.revisions` hands in; that opens and commits the transaction."""

from alembic import context

from app.storage.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
