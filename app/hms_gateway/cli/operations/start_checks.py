"""Problems that would keep a gateway from serving, found before it starts: a line for each, all at once."""

import os
import re
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hms_gateway.composition.health import gateway_name
from hms_gateway.composition.places import database_url
from hms_gateway.gateway.admission.identity import is_user_name
from hms_gateway.gateway.auth.tokens import TokenFileError, read_tokens
from hms_gateway.gateway.auth.users import UserFileError, read_users
from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME, CertificateError, server_context
from hms_gateway.gateway.logins import service_keys, user_file
from hms_gateway.gateway.observability.traces import check_installed
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.kerberos import KerberosError
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.storage.dialects.integrity import IntegrityCheck, sqlite_file
from hms_gateway.storage.files.places import StorageFileError, read_storage_options
from hms_gateway.storage.writing.store import SqlStore, connections_wanted

# Besides the database: libraries, log, event loop, and connections enough to be of use.
OTHER_FILES_MIN = 136
# Database and write-ahead log, or a socket.
FILES_PER_DATABASE_CONNECTION = 2
_FILE_LOCATION = re.compile(r"(?:file:(?://)?)?(/.*)")

_Check = Callable[[Settings], Iterator[str]]


def start_problems(settings: Settings) -> list[str]:
    """The problems, each with its remedy."""
    try:
        sqlite_file(database_url(settings))
    except StoreError as error:
        return [str(error)]
    return [problem for check in _CHECKS for problem in check(settings)]


def connections_problem(settings: Settings, store: SqlStore) -> str | None:
    """The problem of gateways that may want more connections than the database allows. Raises StoreError."""
    allowed = store.connections_allowed()
    if allowed is None:
        return None
    others = [row for row in store.known_gateways() if row.name != gateway_name(settings.port)]
    processes = settings.workers + len(others)
    wanted = processes * connections_wanted(settings.database_connections_max)
    if wanted <= allowed:
        return None
    return (
        f"the database allows {allowed} connections, and its gateways (processes: {processes}) may take {wanted}: "
        f"raise its max_connections, or lower database_connections_max ({settings.database_connections_max}) or workers"
    )


def files_min(settings: Settings) -> int:
    """The number of files that a process has to be allowed to open."""
    return OTHER_FILES_MIN + FILES_PER_DATABASE_CONNECTION * settings.database_connections_max


def _open_files(settings: Settings) -> Iterator[str]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = files_min(settings)
    if hard != resource.RLIM_INFINITY and hard < needed:
        yield (
            f"the limit of open files is {hard}; a gateway needs {needed}, and one more for each connection of "
            f"limits.connections_max ({settings.limits.connections_max}): raise it with ulimit -n or LimitNOFILE"
        )


def _folders(settings: Settings) -> Iterator[str]:
    """Folders that are missing are made, so the nearest one above them has to let us write."""
    used: dict[Path, list[str]] = {}
    for name, folder in _written(settings):
        used.setdefault(_nearest(folder), []).append(f"{name} {folder}")
    for folder, names in used.items():
        problem = _problem_of_folder(folder)
        if problem is not None:
            yield f"{folder}: {problem}, needed for {', '.join(names)}; choose another folder, or let the account write"


def _written(settings: Settings) -> Iterator[tuple[str, Path]]:
    """The folders a gateway with these settings writes into, by what says so."""
    if settings.database_url is None or not settings.users_path.exists() or _makes_certificate(settings):
        yield "data_dir", settings.data_dir
    database = sqlite_file(database_url(settings))
    if database is not None and database.parent != settings.data_dir.absolute():
        yield "database_url", database.parent
    location = _FILE_LOCATION.fullmatch(settings.warehouse_location)
    if location is not None and settings.file_systems.get("file", "manage") == "manage":
        yield "warehouse_dir", Path(location[1])


def _makes_certificate(settings: Settings) -> bool:
    return settings.tls and settings.tls_certificate is None and not (settings.data_dir / CERTIFICATE_NAME).exists()


def _nearest(folder: Path) -> Path:
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _problem_of_folder(folder: Path) -> str | None:
    if not folder.is_dir():
        return "it is not a folder"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"it cannot be written ({error.strerror})"


def _database(settings: Settings) -> Iterator[str]:
    file = sqlite_file(database_url(settings))
    if file is None or not file.exists():
        return
    if not os.access(file, os.R_OK | os.W_OK):
        yield f"database {file} cannot be written; give it to the account that runs the gateway"
        return
    check = IntegrityCheck(file)
    damage = check.find_damage() if check.is_short() else None
    if damage is not None:
        yield f"database {file} is damaged ({damage}); restore a backup (docs/operations.md, Backup)"


def rights_problems(settings: Settings) -> Iterator[str]:
    """Problems of settings that name the authorization that holds."""
    if settings.authorization != "grants":
        return
    if settings.thrift_port is not None and not settings.thrift_needs_login and not settings.administrators:
        yield (
            "the Thrift port without a login acts as the first of administrators, which is empty (authorization is "
            '"grants"): name one, or set thrift_sasl = "require"'
        )
    if settings.authorization_rules_file is not None:
        from hms_gateway.catalog.rights.rules_file import RulesError, read_rules

        try:
            read_rules(settings.authorization_rules_file)
        except RulesError as error:
            yield f"authorization_rules_file: {error}"


def _network_user(settings: Settings) -> Iterator[str]:
    """A user that no call would be let in as."""
    user = settings.network_user
    if user is None:
        return
    if not is_user_name(user):
        yield f"network_user {user!r} is not a readable name; name one without blanks around it and control characters"
    elif user_file(settings).is_reserved(user):
        yield f"network_user {user} has a password here; name another user, or list it in users_by_other_logins"


def _file_systems(settings: Settings) -> Iterator[str]:
    for scheme, policy in sorted(settings.file_systems.items()):
        if policy == "manage" and scheme != "file":  # the library of all others takes a thirtieth of a start
            from hms_gateway.storage.files.remote import missing_extra

            extra = missing_extra(scheme)
            if extra is not None:
                yield f"directories of {scheme}: (file_systems) need a library: pip install 'hms-gateway[{extra}]'"


def _raised(check: Callable[[Settings], object], *errors: type[Exception], name: str = "") -> _Check:
    """The check whose problem is the error that a function raises."""

    def problems(settings: Settings) -> Iterator[str]:
        try:
            check(settings)
        except errors as error:
            yield f"{name}{error}"

    return problems


def _check_certificate(settings: Settings) -> None:
    if settings.tls and settings.tls_certificate is not None and settings.tls_key is not None:
        server_context(settings.tls_certificate, settings.tls_key)


def _check_ldap(settings: Settings) -> None:
    if settings.ldap is not None:
        from hms_gateway.gateway.auth import directory

        directory.check_installed()


def _check_storage(settings: Settings) -> None:
    if settings.storage_file is not None:
        read_storage_options(settings.storage_file)


def _check_tracing(settings: Settings) -> None:
    if settings.otel.endpoint is not None:
        check_installed()


_CHECKS: tuple[_Check, ...] = (
    *(_open_files, _folders, _database),
    _raised(_check_certificate, CertificateError),
    _raised(lambda settings: read_users(settings.users_path), UserFileError),
    _raised(lambda settings: read_tokens(settings.tokens_path), TokenFileError),
    _raised(service_keys, KerberosError, name="kerberos.keytab: "),
    _raised(_check_ldap, SettingsError),
    rights_problems,
    _network_user,
    _raised(_check_tracing, SettingsError),
    _file_systems,
    _raised(_check_storage, StorageFileError, name="storage_file: "),
)
