"""Which directories are worth it, and which of their files become one."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from hms_gateway.pipeline.compact.filing import DataFile

TARGET_BYTES: Final = 128 << 20
# A file of so much of the target is large enough.
_LARGE: Final = 0.75


class Gain(NamedTuple):
    """Files before and, by their sizes alone, after."""

    before: int
    after: int
    bytes: int

    @property
    def is_worth_it(self) -> bool:
        return self.after < self.before


def gain(files: Sequence[DataFile], target_bytes: int) -> Gain:
    """Empty files go."""
    return Gain(len(files), len(bins(files, target_bytes)), sum(file.bytes for file in files))


def is_large(file: DataFile, target_bytes: int) -> bool:
    return file.bytes >= _LARGE * target_bytes


def bins(files: Sequence[DataFile], target_bytes: int) -> list[list[DataFile]]:
    """Files that become one, in their order; a large one stays as it is. No bin is over the target by its sizes."""
    found: list[list[DataFile]] = []
    filled = 0
    for file in files:
        if file.bytes == 0:
            continue
        if is_large(file, target_bytes):
            found.append([file])
            filled = target_bytes
        elif not found or filled + file.bytes > target_bytes:
            found.append([file])
            filled = file.bytes
        else:
            found[-1].append(file)
            filled += file.bytes
    return found
