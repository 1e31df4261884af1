"""Delegation tokens of a user are cancelled where the catalog keeps them."""

from hms_gateway.cli.terminal.output import fail_for_store
from hms_gateway.composition.main import database_url
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.metastore.registry.delegation_tokens import cancel_all
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage import open_store


def cancel_of(settings: Settings, user: str) -> int:
    """How many there were. Ends the command with an error when the database cannot be asked."""
    try:
        store = open_store(database_url(settings), SystemClock(), settings.limits, 1)
        try:
            return cancel_all(store, user)
        finally:
            store.close()
    except StoreError as error:
        fail_for_store(error)
