"""Ids of leases that others hold, presented beside a change of one's own: the answer said which of them are held."""

import contextlib
from typing import Any

import pytest

from hms_gateway.composition.main import build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.structs import Database, EnvironmentContext, LeaseObject
from hms_gateway.runtime.settings import Settings
from tests.handlers.rights.test_authorizer import Everybody, table
from tests.support.catalog import place_empty_database

NOBODYS = "Refused: lease 999 is not held any more: it ended, was dropped, or never was"


@pytest.mark.parametrize("authorization", ["grants", "off"])
def test_a_lease_of_another_user_is_answered_about_like_one_that_never_was(tmp_path, authorization):
    place_empty_database(tmp_path / DATABASE_FILE)
    settings = Settings(
        data_dir=tmp_path, file_systems={"file": "ignore"}, warehouse_dir="file:/w", authorization=authorization
    )
    everybody = Everybody(build_metastore(settings))
    with contextlib.closing(everybody.metastore.store):
        for name, owner in (("hidden", "admin"), ("own", "mallory")):
            everybody.ask("admin", "create_database", Database(name, ownerName=owner))
            everybody.ask("admin", "create_table", table(name, "t", owner))

        def grab(user: str, database: str) -> int:
            lease: int = everybody.ask(user, "grab_lease", [LeaseObject(database, "t", None, "x")], 60, 0)
            return lease

        def changed(lease: int) -> Any:
            under = EnvironmentContext({"hms.lease.id": str(lease)})
            return everybody.ask("mallory", "drop_table_with_environment_context", "own", "t", False, under)

        others, own = grab("admin", "hidden"), grab("mallory", "own")
        never = changed(999)
        assert NOBODYS in never
        if authorization == "grants":
            assert changed(others) == never.replace("999", str(others))
        else:
            # Everybody sees all leases.
            assert f"lease {others} does not hold own.t" in changed(others)
        assert changed(own) is None
