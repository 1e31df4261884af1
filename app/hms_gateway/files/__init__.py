"""Directories of databases, tables and partitions: the `FileSystem` the metastore's rules ask for (design D12)."""

from hms_gateway.files.directories import Directories
from hms_gateway.files.places import FilePolicy, Protected, RootRefused, check_roots, program_folders

__all__ = ["Directories", "FilePolicy", "Protected", "RootRefused", "check_roots", "program_folders"]
