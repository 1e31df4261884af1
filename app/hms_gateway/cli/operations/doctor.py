"""`hms-gateway doctor`: what is wrong with an installation, and what to do about it."""

import http.client
import json
import shutil
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import click
from rich.markup import escape

from hms_gateway.cli.operations.start_checks import start_problems
from hms_gateway.cli.terminal.output import EXIT_REFUSED, out
from hms_gateway.composition.main import database_url
from hms_gateway.files import RootRefused, check_roots
from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME, CertificateError, read_fields
from hms_gateway.metastore.ports.store import StoreError
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.data_folder import is_open_to_all
from hms_gateway.runtime.settings import Settings
from hms_gateway.storage import REVISION, open_store, revision_of
from hms_gateway.storage.dialects import dialect_of, parse_url, writing_engine
from hms_gateway.storage.dialects.database_clock import DATABASE_NOW
from hms_gateway.storage.dialects.errors import translated
from hms_gateway.storage.registry.gateways import GatewayRow

CERTIFICATE_DAYS_MIN: Final = 30
FREE_BYTES_MIN: Final = 1_000_000_000
CLOCK_SECONDS_MAX: Final = 5.0
_ANSWER_SECONDS_MAX: Final = 10.0
_DAY_SECONDS: Final = 86_400


class Finding(NamedTuple):
    """`level` is ok, warning or error; the text of the last two ends with what to do."""

    level: str
    subject: str
    text: str


_Check = Callable[[Settings], Iterator[Finding]]


def run_doctor(settings: Settings, replicas: Sequence[str], *, as_json: bool) -> None:
    """Print what each check finds. Ends with EXIT_REFUSED when there is an error."""
    has_errors = False
    for found in findings(settings, replicas):
        has_errors = has_errors or found.level == "error"
        _print(found, as_json=as_json)
    if has_errors:
        raise click.exceptions.Exit(EXIT_REFUSED)


def findings(settings: Settings, replicas: Sequence[str]) -> Iterator[Finding]:
    """In the order in which a start would meet them."""
    for check in _CHECKS:
        yield from check(settings)
    for url in replicas:
        yield from _gateway(url)


def _print(found: Finding, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found._asdict()))
        return
    colour = {"ok": "green", "warning": "yellow", "error": "red"}[found.level]
    out.print(f"[{colour}]{found.level:<8}[/{colour}]{escape(f'{found.subject}: {found.text}')}", soft_wrap=True)


def _start(settings: Settings) -> Iterator[Finding]:
    """Settings could be read, or the command had ended before."""
    problems = start_problems(settings)
    for problem in problems:
        yield Finding("error", "start", problem)
    if not problems:
        yield Finding("ok", "start", "nothing keeps a gateway with these settings from starting")


def _folders(settings: Settings) -> Iterator[Finding]:
    folder = settings.data_dir
    if not folder.exists():
        yield Finding("warning", "data_dir", f"{folder} does not exist; the first start makes it")
        return
    if is_open_to_all(folder):
        yield Finding("warning", "data_dir", f"every account of this machine can write {folder}; chmod o-w it")
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES_MIN:
        yield Finding("warning", "data_dir", f"{free / 1e6:,.0f} MB are free on the disk of {folder}; make room")
    else:
        yield Finding("ok", "data_dir", f"{folder}, {free / 1e9:,.0f} GB free")


def _certificate(settings: Settings) -> Iterator[Finding]:
    if not settings.tls:
        yield Finding("warning", "certificate", "tls is off: passwords go over the network as they are; switch tls on")
        return
    file = settings.tls_certificate or settings.data_dir / CERTIFICATE_NAME
    if settings.tls_certificate is None and not file.exists():
        yield Finding("ok", "certificate", "the first start makes one")
        return
    try:
        fields = read_fields(file)
    except (CertificateError, OSError) as error:
        yield Finding("error", "certificate", f"{error}; name another one with tls_certificate")
        return
    days = (fields.expires_seconds - time.time()) / _DAY_SECONDS
    if days < 0:
        yield Finding("error", "certificate", f"{file} has expired {-days:.0f} days ago; put a new one in its place")
    elif days < CERTIFICATE_DAYS_MIN and settings.tls_certificate is not None:
        yield Finding("warning", "certificate", f"{file} expires in {days:.0f} days; put a new one in its place")
    else:
        kind = "made by the gateway itself" if fields.is_self_signed else "of an authority"
        yield Finding("ok", "certificate", f"{file}, {kind}, expires in {days:.0f} days")


