"""Ours beside the real Apache Hive Metastore: one PostgreSQL, the same content, the same calls in turns (README.md)."""
