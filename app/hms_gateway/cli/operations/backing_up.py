"""`hms-gateway backup`: a copy of the embedded database while a gateway uses it."""

from pathlib import Path

from hms_gateway.cli.terminal.output import fail_for_store, out
from hms_gateway.composition.main import database_url
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.dialects.integrity import back_up


def run_backup(settings: Settings, file: Path) -> None:
    """Write the copy; what keeps it from being written is one line and exit code 2."""
    try:
        back_up(database_url(settings), file)
    except StoreError as error:
        fail_for_store(error)
    out.print(f"the database is in {file}", highlight=False, markup=False, soft_wrap=True)
