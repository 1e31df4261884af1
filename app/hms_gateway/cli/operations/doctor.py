"""Work of `hms-gateway doctor`: problems of an installation, and their remedies."""

import http.client
import shutil
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import click
from rich.markup import escape

from hms_gateway.cli.operations.health import get_page, own_url
from hms_gateway.cli.operations.start_checks import connections_problem, start_problems
from hms_gateway.cli.terminal.formats import write_rows
from hms_gateway.cli.terminal.output import EXIT_REFUSED, out, store_text
from hms_gateway.composition.authorization import WITHOUT_RIGHTS, authorization_of, standing_of
from hms_gateway.composition.health import folders_of
from hms_gateway.composition.places import DATABASE_FILE, database_url, directories
from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME, CertificateError, read_fields
from hms_gateway.metastore.ports.store import FileSystemError, StoreError
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.file_versions import is_open_to_all
from hms_gateway.runtime.settings import Settings, SettingsError
from hms_gateway.storage.dialects import dialect_of, parse_url, writing_engine
from hms_gateway.storage.dialects.kinds import translated
from hms_gateway.storage.dialects.statements import DATABASE_NOW
from hms_gateway.storage.files.places import RootRefused, check_roots
from hms_gateway.storage.migrations.revisions import revision_of
from hms_gateway.storage.registry.gateways import GatewayRow
from hms_gateway.storage.schema.catalog import REVISION
from hms_gateway.storage.writing.store import open_store

CERTIFICATE_DAYS_MIN: Final = 30
FREE_BYTES_MIN: Final = 1_000_000_000
# SQLite and tables' directories need more than none.
FULL_BYTES: Final = 16_000_000
CLOCK_SECONDS_MAX: Final = 5.0
_REFUSED: Final = "changes are refused with 503 until there is room"
_NOT_MADE: Final = "directories and files cannot be made until there is room"
_ANSWER_SECONDS_MAX: Final = 10.0
_DAY_SECONDS: Final = 86_400


class Finding(NamedTuple):
    """`level` is ok, warning or error; the text of the last two ends with what to do."""

    level: str
    subject: str
    text: str


_Check = Callable[[Settings], Iterator[Finding]]


def run_doctor(settings: Settings, replicas: Sequence[str], *, form: str | None) -> None:
    """Print what each check finds, a line for people where `form` is None. Ends with EXIT_REFUSED for an error."""
    levels = set()

    def noted() -> Iterator[Finding]:
        for found in findings(settings, replicas):
            levels.add(found.level)
            yield found

    if form is None:
        for found in noted():
            _print(found)
    else:
        write_rows(sys.stdout, form, Finding._fields, noted())
    if "error" in levels:
        raise click.exceptions.Exit(EXIT_REFUSED)


def findings(settings: Settings, replicas: Sequence[str]) -> Iterator[Finding]:
    """In the order in which a start would meet them."""
    for check in _CHECKS:
        yield from check(settings)
    for url in replicas:
        yield from _gateway(url)


def _print(found: Finding) -> None:
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
        yield Finding("warning", "data_dir", f"{folder.absolute()} does not exist; the first start makes it")
        return
    if is_open_to_all(folder):
        yield Finding("warning", "data_dir", f"every account of this machine can write {folder}; chmod o-w it")
    if not settings.users_path.exists():
        where = "name the folder of one that runs with --data-dir or --config"
        yield Finding("warning", "data_dir", f"no gateway has used {folder.absolute()} yet; {where}")
    yield _room("data_dir", folder, _REFUSED if settings.database_url is None else _NOT_MADE)
    with suppress(StoreError):  # of a URL that `_database` tells of
        database = folders_of(settings).get("database_url")
        if database is not None and database.exists():
            yield _room("database_url", database, _REFUSED)


def _room(subject: str, folder: Path, effect: str) -> Finding:
    """`effect` is that of a full disk."""
    free = shutil.disk_usage(folder).free
    if free < FULL_BYTES:
        return Finding("error", subject, f"{free / 1e6:,.0f} MB are free on the disk of {folder}; {effect}")
    if free < FREE_BYTES_MIN:
        return Finding("warning", subject, f"{free / 1e6:,.0f} MB are free on the disk of {folder}; make room")
    return Finding("ok", subject, f"{folder}, {free / 1e9:,.1f} GB free")


def _certificate(settings: Settings) -> Iterator[Finding]:
    if not settings.tls:
        yield Finding("warning", "certificate", "tls is off: passwords go over the network as they are; switch tls on")
        return
    file = _certificate_file(settings)
    if file is None:
        yield Finding("ok", "certificate", "the first start makes one")
        return
    try:
        fields = read_fields(file)
    except (CertificateError, OSError) as error:
        yield Finding("error", "certificate", f"{error}; name another one with tls_certificate")
        return
    is_renewed = settings.tls_certificate is None and fields.is_made_here
    days = (fields.expires_seconds - time.time()) / _DAY_SECONDS
    if days < 0:
        yield Finding("error", "certificate", f"{file} has expired {-days:.0f} days ago; put a new one in its place")
    elif days < CERTIFICATE_DAYS_MIN and not is_renewed:
        yield Finding("warning", "certificate", f"{file} expires in {days:.0f} days; put a new one in its place")
    else:
        kind = ", made and renewed by the gateway itself" if is_renewed else ""
        yield Finding("ok", "certificate", f"{file}{kind}, expires in {days:.0f} days")


