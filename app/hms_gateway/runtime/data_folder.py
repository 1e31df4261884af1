"""The folder of database, passwords and keys: only its owner, or a group, may put other files in their place."""

import stat
from contextlib import suppress
from pathlib import Path

_MODE = 0o755


def make_data_folder(folder: Path) -> None:
    """Make it and those above it that are missing; other accounts cannot write them, whatever the umask.

    Raises OSError.
    """
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        with suppress(FileExistsError):
            missing.mkdir(_MODE)
    folder.mkdir(exist_ok=True)


def is_open_to_all(folder: Path) -> bool:
    """True if every account of the machine can replace files in the folder."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX
