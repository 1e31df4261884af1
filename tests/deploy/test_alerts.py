"""Each alert is driven from its fault to its line: the metrics before do not cross it, those after do."""

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest

from hms_gateway import gateway
from hms_gateway.cache import ReplyCache
from hms_gateway.composition.health import Health, Presence, ReadFile
from hms_gateway.composition.main import _watched
from hms_gateway.gateway.admission.identity import Refused
from hms_gateway.gateway.auth.users import read_users
from hms_gateway.gateway.certificates.served_certificate import ServedCertificate
from hms_gateway.gateway.certificates.tls import CertificateFiles
from hms_gateway.gateway.observability.call_logs import AuditLog
from hms_gateway.gateway.observability.figures import Figures, Replica, Watched, WorkerFigures
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.observability.metrics_text import metrics_text
from hms_gateway.metastore.ports.store import Event, OutcomeUnknown, Snapshot, StoreUnavailable
from hms_gateway.rpc.call import Unavailable
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.limits import Limits
from hms_gateway.storage.dialects.integrity import IntegrityCheck, IntegrityWatch
from hms_gateway.storage.registry.gateways import GatewayRow
from hms_gateway.storage.writing.store import SqlStore, open_store
from tests.gateway.serving import CALL, Anybody, CannedProcessor, record, running
from tests.support.alert_rules import RULES, Rules, Samples, samples
from tests.support.certificates import days_from, write_certificate
from tests.support.manual_clock import ManualClock

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
# Yields once before the fault, and once after it.
Fault: TypeAlias = Callable[[Path, pytest.MonkeyPatch], Iterator[Samples]]


def scraped(metrics: Metrics, health: Health | None = None, figures: Figures | None = None) -> Samples:
    return samples(metrics_text(metrics, figures, None if health is None else health.figures()).decode())


