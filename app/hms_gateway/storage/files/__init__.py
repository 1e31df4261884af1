"""Directories of databases, tables and partitions: the `FileSystem` the metastore's rules ask for (design D12)."""
