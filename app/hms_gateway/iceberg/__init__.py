"""Iceberg's REST catalog over the rows of the metastore: metadata files as values, rows, operations, routes."""
