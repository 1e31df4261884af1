"""Writes what is generated and kept here: `python -m tools console|doors|kubernetes|methods|rooms|settings|stubs|all`.

`python -m tools size` prints the figures of the package, and with `--write` keeps them.
"""

import subprocess
import sys
from pathlib import Path

from hms_gateway.rpc.structs import IDL, METHODS
from tools.console_files import copied, shapes_path, shapes_text
from tools.kubernetes import manifests, schema_path, schema_text
from tools.method_proofs import proofs
from tools.methods_doc import answering_classes, methods_path, methods_text, named_proofs, source_root
from tools.open_doors import security_path, security_text
from tools.rooms import map_path, with_picture
from tools.settings_doc import settings_path, settings_text
from tools.size import document_path, measured, sizes_path, sizes_text, tables, traced, with_sizes
from tools.stubs import stub_path, stub_text


def write_console() -> None:
    """The shapes of the console's calls, and its copies of npm packages where these are installed."""
    _write(shapes_path(), shapes_text())
    try:
        for path, content in list(copied()):
            path.write_bytes(content)
    except OSError as error:
        print(f"no packages, copies stay as they are (npm ci in tools/console installs them): {error}")


def write_doors() -> None:
    """The tables of docs/security.md on clients without a login."""
    _write(security_path(), security_text(security_path().read_text(encoding="utf-8")))


def write_kubernetes() -> None:
    """The schema of the Helm chart's values, and where helm is installed what deploy/kubernetes has from the chart."""
    _write(schema_path(), schema_text(schema_path().read_text(encoding="utf-8")))
    try:
        for path, text in list(manifests()):
            _write(path, text)
    except OSError as error:
        print(f"no helm, manifests stay as they are (scripts/peers installs it): {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr)


def write_methods() -> None:
    """docs/methods.md. A proof that it names remains while it holds, so that not every new test changes it."""
    named = named_proofs(methods_path().read_text(encoding="utf-8"))
    chosen = {}
    for name, tests in proofs(source_root(), METHODS).items():
        chosen[name] = named[name] if named.get(name) in tests else next(iter(tests), "none")
    _write(methods_path(), methods_text(answering_classes(), chosen))


def write_rooms() -> None:
    """The picture of the rooms in docs/README.md."""
    _write(map_path(), with_picture(map_path().read_text(encoding="utf-8")))


def write_settings() -> None:
    """docs/settings.md."""
    _write(settings_path(), settings_text())


def write_stubs() -> None:
    """The type stubs of the classes that are made from the IDL."""
    _write(stub_path(), stub_text(IDL))


def size(is_kept: bool) -> None:
    """The figures of the package: to be seen, or tests/house/sizes.toml and docs/architecture.md."""
    sizes = {**measured(), **traced()}
    print(tables(sizes))
    if is_kept:
        _write(sizes_path(), sizes_text(sizes))
        _write(document_path(), with_sizes(document_path().read_text(encoding="utf-8"), sizes))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")


_WRITERS = {
    "console": write_console,
    "doors": write_doors,
    "kubernetes": write_kubernetes,
    "methods": write_methods,
    "rooms": write_rooms,
    "settings": write_settings,
    "stubs": write_stubs,
}


def main(wanted: str) -> None:
    if wanted != "all" and wanted not in _WRITERS:
        sys.exit(f"unknown document {wanted!r}; name one of {', '.join(_WRITERS)}, or all")
    for write in _WRITERS.values() if wanted == "all" else (_WRITERS[wanted],):
        write()


if __name__ == "__main__":
    if sys.argv[1:] in (["size"], ["size", "--write"]):
        size("--write" in sys.argv)
    else:
        main(sys.argv[1] if len(sys.argv) == 2 else "")
