"""`hms-gateway serve`: make what a first start needs, say where the gateway is, and run it."""

import errno
import os
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import structlog

from hms_gateway.catalog.rights.keeper import standing_lines
from hms_gateway.cli.operations.start_checks import connections_problem, rights_problems, start_problems
from hms_gateway.cli.terminal.output import fail, fail_all, fail_for_store
from hms_gateway.composition.authorization import WITHOUT_RIGHTS, settled
from hms_gateway.composition.main import build, build_metastore, policy_keeper
from hms_gateway.composition.places import database_url, find_outside_places
from hms_gateway.gateway.application import SecondaryListenerFailed
from hms_gateway.gateway.assembly import audit_log_of, certificate_files
from hms_gateway.gateway.auth.users import UserFileError, verify_user
from hms_gateway.gateway.certificates.tls import CertificateError, server_context
from hms_gateway.gateway.logins import FIRST_USER, build_authenticator, ensure_first_user, given_password
from hms_gateway.gateway.running import WorkerFailed, run
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.rpc.structs import MetaException
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.door import listening_sockets
from hms_gateway.runtime.file_versions import is_open_to_all, make_data_folder
from hms_gateway.runtime.kerberos import KerberosError
from hms_gateway.runtime.logging import configure_logging, format_for_stderr
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.storage.files.places import Protected, RootRefused, check_roots
from hms_gateway.storage.writing.store import open_store

_AS_ROOT = (
    "the gateway runs as root: a mistake in file_roots then reaches every file; run it under an account of its "
    "own, the owner of data_dir and the roots (User= in systemd, USER in a container)"
)
_OPEN_DATA_FOLDER = (
    "every account of this machine can write data_dir, and so put another password file in place of the gateway's; "
    "take that right away (chmod o-w)"
)

CONTENT_TYPE = "application/vnd.apache.thrift.json"

_log = structlog.get_logger("hms_gateway.cli")


def run_server(settings: Settings, config: Path | None, *, demo: bool) -> None:
    """Serve until stopped. What keeps the gateway from starting is a line on standard error each, exit code 2."""
    configure_logging(settings.log_level, format_for_stderr(settings.log_format))
    held = ExitStack()
    try:
        problems = start_problems(settings)
        if problems:
            fail_all(problems)
        if config is not None:
            check_roots(settings.roots, [Protected(config, "the settings file")])
        make_data_folder(settings.data_dir)
        listeners = [held.enter_context(one) for one in listening_sockets(settings.host, settings.port)]
        _check_ports_and_logins(settings)
        is_chosen = settings.authorization is not None
        settings = settled(settings)
        if not is_chosen and (problems := list(rights_problems(settings))):
            fail_all(problems)
        # Behind all that may be refused: the next start would not take another password.
        _check_certificate(settings)
        password = _first_password(settings)
        if demo:
            settings = _load_demo(settings)
        elif settings.workers > 1:
            # Workers that cannot use the database would say so each for itself, and not in one line.
            build_metastore(settings).store.close()
        if settings.authorization == "off" and not is_chosen:
            _log.warning(WITHOUT_RIGHTS)
        run(settings, build, listeners, on_listening=lambda addresses: _listening(settings, addresses, password))
        _log.info("stopped")
    except KerberosError as error:
        fail(f"kerberos.keytab: {error}")
    except RootRefused as error:
        fail(str(error), "warehouse_dir and file_roots name folders for tables and nothing else")
    except SettingsError as error:
        fail(str(error))
    except StoreError as error:
        fail_for_store(error)
    except MetaException as error:
        # A first start makes the directory of the database `default`.
        hint = "the settings warehouse_dir, file_roots and file_systems say where directories may be"
        fail(f"the database default cannot be made: {error.message}", hint)
    except (CertificateError, UserFileError, WorkerFailed, SecondaryListenerFailed) as error:
        fail(str(error))
    except OSError as error:
        _fail_for(settings, error)
    finally:
        held.close()


def _check_ports_and_logins(settings: Settings) -> None:
    """Raises SecondaryListenerFailed, SettingsError, CertificateError, KerberosError."""
    if settings.thrift_port is not None:
        from hms_gateway.composition.thrift_port import check_port

        check_port(settings.thrift_host, settings.thrift_port)
    log = audit_log_of(settings)
    if log is not None:
        log.close()
    build_authenticator(settings)


def _check_certificate(settings: Settings) -> None:
    """Make it if need be, since of several workers each would. Raises CertificateError, OSError."""
    files = certificate_files(settings)
    if files is not None:
        server_context(files.certificate, files.key, files.clients)


