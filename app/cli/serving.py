"""`hms-gateway serve`: make what a first start needs, say where the gateway is, and run it."""

from typing import Any

from app.cli.output import fail, out
from app.demo import load_demo
from app.gateway.assembly import FIRST_USER, ensure_first_user, server_certificate
from app.gateway.running import WorkerFailed, run
from app.gateway.tls import CertificateError
from app.gateway.users import UserFileError
from app.logging import configure_logging
from app.main import build, build_metastore
from app.metastore.ports import StoreError
from app.settings import Settings

CONTENT_TYPE = "application/vnd.apache.thrift.json"


def run_server(settings: Settings, *, demo: bool) -> None:
    """Serve until told to stop. What keeps the gateway from starting is one line on standard error, exit code 2."""
    configure_logging(settings.log_level, settings.log_format)
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        password = ensure_first_user(settings)
        server_certificate(settings)
        if demo:
            _load_demo(settings)
        run(settings, build, on_listening=lambda addresses: _announce(settings, addresses, password))
    except (StoreError, CertificateError, UserFileError, WorkerFailed) as error:
        fail(str(error))
    except PermissionError as error:
        fail(f"{error.filename}: permission denied")
    except OSError as error:
        fail(f"{settings.host}:{settings.port}: {error.strerror or error}" if not error.filename else str(error))


def _load_demo(settings: Settings) -> None:
    """In a store of its own, closed again: with several workers the parent process must not keep connections."""
    metastore = build_metastore(settings)
    try:
        load_demo(metastore.store, metastore.events)
    finally:
        metastore.store.close()


def _announce(settings: Settings, addresses: list[tuple[Any, ...]], password: str | None) -> None:
    scheme = "https" if settings.tls else "http"
    host = "localhost" if settings.host in ("127.0.0.1", "::1", "0.0.0.0", "::") else settings.host
    url = f"{scheme}://{host}:{addresses[0][1]}{settings.path}"
    out.print(f"hms-gateway is listening on {url}", highlight=False, markup=False, soft_wrap=True)
    if password is not None:
        out.print(f"password of the user {FIRST_USER}, shown only this once: {password}", highlight=False, markup=False)
    else:
        out.print(
            f"users are in {settings.users_path}; `hms-gateway user add {FIRST_USER}` sets a new password",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    insecure = "-k " if settings.tls and settings.tls_certificate is None else ""
    out.print(
        f"try: curl {insecure}-u {FIRST_USER}:{password or 'PASSWORD'} --data '[1,\"get_all_databases\",1,1,{{}}]'"
        f' -H "Content-Type: {CONTENT_TYPE}" {url}',
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
