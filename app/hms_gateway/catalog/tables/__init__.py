"""Databases, tables, and what belongs to a table: constraints, indexes, views."""
