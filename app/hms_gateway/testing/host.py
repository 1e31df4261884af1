"""The process that forks a gateway for each metastore that a test asks for.

Requests and answers are lines of JSON on standard input and output. This process loads the modules and makes the
certificate and an empty database once, so that a child starts with them. The end of standard input ends it and all
children, and removes what they wrote.
"""

import contextlib
import gc
import itertools
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

import hms_gateway.composition.thrift_port
import hms_gateway.storage.dialects.sqlite  # noqa: F401
from hms_gateway.composition.main import build, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.gateway.certificates.tls import ensure_certificate
from hms_gateway.gateway.logins import FIRST_USER
from hms_gateway.gateway.server import Server
from hms_gateway.runtime.clock import SystemClock
from hms_gateway.runtime.door import listening_sockets
from hms_gateway.runtime.logging import configure_logging, format_for_stderr
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.settings_reading import load_settings
from hms_gateway.storage.writing.store import open_store

HOST = "127.0.0.1"
LOOPBACK = ["127.0.0.0/8", "::1"]
CHOSEN = frozenset({"host", "port", "thrift_host", "thrift_port", "data_dir", "workers", "warehouse_dir", "users_file"})
# bcrypt's least: a gateway checks the password with its first call.
HASH_ROUNDS = 4
Answer = dict[str, object]


class NotStarted(Exception):
    """The gateway did not start; the text is for the test's author."""


class GatewayPlace:
    """A folder and two ports, which one gateway after the other uses; the ports stay reserved between them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pid: int | None = None
        self._reserved = [_reserved(), _reserved()]

    @property
    def ports(self) -> list[int]:
        return [reserved.getsockname()[1] for reserved in self._reserved]

    def stop(self) -> None:
        if self.pid is not None:
            # Nobody needs its answers or its files any more.
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = None
        if self.folder.exists():
            # The place is free for the next one, whatever cannot be deleted.
            _remove(self.folder.rename(self.folder.with_name(f"left-{secrets.token_hex(8)}")))


class Host:
    """Login, certificate and empty database of all metastores, and their places by name."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._password = secrets.token_urlsafe(12)
        self._users = root / "users"
        self._users.touch(0o600)
        self._users.write_text(f"{FIRST_USER}:{_hashed(self._password)}\n", encoding="utf-8")
        self._tls = ensure_certificate(root / "tls")
        self._database = _empty_database(root / DATABASE_FILE)
        self._places: dict[str, GatewayPlace] = {}
        # Its children see the end of this process here.
        self._alive, self._alive_end = os.pipe()
        self._warm()

    def answer(self, request: Mapping[str, Any]) -> Answer:
        if request["do"] == "stop":
            self._places[request["place"]].stop()
            return {}
        try:
            return self._start(request["place"] or self._free(), request["settings"])
        except Exception as error:
            return {"error": str(error)}

    def stop(self) -> None:
        for place in self._places.values():
            place.stop()

    def _start(self, name: str, given: Mapping[str, Any]) -> Answer:
        if name not in self._places:
            self._places[name] = GatewayPlace(self._root / name)
        place = self._places[name]
        # Whoever had it was interrupted, and did not hear that it runs.
        place.stop()
        settings = self._settings(place, given)
        place.folder.mkdir(mode=0o700)
        reading, writing = os.pipe()
        place.pid = os.fork()
        if not place.pid:
            os.close(reading)
            self._serve(place, settings, writing)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as told:
            problem = told.read()
        if problem != "listening":
            place.stop()
            raise NotStarted(problem or "the gateway ended; standard error says why")
        certificate = settings.tls_certificate or self._tls.certificate
        return {
            "place": name,
            "url": f"{'https' if settings.tls else 'http'}://{HOST}:{settings.port}{next(iter(settings.paths))}",
            "port": settings.port,
            "thrift_port": settings.thrift_port,
            "warehouse": settings.warehouse_location.removeprefix("file:"),
            "user": FIRST_USER,
            "password": self._password,
            "certificate": str(certificate),
        }

    def _settings(self, place: GatewayPlace, given: Mapping[str, Any]) -> Settings:
        """Raises SettingsError, NotStarted."""
        if chosen := CHOSEN & given.keys():
            raise NotStarted(f"{', '.join(sorted(chosen))}: hms_gateway.testing chooses it; leave it out")
        port, thrift_port = place.ports
        defaults: dict[str, object] = {
            "authorization": "off",
            "log_level": "warning",
            "users_file": str(self._users),
            "tls_certificate": str(self._tls.certificate),
            "tls_key": str(self._tls.key),
        }
        # As at Hive's own metastore nobody logs in, unless logins are asked for. Rights are about names.
        if given.get("thrift_sasl") != "require":
            defaults["thrift_networks"] = LOOPBACK
            if given.get("authorization") != "grants":
                user = [FIRST_USER]
                defaults |= {"network_user": FIRST_USER, "network_users": user, "users_by_other_logins": user}
        ours = {"data_dir": str(place.folder), "port": port, "thrift_port": thrift_port}
        return load_settings(None, **{**defaults, **given, **ours})

    def _serve(self, place: GatewayPlace, settings: Settings, told: int) -> NoReturn:
        """The rest of the child's life."""
        try:
            os.close(self._alive_end)
            threading.Thread(target=_end_with, args=[self._alive], daemon=True).start()
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), 0)
            os.dup2(2, 1)
            configure_logging(settings.log_level, format_for_stderr(settings.log_format))
            if settings.database_url is None:
                self._place_database(place)

            def tell_listening(_addresses: object) -> None:
                os.write(told, b"listening")
                os.close(told)

            # A gateway with workers shares its Thrift port: here with the socket that reserves it.
            gateway = build(msgspec.structs.replace(settings, workers=2))
            server = Server(gateway, on_listening=tell_listening)
            server.run(sockets=listening_sockets(HOST, settings.port, shares_port=True))
        except BaseException as error:
            os.write(told, (str(error) or type(error).__name__).encode())
        finally:
            os._exit(1)

    def _free(self) -> str:
        taken = {name for name, place in self._places.items() if place.pid is not None}
        return next(name for name in map(str, itertools.count()) if name not in taken)

    def _warm(self) -> None:
        """Fill the tables that each gateway would fill when it starts: a third of the child's time."""
        place = GatewayPlace(self._root / "first")
        place.folder.mkdir()
        self._place_database(place)
        build_metastore(self._settings(place, {})).store.close()
        place.stop()
        gc.collect()
        gc.freeze()

    def _place_database(self, place: GatewayPlace) -> None:
        database = place.folder / DATABASE_FILE
        database.touch(0o600)
        database.write_bytes(self._database)


