"""Places of a gateway: its database, the directories it manages, and the files no root may open."""

from pathlib import Path

from hms_gateway.catalog.directories.known_places import OutsidePlaces, find_outside
from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME, KEY_NAME
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.storage.dialects.integrity import sqlite_file
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.files.places import (
    FilePolicy,
    Protected,
    RootRefused,
    StorageFileError,
    check_roots,
    program_folders,
    read_storage_options,
)
from hms_gateway.storage.writing.store import SqlStore

DATABASE_FILE = "metastore.db"


def database_url(settings: Settings) -> str:
    """The configured database, or the SQLite file of the data folder."""
    return settings.database_url or f"sqlite:///{settings.data_dir.absolute() / DATABASE_FILE}"


def directories(settings: Settings) -> Directories:
    """The directories this server manages.

    Raises SettingsError for roots that would open what they must not and for a `storage_file` that cannot be used,
    StoreError for a database URL that is not usable.
    """
    policies = {scheme: FilePolicy(policy) for scheme, policy in settings.file_systems.items()}
    default = policies.pop("*", None)
    protected = [*_protected(settings), *program_folders()]
    for name, roots in (("warehouse_dir", [settings.warehouse_location]), ("file_roots", settings.file_roots)):
        try:
            check_roots(roots, protected)
        except RootRefused as error:
            raise SettingsError(f"{name}: {error}") from error
    try:
        options = {} if settings.storage_file is None else read_storage_options(settings.storage_file)
    except StorageFileError as error:
        raise SettingsError(f"storage_file: {error}") from error
    return Directories(policies, settings.roots, options, default)


def find_outside_places(settings: Settings, store: SqlStore) -> OutsidePlaces:
    """Find what the catalog owns outside the roots. Raises StoreError."""
    files = directories(settings)
    protected = [*_protected(settings), *program_folders()]

    def may_be_root(location: str) -> bool:
        """True if `file_roots` could name it."""
        try:
            check_roots([location], protected)
        except RootRefused:
            return False
        return True

    return find_outside(store, files, files.beginnings, may_be_root)


def _protected(settings: Settings) -> list[Protected]:
    """The data folder and the files that settings name. The warehouse is a folder in the data folder by default.

    Raises StoreError for a database URL that cannot be read.
    """
    database = sqlite_file(database_url(settings))
    files: dict[str, Path | str | None] = {
        "the database": database,
        "users_file": settings.users_path,
        "tokens_file": settings.tokens_path,
        "groups_file": settings.groups_file,
        "tls_certificate": settings.tls_certificate or settings.data_dir / CERTIFICATE_NAME,
        "tls_key": settings.tls_key or settings.data_dir / KEY_NAME,
        "secrets_key_file": settings.secrets_key_path,
        "admin_password_file": settings.admin_password_file,
        "kerberos.keytab": settings.kerberos.keytab,
        "trusted_proxy.authority": settings.trusted_proxy.authority,
        "ldap.search_password_file": None if settings.ldap is None else settings.ldap.search_password_file,
        "client_certificates.authority": settings.client_certificates.authority,
        "client_certificates.revocations": settings.client_certificates.revocations,
        **{f"token_issuers.{name}.keys_file": issuer.keys_file for name, issuer in settings.token_issuers.items()},
        "authorization_rules_file": settings.authorization_rules_file,
        "storage_file": settings.storage_file,
    }
    if database is not None:
        files |= {f"the database's {suffix} file": f"{database}-{suffix}" for suffix in ("wal", "shm", "journal")}
    named = [Protected(Path(path), name) for name, path in files.items() if path]
    return [Protected(settings.data_dir, "data_dir", may_hold_roots=True), *named]
