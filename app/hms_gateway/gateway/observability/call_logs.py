"""The access log and the audit log: one line per call, written by a thread of its own.

The event loop makes the line, 1 µs, and never waits for a disk.
Making the lines in that thread too would be no cheaper and stop the loop for milliseconds, as only one of them can run.
Lines look like structlog's in `runtime.logging` and go to the same stream, but skip its processors, which would cost a
cached call more than its answer. Credentials never come here: a record has no headers, and of arguments only names.
The audit log goes to a file, syslog or standard output.
"""

import contextlib
import datetime
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import IO, Protocol

import msgspec

from hms_gateway.runtime.addresses import host_of
from hms_gateway.runtime.call_record import CallRecord, object_names
from hms_gateway.runtime.logging import LineWriter, LogFormat, printable

NAME_CHARACTERS_MAX = 256

_encode = msgspec.json.Encoder().encode


class AccessLog(LineWriter):
    """Writes records to a stream in the background. `close` writes what is left."""

    def __init__(self, log_format: LogFormat = "json", stream: IO[str] | None = None) -> None:
        self._render: Callable[[CallRecord], str] = _json_line if log_format == "json" else _text_line
        super().__init__("access log", stream)

    def write(self, record: CallRecord) -> None:
        self.write_line(self._render(record))


class _Second(msgspec.Struct):
    """The text of the second that was formatted last; most lines fall into the same one."""

    number: int = -1
    text: str = ""


_second = _Second()


def _timestamp(moment: float) -> str:
    number = int(moment)
    if number != _second.number:
        _second.text = datetime.datetime.fromtimestamp(number, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _second.number = number
    return f"{_second.text}.{int((moment - number) * 1e6):06d}Z"


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    """A JSON string, truncated to 256 characters; cached, since names repeat."""
    return _encode(text[:NAME_CHARACTERS_MAX]).decode()


def _shown(text: str) -> str:
    """One word, in quotes where a caller's text would be several, or be taken for what is missing."""
    text = text[:NAME_CHARACTERS_MAX]
    if text == "-" or " " in text or '"' in text:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{printable(quoted)}"'
    return printable(text) or "-"


def _json_line(record: CallRecord) -> str:
    """A request id consists of letters, digits and a few signs that need no escaping."""
    return (
        f'{{"timestamp":"{_timestamp(record.time)}","level":"info","event":"call","request_id":"{record.request_id}",'
        f'"method":{_quoted(record.method)},"user":{_quoted(record.user)},"ms":{record.seconds * 1000:.3f},'
        f'"bytes_in":{record.bytes_in},"bytes_out":{record.bytes_out},"outcome":{_quoted(record.outcome)},'
        f'"status":{record.status},"address":{_quoted(record.address)},'
        f'"cached":{"true" if record.cached else "false"}}}'
    )


def _text_line(record: CallRecord) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(record.time))
    cached = " cached" if record.cached else ""
    user, method, outcome = map(_shown, (record.user, record.method, record.outcome))
    return (
        f"{clock} {record.address} {user} {method} {outcome} {record.status} "
        f"{record.seconds * 1000:.1f} ms {record.bytes_in}+{record.bytes_out} bytes{cached} {record.request_id}"
    )


STDOUT = "stdout"
SYSLOG = "syslog"
SYSLOG_SOCKETS = ("/dev/log", "/var/run/syslog")
# Facility authpriv, severity info.
_SYSLOG_PRIORITY = 10 * 8 + 6
# What every syslog daemon takes in one datagram.
_DATAGRAM_BYTES_MAX = 8_000


class AuditLine(msgspec.Struct, omit_defaults=True):
    """One call. `real_user` is who logged in where that is another one, `proxy` what is between client and gateway.

    `tried_user` is whose password was sent in a login that was refused.
    """

    time: str
    event: str
    request_id: str
    user: str
    address: str
    method: str
    outcome: str
    objects: tuple[str, ...] = ()
    status: int = 0
    real_user: str = ""
    proxy: str = ""
    cached: bool = False
    tried_user: str = ""