def _first_password(settings: Settings) -> str | None:
    """The password made for the first user, None when there was nothing to make or it was given.

    Shown at once: should the rest of the start fail, the next one finds the user and says nothing any more.
    """
    had_users = settings.users_path.exists()
    password = ensure_first_user(settings)
    if password is not None:
        _show_first_password(settings, password)
    elif had_users:
        reset = f"hms-gateway user add {FIRST_USER} --data-dir {settings.data_dir}"
        _check_users(settings)
        _say(f"users are in {settings.users_path}; `{reset}` sets a new password")
    else:
        _say(f"made the user {FIRST_USER} with the password given in the settings")
    return password


def _show_first_password(settings: Settings, password: str) -> None:
    """Removes the user when the password cannot be printed: the next start makes both anew."""
    try:
        _print(f"made the user {FIRST_USER} with the password {password} (shown only this once)")
    except OSError as error:
        settings.users_path.unlink()
        fail(f"the password of the user {FIRST_USER} cannot be printed: {error.strerror}; the next start makes it")


def _check_users(settings: Settings) -> None:
    """Raises UserFileError."""
    given = given_password(settings)
    if given is not None and not verify_user(settings.users_path, FIRST_USER, given):
        _say(f"admin_password is for the first start: {FIRST_USER} has another password by now, or was removed")


def _load_demo(settings: Settings) -> Settings:
    """The settings to serve with. In a store of its own, closed again: with several workers the parent process must not
    keep connections."""
    from hms_gateway.composition.demo import DATABASE, ORIGINS, TABLE, load_demo

    metastore = build_metastore(settings)
    try:
        if load_demo(metastore.store, metastore.events):
            _say(f"loaded the demo table {DATABASE}.{TABLE}")
    finally:
        metastore.store.close()
    return settings if settings.cors_origins else msgspec.structs.replace(settings, cors_origins=ORIGINS)


def _listening(settings: Settings, addresses: list[tuple[Any, ...]], password: str | None) -> None:
    _announce(settings, addresses, password)
    threading.Thread(target=_tell_what_is_stored, args=[settings], name="what is stored", daemon=True).start()


def _tell_what_is_stored(settings: Settings) -> None:
    """Log who may do everything, tables outside the roots, and too few connections.

    Once for all workers, and with a store of its own, which is closed again. No caller waits for it.
    """
    try:
        with closing(open_store(database_url(settings), SystemClock(), settings.limits, 1)) as store:
            if settings.authorization == "grants":
                for line in standing_lines(policy_keeper(settings, store).policy()):
                    _log.info(line)
            too_few = connections_problem(settings, store)
            found = find_outside_places(settings, store)
    except (StoreError, SettingsError) as error:
        _log.warning("the check for administrators and for tables outside the roots failed", error=str(error))
        return
    if too_few is not None:
        _log.warning(too_few)
    if found:
        _log.warning(str(found), see="hms-gateway check")


def _announce(settings: Settings, addresses: list[tuple[Any, ...]], password: str | None) -> None:
    """A first start is for people, with a line for curl that has the password; later ones ask for it."""
    say = _say if password is None else _print
    scheme = "https" if settings.tls else "http"
    host = "localhost" if settings.host in ("127.0.0.1", "::1", "0.0.0.0", "::", "") else settings.host
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{addresses[0][1]}{next(iter(settings.paths))}"
    insecure = "-k " if settings.tls and settings.tls_certificate is None else ""
    user = FIRST_USER if password is None else f"{FIRST_USER}:{password}"
    if os.geteuid() == 0:
        _log.warning(_AS_ROOT)
    if is_open_to_all(settings.data_dir):
        _log.warning(_OPEN_DATA_FOLDER, data_dir=str(settings.data_dir))
    say(f"listening on {url}")
    if settings.thrift_port is not None:
        say(f"listening on thrift://{settings.thrift_host}:{settings.thrift_port}{' with TLS' * settings.thrift_tls}")
    for name, networks in (("thrift_networks", settings.thrift_networks), ("http_networks", settings.http_networks)):
        if networks:
            _log.warning(
                f"{name}: clients of these networks call without a login",
                networks=networks,
                user=settings.network_user or "as they name it",
                authorization=settings.authorization,
            )
    if password is None and not sys.stdout.isatty():
        return
    _print(
        f"try: curl {insecure}-u {user} --data '[1,\"get_all_databases\",1,1,{{}}]'"
        f' -H "Content-Type: {CONTENT_TYPE}" {url}'
    )


def _say(text: str) -> None:
    """On a terminal a line for people, elsewhere a line of the log, with time and form."""
    if sys.stdout.isatty():
        _print(text)
    else:
        _log.info(text)


def _print(text: str) -> None:
    print(text, flush=True)


def _fail_for(settings: Settings, error: OSError) -> NoReturn:
    if error.filename is not None:
        reason = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror
        fail(f"{error.filename}: {reason}", "--data-dir chooses another folder")
    place = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        fail(f"{place} is in use by another program", "--port chooses another port, 0 takes a free one")
    fail(f"cannot listen on {place}: {error.strerror or error}")