def main() -> None:
    # Of the terminal's signals none reaches this session; the end of its input ends it.
    root = Path(tempfile.mkdtemp(prefix="hms-gateway-testing-"))
    try:
        configure_logging("warning", format_for_stderr(None))
        host = Host(root)
        try:
            for line in sys.stdin:
                request = json.loads(line)
                sys.stdout.write(json.dumps({"number": request["number"], **host.answer(request)}) + "\n")
                sys.stdout.flush()
        finally:
            host.stop()
    except BrokenPipeError:
        os.dup2(2, 1)  # nobody reads the last answer
    finally:
        _remove(root)


def _remove(folder: Path) -> None:
    """Delete all of it, also in folders that a test made read-only."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, names, _ in os.walk(folder):
        for below in (Path(path, name) for name in names):
            with contextlib.suppress(OSError):  # of another account
                if not below.is_symlink():
                    below.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _reserved() -> socket.socket:
    """A port that nobody else gets: gateways bind it too, and listen."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind((HOST, 0))
    return reserved


def _hashed(password: str) -> str:
    import bcrypt

    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(HASH_ROUNDS)).decode()


def _empty_database(path: Path) -> bytes:
    """A migrated SQLite file."""
    open_store(f"sqlite:///{path}", SystemClock(), Settings().limits, 1).close()
    content = path.read_bytes()
    path.unlink()
    return content


def _end_with(alive: int) -> None:
    os.read(alive, 1)
    os._exit(1)
