"""Decides if rights are enforced: as the setting says, or else as the catalog began. A new one begins with grants."""

from collections.abc import Callable
from contextlib import closing
from typing import Final, Literal, TypeVar, cast

import msgspec

from hms_gateway.catalog.properties import begun_authorization, kept_authorization
from hms_gateway.catalog.rights.keeper import standing_lines
from hms_gateway.composition.main import policy_keeper
from hms_gateway.composition.places import database_url
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.storage.dialects.integrity import sqlite_file
from hms_gateway.storage.migrations.revisions import revision_of
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.writing.store import SqlStore, open_store

T = TypeVar("T")

WITHOUT_RIGHTS: Final = (
    "authorization is not set and this installation began without it: every user may do everything but grant, make "
    'roles and give away what exists; set authorization = "grants", or "off" if that is meant so (docs/rights.md)'
)


def settled(settings: Settings) -> Settings:
    """The settings for a start, which say what holds. Raises StoreError."""
    with closing(_opened(settings)) as store:
        begun = begun_authorization(store)
    authorization = settings.authorization or cast(Literal["off", "grants"], begun)
    return msgspec.structs.replace(settings, authorization=authorization)


def authorization_of(settings: Settings) -> str | None:
    """The authorization of a gateway with these settings, None where it cannot be found out. Changes nothing."""
    if settings.authorization is not None:
        return settings.authorization
    return _asked(settings, kept_authorization, "grants")


def standing_of(settings: Settings) -> list[str]:
    """The users who may do everything, in lines; empty where they cannot be found out."""
    return _asked(settings, lambda store: standing_lines(policy_keeper(settings, store).policy()), []) or []


def _asked(settings: Settings, ask: Callable[[SqlStore], T], without_schema: T) -> T | None:
    """None for a database that cannot be asked; a program of another version does not migrate it."""
    try:
        file = sqlite_file(database_url(settings))
        revision = None if file is not None and not file.exists() else revision_of(database_url(settings))
        if revision != REVISION:
            return without_schema if revision is None else None
        with closing(_opened(settings)) as store:
            return ask(store)
    except (StoreError, SettingsError):
        return None


def _opened(settings: Settings) -> SqlStore:
    return open_store(database_url(settings), SystemClock(), settings.limits, 1)