def _database(settings: Settings) -> Iterator[Finding]:
    url = database_url(settings)
    if settings.database_url is None and not (settings.data_dir / "metastore.db").exists():
        yield Finding("ok", "database", "the first start makes it")
        return
    try:
        revision = revision_of(url)
    except StoreError as error:
        yield Finding("error", "database", f"{error}; see database_url")
        return
    if revision != REVISION:
        hint = "run hms-gateway migrate" if settings.database_url is not None else "the next start changes it"
        level = "error" if settings.database_url is not None else "warning"
        found = "no tables" if revision is None else f"revision {revision}"
        yield Finding(level, "database", f"it has {found}, this version needs revision {REVISION}; {hint}")
        return
    yield from _opened(settings, url)


def _opened(settings: Settings, url: str) -> Iterator[Finding]:
    try:
        store = open_store(url, SystemClock(), settings.limits, 1)
        try:
            began = time.monotonic()
            event = store.version()
            milliseconds = (time.monotonic() - began) * 1_000
            gateways = store.known_gateways() if store.knows_gateways else []
        finally:
            store.close()
    except StoreError as error:
        yield Finding("error", "database", f"{error}; see database_url")
        return
    yield Finding("ok", "database", f"revision {REVISION}, event {event}, answers in {milliseconds:.1f} ms")
    if gateways:
        yield _sharing(gateways)
    now_ms = _database_ms(url)
    if now_ms is not None:
        yield _clock("the database", now_ms / 1_000 - time.time())


def _sharing(gateways: Sequence[GatewayRow]) -> Finding:
    """The processes that were seen at the database in the last minute."""
    names = ", ".join(f"{row.name} (process {row.pid}, version {row.version})" for row in gateways)
    if len({row.version for row in gateways}) > 1:
        return Finding("warning", "gateways", f"versions differ: {names}; bring all of them to the newest one")
    return Finding("ok", "gateways", names)


def _database_ms(url: str) -> int | None:
    """The time of a database that is a server; locks, leases and transactions go by it."""
    engine = writing_engine(parse_url(url))
    try:
        if not dialect_of(engine).has_clock:
            return None
        with translated(engine), engine.connect() as connection:
            return int(connection.execute(DATABASE_NOW).scalar_one())
    finally:
        engine.dispose()


def _clock(whose: str, ahead_seconds: float) -> Finding:
    if abs(ahead_seconds) > CLOCK_SECONDS_MAX:
        direction = "ahead of" if ahead_seconds > 0 else "behind"
        text = f"the clock of {whose} is {abs(ahead_seconds):,.0f} s {direction} this machine's; set both by NTP"
        return Finding("warning", "clock", text)
    return Finding("ok", "clock", f"the clock of {whose} agrees with this machine's")


def _roots(settings: Settings) -> Iterator[Finding]:
    try:
        check_roots(settings.roots, [])
    except RootRefused as error:
        yield Finding("error", "file systems", f"{error}; see warehouse_dir and file_roots")
        return
    for root in settings.roots:
        place = urlsplit(root)
        if place.scheme in ("", "file"):
            folder = Path(place.path)
            if not folder.exists():
                yield Finding("warning", "file systems", f"{folder} does not exist; the first table makes it")
            else:
                free = shutil.disk_usage(folder).free
                level, todo = ("warning", "; make room") if free < FREE_BYTES_MIN else ("ok", "")
                yield Finding(level, "file systems", f"{folder}, {free / 1e9:,.1f} GB free{todo}")
        else:
            yield Finding("ok", "file systems", f"{root} is not looked at: only directories of this machine are")


def _own_gateway(settings: Settings) -> Iterator[Finding]:
    if settings.port:
        host = settings.host if settings.host not in ("0.0.0.0", "::", "") else "localhost"
        yield from _gateway(f"{'https' if settings.tls else 'http'}://{host}:{settings.port}")


def _gateway(url: str) -> Iterator[Finding]:
    """Whether it answers, is ready, and what its clock says; it sends no secret, so any certificate will do."""
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    host = place.hostname or "localhost"
    context = ssl._create_unverified_context()
    connection = (
        http.client.HTTPSConnection(host, port, timeout=_ANSWER_SECONDS_MAX, context=context)
        if place.scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS_MAX)
    )
    name = f"{host}:{port}"
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        text = answer.read(1_000).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        yield Finding("warning", "gateway", f"{name} does not answer ({error}); is it started?")
        return
    finally:
        connection.close()
    if answer.status != 200:
        yield Finding("error", "gateway", f"{name} is not ready ({answer.status} {text}); its log says why")
        return
    yield Finding("ok", "gateway", f"{name} is ready")
    date = answer.getheader("date")
    if date is not None:
        yield _clock(name, parsedate_to_datetime(date).timestamp() - time.time())


_CHECKS: Final[tuple[_Check, ...]] = (_start, _folders, _certificate, _database, _roots, _own_gateway)
