"""Directories of databases, tables and partitions: what the metastore's rules ask of file systems (design D12)."""