def _certificate_file(settings: Settings) -> Path | None:
    """The file of the certificate that is shown; None without TLS, and where none was made yet."""
    made = settings.data_dir / CERTIFICATE_NAME
    return (settings.tls_certificate or (made if made.exists() else None)) if settings.tls else None


def _database(settings: Settings) -> Iterator[Finding]:
    url = database_url(settings)
    if settings.database_url is None and not (settings.data_dir / DATABASE_FILE).exists():
        yield Finding("ok", "database", f"the first start makes {settings.data_dir.absolute() / DATABASE_FILE}")
        return
    try:
        revision = revision_of(url)
    except StoreError as error:
        yield Finding("error", "database", f"{store_text(error)}; see database_url")
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
            too_few = connections_problem(settings, store)
        finally:
            store.close()
    except StoreError as error:
        yield Finding("error", "database", f"{store_text(error)}; see database_url")
        return
    yield Finding("ok", "database", f"revision {REVISION}, event {event}, answers in {milliseconds:.1f} ms")
    if too_few is not None:
        yield Finding("warning", "database", too_few)
    if gateways:
        yield _sharing(gateways)
    now_ms = _database_ms(url)
    if now_ms is not None:
        yield _clock("the database", now_ms / 1_000 - time.time())


def _authorization(settings: Settings) -> Iterator[Finding]:
    authorization = authorization_of(settings)
    if authorization == "grants":
        yield from (Finding("ok", "authorization", line) for line in ("grants", *standing_of(settings)))
    elif settings.authorization == "off":
        yield Finding("ok", "authorization", "off, as the settings say")
    elif authorization == "off":
        yield Finding("warning", "authorization", WITHOUT_RIGHTS)


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
                yield _room("file systems", folder, _NOT_MADE)
        elif settings.file_systems.get(place.scheme) == "manage":
            yield _remote_root(settings, root)
        else:
            yield Finding("warning", "file systems", f"{root} is not managed; set its scheme to manage in file_systems")


def _remote_root(settings: Settings, root: str) -> Finding:
    """The answer of an object store or HDFS."""
    try:
        begin = time.perf_counter()
        found = directories(settings).is_directory(root)
    except (FileSystemError, SettingsError) as error:
        return Finding("error", "file systems", f"{root}: {error}")
    if not found:
        return Finding("warning", "file systems", f"{root} does not exist; the first table makes it")
    milliseconds = 1_000 * (time.perf_counter() - begin)
    return Finding("ok", "file systems", f"{root} answers in {milliseconds:.0f} ms")


def _own_gateway(settings: Settings) -> Iterator[Finding]:
    if settings.port:
        url = own_url(settings)
        for found in _gateway(url):
            yield found
            made = [settings.users_path, *([] if settings.database_url else [settings.data_dir / DATABASE_FILE])]
            missing = [file.absolute() for file in made if not file.exists()]
            if (found.level, found.subject) != ("ok", "gateway"):
                continue
            todo = "give the --config, --data-dir and variables that it was started with"
            if missing:
                yield Finding("error", "gateway", f"it has other settings, since {missing[0]} does not exist; {todo}")
            elif (file := _certificate_file(settings)) is not None and not _is_shown(file, url):
                yield Finding("warning", "gateway", f"it shows another certificate than {file}; {todo}")


def _is_shown(file: Path, url: str) -> bool:
    """True if the certificate of the file is the one that new connections get, also where that cannot be said."""
    place = urlsplit(url)
    try:
        shown = ssl.get_server_certificate((place.hostname or "", place.port or 0), timeout=_ANSWER_SECONDS_MAX)
        return "".join(shown.split()) in "".join(file.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError):
        return True


def _gateway(url: str) -> Iterator[Finding]:
    """Its readiness, and its clock."""
    name = urlsplit(url).netloc.rpartition("@")[2]
    try:
        page = get_page(url, "/readyz", _ANSWER_SECONDS_MAX)
    except (OSError, http.client.HTTPException) as error:
        yield Finding(
            "warning", "gateway", f"{name} does not answer ({error}); is it started, and on this port (--port)?"
        )
        return
    if page.status != 200:
        yield Finding("error", "gateway", f"{name} is not ready ({page.status} {page.text}); its log says why")
        return
    yield Finding("ok", "gateway", f"{name} is ready")
    if page.date is not None:
        yield _clock(name, parsedate_to_datetime(page.date).timestamp() - time.time())


_CHECKS: Final[tuple[_Check, ...]] = (
    *(_start, _folders, _certificate, _database, _authorization, _roots, _own_gateway),
)
