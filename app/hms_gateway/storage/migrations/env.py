"""Runs migrations on the connection `storage.migrations.revisions` hands in; that opens and commits the transaction."""

from alembic import context

import hms_gateway.storage.schema.partial_indexes  # noqa: F401
from hms_gateway.storage.schema.catalog import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
