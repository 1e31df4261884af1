"""What the server does with directories, for each scheme."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class FilePolicy(StrEnum):
    """MANAGE makes, moves and deletes directories below the roots; IGNORE leaves them to others; REFUSE takes none."""

    MANAGE = "manage"
    IGNORE = "ignore"
    REFUSE = "refuse"


# Schemes that some client can read. Anything else is most likely a mistake, which Hive refuses too (semantics §3.1).
# fmt: off
_KNOWN_SCHEMES: Final = frozenset({
    "hdfs", "viewfs", "webhdfs", "swebhdfs", "har", "ofs", "o3fs", "maprfs", "jfs", "alluxio",
    "s3", "s3a", "s3n", "abfs", "abfss", "adl", "wasb", "wasbs", "gs", "oss", "obs", "cos", "cosn", "tos", "bos",
    "ks3", "oci", "swift", "dbfs", "ftp", "sftp", "http", "https",
})
# fmt: on


def policy_of(scheme: str, policies: Mapping[str, FilePolicy], default: FilePolicy | None = None) -> FilePolicy:
    """The operator's choice, else: manage `file`, ignore the other known schemes, refuse the unknown."""
    if scheme in policies:
        return policies[scheme]
    if default is not None:
        return default
    if scheme == "file":
        return FilePolicy.MANAGE
    return FilePolicy.IGNORE if scheme in _KNOWN_SCHEMES else FilePolicy.REFUSE
