"""What lies in directories, on this machine's disks and in everything fsspec speaks; without Spark."""

from hms_gateway.pipeline.listing.files import (
    Entry,
    Files,
    ListingProblem,
    LocalFiles,
    RemoteFiles,
    files_of,
    is_hidden,
)
from hms_gateway.pipeline.listing.folding import Folded, fold
from hms_gateway.pipeline.listing.formats import HEAD_BYTES, format_of, formats_in, unlike

__all__ = [
    "files_of",
    "Files",
    "Entry",
    "ListingProblem",
    "LocalFiles",
    "RemoteFiles",
    "is_hidden",
    "Folded",
    "fold",
    "format_of",
    "formats_in",
    "unlike",
    "HEAD_BYTES",
]
