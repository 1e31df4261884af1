"""Directories of databases, tables and partitions: the `FileSystem` the metastore's rules ask for (design D12)."""

from app.files.directories import Directories
from app.files.policy import FilePolicy

__all__ = ["Directories", "FilePolicy"]
