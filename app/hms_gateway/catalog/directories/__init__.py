"""Directories of databases, tables and partitions: where they lie, how they move, which are lost."""
