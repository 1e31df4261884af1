"""Directories of databases, tables and partitions: the `FileSystem` the metastore's rules ask for (design D12)."""

from app.files.directories import Directories
from app.files.policy import FilePolicy
from app.files.protection import Protected, RootRefused, check_roots, program_folders

__all__ = ["Directories", "FilePolicy", "Protected", "RootRefused", "check_roots", "program_folders"]
