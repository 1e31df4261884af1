"""Alembic's side: how the schema came to be, revision by revision."""