def server_down(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    def scrape() -> Samples:
        """Of Prometheus itself."""
        try:
            return {("up", (("job", "hms-gateway"),)): httpx.get(page).status_code == 200}
        except httpx.TransportError:
            return {("up", (("job", "hms-gateway"),)): 0}

    with running() as server:
        page = f"{server.root}/metrics"
        yield scrape()
    yield scrape()


def served(calls: int, **options: object) -> Iterator[Samples]:
    """Scrapes of a server before and after so many calls."""
    with running(**options) as server, httpx.Client() as client:  # type: ignore[arg-type]
        yield samples(client.get(f"{server.root}/metrics").text)
        for _ in range(calls):
            client.post(server.url, content=CALL)
        yield samples(client.get(f"{server.root}/metrics").text)


def bug(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    return served(1, processor=CannedProcessor(get_all_databases=ZeroDivisionError()))


def refusing(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    return served(31, processor=CannedProcessor(get_all_databases=Unavailable("away")))


def wrong_passwords(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    class Nobody(Anybody):
        def remembered(self, head: object) -> None:
            return None

        async def authenticate(self, head: object) -> None:
            raise Refused(401, "Authentication is required", reason="wrong_password")

    return served(301, authenticator=Nobody())


def slow_calls(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    metrics = Metrics({"get_table"})
    yield scraped(metrics)
    metrics.served.add(record(seconds=6.0))
    yield scraped(metrics)


def queues(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    metrics, waiting = Metrics(()), [0]
    metrics.watch(lambda: Watched(gauges={"writes_queued": waiting[0]}))
    yield scraped(metrics)
    waiting[0] = 1_001
    yield scraped(metrics)


def certificate(folder: Path, days: int) -> tuple[CertificateFiles, Metrics]:
    clock, metrics = SystemClock(), Metrics(())
    files = CertificateFiles(folder / f"{days}.pem", folder / f"{days}.key")
    write_certificate(files.certificate, files.key, expires=days_from(clock.seconds(), days))
    return files, metrics


def old_certificate(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    for days in (90, 10):
        files, metrics = certificate(folder, days)
        ServedCertificate(files, SystemClock(), metrics)
        yield scraped(metrics)


def broken_certificate(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    files, metrics = certificate(folder, 90)
    shown = ServedCertificate(files, SystemClock(), metrics)
    yield scraped(metrics)
    files.certificate.write_text("no certificate")
    shown.look()
    shown.look()
    yield scraped(metrics)


def damaged_database(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    file, metrics = folder / "database", Metrics(())
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
        connection.commit()

    def checked(is_damaged: bool) -> None:
        metrics.database_damaged = int(is_damaged)

    patch.setattr("hms_gateway.storage.dialects.integrity.CHECKED_AT_START_BYTES", 0)
    for content in (file.read_bytes(), file.read_bytes()[:50_000]):
        file.write_bytes(content)
        watch = IntegrityWatch(IntegrityCheck(file), checked)
        metrics.database_damaged = None
        watch.start()
        while metrics.database_damaged is None:
            watch._thread.join(0.01)
        watch.stop()
        yield scraped(metrics)


def full_audit_disk(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    class Full:
        def write(self, text: str) -> None:
            raise OSError(28, "No space left on device")

        def flush(self) -> None: ...

        def open_again(self) -> None: ...

        def close(self) -> None: ...

    metrics, log = Metrics(()), AuditLog(Full())
    metrics.watch(lambda: Watched({"audit_lines_lost": log.lost}))
    yield scraped(metrics)
    log.write(record())
    log.close()
    yield scraped(metrics)


@contextlib.contextmanager
def opened(folder: Path, connections_max: int = 2) -> Iterator[tuple[SqlStore, Metrics]]:
    """A store, and the metrics that show its figures."""
    store, metrics = open_store(f"sqlite:///{folder}/db", ManualClock(), Limits(), connections_max), Metrics(())
    cache = ReplyCache(store, Limits())
    metrics.watch(lambda: _watched(store, cache))
    with contextlib.closing(store):
        yield store, metrics


def locked_database(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    patch.setattr("hms_gateway.storage.dialects.sqlite.BUSY_SECONDS_MAX", 0)
    with opened(folder) as (store, metrics), contextlib.closing(sqlite3.connect(folder / "db")) as other:
        yield scraped(metrics)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            store.write(lambda transaction: transaction.append_event(Event("X", "d", None, "{}")))
        yield scraped(metrics)


def all_connections(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    with opened(folder, 1) as (store, metrics):
        yield scraped(metrics)

        def busy(snapshot: Snapshot) -> Samples:
            snapshot.current_event_id()
            return scraped(metrics)

        yield store.read(busy)


def lost_commit(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    with opened(folder) as (store, metrics):
        yield scraped(metrics)

        def lost(transaction: object) -> None:
            raise OutcomeUnknown("the connection to the database was lost while committing")

        with pytest.raises(OutcomeUnknown):
            store.write(lost)
        yield scraped(metrics)


def full_disk(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    free = [50_000_000_000]
    health = Health({"data_dir": folder}, {}, lambda folder: free[0])
    yield scraped(Metrics(()), health)
    free[0] = 999_999_999
    yield scraped(Metrics(()), health)


def missing_users(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    users = folder / "users"
    users.touch(0o600)
    health = Health({}, {"users_file": ReadFile(users, read_users)})
    yield scraped(Metrics(()), health)
    users.unlink()
    yield scraped(Metrics(()), health)


def killed_worker(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as worker:
        WorkerFigures(folder).leave(Figures(worker.pid, 0.0, taken=1.0))
        own = WorkerFigures(folder)
        yield scraped(Metrics(()), figures=own.all(Figures(os.getpid(), 0.0, taken=1.0)))
        worker.kill()
        worker.wait()
        yield scraped(Metrics(()), figures=own.all(Figures(os.getpid(), 0.0, taken=2.0)))


def wrong_clock(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    class Rows:
        now_seconds = 1_000_000

        def note_gateway(self, row: GatewayRow) -> list[GatewayRow]:
            return [GatewayRow(row.gateway_id, row.name, row.pid, row.version, 0, now_ms=self.now_seconds * 1_000)]

        def forget_gateway(self, gateway_id: str) -> None: ...

    rows, metrics = Rows(), Metrics(())
    presence = Presence(rows, lambda: 0, 1, lambda: 1_000_000.0)
    metrics.watch(presence.watched)
    for rows.now_seconds in (1_000_030, 1_000_000 - 600):
        presence.note()
        yield scraped(metrics)


def behind(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Samples]:
    metrics = Metrics(())
    for seconds in (0.0, 61.0):
        figures = Figures(1, 0.0, replicas=[Replica("a:1", 1, 5, "one", lag_events=0, lag_seconds=seconds)])
        yield scraped(metrics, figures=figures)


FAULTS: dict[str, Fault] = {
    "HmsGatewayDown": server_down,
    "HmsGatewayDatabaseDown": locked_database,
    "HmsGatewayDiskFull": full_disk,
    "HmsGatewayCommitsUnknown": lost_commit,
    "HmsGatewayWorkerDied": killed_worker,
    "HmsGatewayFileUnreadable": missing_users,
    "HmsGatewayClockOff": wrong_clock,
    "HmsGatewayConnectionsUsed": all_connections,
    "HmsGatewayLags": behind,
    "HmsGatewayInternalErrors": bug,
    "HmsGatewayUnavailable": refusing,
    "HmsGatewaySlow": slow_calls,
    "HmsGatewayQueues": queues,
    "HmsGatewayCertificateExpires": old_certificate,
    "HmsGatewayCertificateUnusable": broken_certificate,
    "HmsGatewayDatabaseDamaged": damaged_database,
    "HmsGatewayAuditLinesLost": full_audit_disk,
    "HmsGatewayLoginsRefused": wrong_passwords,
}


@pytest.mark.slow
@pytest.mark.parametrize("alert", FAULTS)
def test_an_alert_fires_after_its_fault_and_not_before(
    alert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = FAULTS[alert](tmp_path, monkeypatch)
    assert not Rules().fires(alert, before, before)
    assert Rules().fires(alert, after, before)


def test_only_logins_count_as_refused_logins() -> None:
    [reasons] = re.findall(r'reason=~"(.*?)"', RULES.read_text())
    auth = "".join(path.read_text() for path in (Path(gateway.__file__).parent / "auth").glob("*.py"))
    others = {"no_credentials", "overload", "query", "tokens_away", "issuer_away", "directory_away"}
    named = {one or other for one, other in re.findall(r'reason="(\w+)"|self\._refused\("[^"]*", "(\w+)"', auth)}
    assert set(reasons.split("|")) == named - others
    metrics = Metrics(())
    before = scraped(metrics)
    for reason in ("no_credentials", "overload", "cross_site"):
        metrics.refusals[reason] += 301
    assert not Rules().fires("HmsGatewayLoginsRefused", scraped(metrics), before)


def test_each_alert_has_its_fault_and_its_section_in_the_runbook() -> None:
    names = Rules().names
    assert names == list(FAULTS)
    sections = dict(re.findall(r"^## (HmsGateway\w+)\n(.*?)(?=^## |\Z)", RUNBOOK.read_text(), re.MULTILINE | re.DOTALL))
    assert list(sections) == names
    for name, text in sections.items():
        assert [word for word in ("Meaning:", "Look at:", "Do:") if word not in text] == [], name
