"""The files of the console as they are sent: read, bundled and compressed when they are first asked for."""

import gzip
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

from hms_gateway.gateway.console.bundle import bundled

FOLDER: Final = Path(__file__).parent / "static"
SOURCES: Final = Path(__file__).parent / "src"
BUNDLE: Final = "console.js"
PAGE: Final = "index.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Scripts and styles of the gateway's own address only; the page can be in no frame and send no form.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


class StaticFile(NamedTuple):
    """What is sent for one path; `tag` is its ETag."""

    content: bytes
    compressed: bytes
    content_type: str
    tag: str


def static_file(path: str) -> StaticFile | None:
    """The file at `path` below the console's folder, "" is the page; None where there is none."""
    name = path or PAGE
    return _read(name) if name in _names() else None


@cache
def _names() -> frozenset[str]:
    """What may be asked for. A path from outside is only looked up here, it never opens a file."""
    files = (path for path in FOLDER.rglob("*") if path.suffix in _TYPES)
    return frozenset((BUNDLE, *(path.relative_to(FOLDER).as_posix() for path in files)))


@cache
def _read(name: str) -> StaticFile:
    content = bundled(SOURCES).encode() if name == BUNDLE else (FOLDER / name).read_bytes()
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    return StaticFile(content, gzip.compress(content, 9, mtime=0), _TYPES[Path(name).suffix], tag)
