"""Rows of the catalog under the name of a user: delegation tokens, grants, roles, and what the user owns."""

from collections.abc import Iterator
from contextlib import contextmanager

from hms_gateway.catalog.functions import FunctionRows
from hms_gateway.catalog.rights.decisions import USER
from hms_gateway.catalog.rights.keeper import PolicyKeeper, RightsRows
from hms_gateway.catalog.rights.policy import Principal
from hms_gateway.catalog.tokens import cancel_all
from hms_gateway.cli.terminal.output import fail, fail_for_store
from hms_gateway.composition.places import database_url
from hms_gateway.metastore.ports.store import Snapshot, StoreError
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage.dialects.integrity import sqlite_file
from hms_gateway.storage.migrations.revisions import revision_of
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.writing.store import SqlStore, open_store


@contextmanager
def catalog(settings: Settings) -> Iterator[SqlStore | None]:
    """The catalog that the settings name; None where there is none yet. Ends the command when it cannot be asked."""
    url = database_url(settings)
    try:
        file = sqlite_file(url)
        if file is not None and not file.exists():
            yield None
            return
        found = revision_of(url)
        if found is None:
            yield None
            return
        # A command for users changes no schema, under a gateway that may be serving.
        if found != REVISION:
            fail(f"the catalog has revision {found}, this command needs {REVISION}", "use the gateway's own version")
        store = open_store(url, SystemClock(), settings.limits, 2)
        try:
            yield store
        finally:
            store.close()
    except StoreError as error:
        fail_for_store(error)


def cancel_of(settings: Settings, user: str) -> int:
    """Cancel the delegation tokens of a user; how many there were."""
    with catalog(settings) as store:
        return 0 if store is None else cancel_all(store, user)


def left_behind(store: SqlStore, user: str) -> list[str]:
    """List, for showing, what another user of the name would have."""
    party, policy = Principal(USER, user), PolicyKeeper(store, frozenset()).policy()

    def work(snapshot: Snapshot) -> list[str]:
        tables = [
            f"table {row.database}.{row.table}"
            for row in RightsRows(snapshot).tables_owned_by([user])
            if Principal(row.owner_type, row.owner or "") == party
        ]
        functions = [
            f"function {one.dbName}.{one.functionName}"
            for one in FunctionRows(snapshot).objects()
            if Principal(int(one.ownerType or USER), one.ownerName or "") == party
        ]
        return [*tables, *functions]

    owned = [f"database {name}" for name, owner in policy.databases.items() if owner == party] + store.read(work)
    return [
        *(f"the role {name}" for name in sorted(policy.members.get(party, ()))),
        *(f"{held.privilege} on {held.on}" for held in policy.held.get(party, ())),
        *(f"{name}, as its owner" for name in owned),
    ]