class Destination(Protocol):
    """Destination of lines."""

    def write(self, text: str) -> object: ...

    def flush(self) -> None: ...

    def open_again(self) -> None:
        """The file may have been moved away. Raises OSError."""

    def close(self) -> None: ...


class AuditLog(LineWriter):
    """Takes lines at once and writes them soon; `close` writes what is left."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        super().__init__("audit log", destination)

    def write(self, record: CallRecord) -> None:
        """A login that failed has no user."""
        line = AuditLine(
            time=_timestamp(record.time),
            event="audit",
            request_id=record.request_id,
            user="" if record.tried_user else record.user[:NAME_CHARACTERS_MAX],
            address=host_of(record.address),
            method=record.method[:NAME_CHARACTERS_MAX],
            outcome=record.outcome,
            objects=tuple(name[:NAME_CHARACTERS_MAX] for name in object_names(record.objects)),
            status=record.status,
            real_user=record.real_user[:NAME_CHARACTERS_MAX],
            proxy=record.peer if record.peer != record.address else "",
            cached=record.cached,
            tried_user=record.tried_user[:NAME_CHARACTERS_MAX],
        )
        self.write_line(_encode(line).decode())

    def open_again(self) -> None:
        """The file was rotated: go on in a new one of its name. Raises OSError, and goes on in the old one then."""
        self._destination.open_again()

    def close(self) -> None:
        super().close()
        self._destination.close()


def open_audit_log(place: str) -> AuditLog:
    """`stdout`, `syslog`, or the path of a file. Raises OSError."""
    if place == STDOUT:
        return AuditLog(_Stdout())
    return AuditLog(_Syslog() if place == SYSLOG else _AppendedFile(Path(place)))


class _Stdout:
    def write(self, text: str) -> object:
        return sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()

    def open_again(self) -> None: ...

    def close(self) -> None: ...


class _AppendedFile:
    """A file that only its owner reads. Several processes may write it, and a rotation may cut it (`copytruncate`)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # SIGHUP may come while the thread that handles it closes the file.
        self._lock = threading.RLock()
        self._file = self._open()
        # Whether what was written last ends within a line.
        self._is_torn = False

    def write(self, text: str) -> object:
        """In one piece, at the end of what is there by then. A line that the disk takes a part of is cut off."""
        with self._lock:
            data = b"\n" * self._is_torn + text.encode()
            written = 0
            try:
                while written < len(data):
                    written += os.write(self._file, data[written:])
            finally:
                if written:
                    half = written - (data.rfind(b"\n", 0, written) + 1)
                    self._is_torn = half > 0 and not self._cut(half)
        return None

    def flush(self) -> None: ...

    def open_again(self) -> None:
        opened = self._open()
        with self._lock:
            self._file, opened = opened, self._file
            self._is_torn = False
        os.close(opened)

    def close(self) -> None:
        with self._lock:
            os.close(self._file)

    def _cut(self, size: int) -> bool:
        """Removes the last bytes that were written; False if another process wrote behind them."""
        try:
            end = os.lseek(self._file, 0, os.SEEK_CUR)
            if os.fstat(self._file).st_size != end:
                return False
            os.ftruncate(self._file, end - size)
        except OSError:
            return False
        return True

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


class _Syslog:
    """The syslog of this machine, a datagram for each line."""

    def __init__(self) -> None:
        self._tag = f"<{_SYSLOG_PRIORITY}>hms-gateway[{os.getpid()}]: ".encode()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._connect()
        except OSError:
            self._socket.close()
            raise

    def write(self, text: str) -> object:
        for line in text.splitlines():
            datagram = (self._tag + line.encode())[:_DATAGRAM_BYTES_MAX]
            try:
                self._socket.send(datagram)
            except OSError:
                # The daemon was started again.
                self._connect()
                self._socket.send(datagram)
        return None

    def flush(self) -> None: ...

    def open_again(self) -> None:
        self._connect()

    def close(self) -> None:
        self._socket.close()

    def _connect(self) -> None:
        for path in SYSLOG_SOCKETS:
            with contextlib.suppress(OSError):
                self._socket.connect(path)
                return
        raise FileNotFoundError(f"no syslog at {' or '.join(SYSLOG_SOCKETS)}")
