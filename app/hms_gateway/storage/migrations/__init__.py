"""Revisions of the schema, from each to the next."""
