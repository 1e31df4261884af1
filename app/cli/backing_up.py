"""`hms-gateway backup`: a copy of the embedded database while a gateway uses it."""

from pathlib import Path

from app.cli.output import fail_for_store, out
from app.main import database_url
from app.metastore.ports import StoreError
from app.settings import Settings
from app.storage.integrity import back_up


def run_backup(settings: Settings, file: Path) -> None:
    """Write the copy; what keeps it from being written is one line and exit code 2."""
    try:
        back_up(database_url(settings), file)
    except StoreError as error:
        fail_for_store(error)
    out.print(f"the database is in {file}", highlight=False, markup=False, soft_wrap=True)
