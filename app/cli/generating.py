"""Writes what is generated and kept in the repository."""

from pathlib import Path

from app.cli.output import fail, out
from app.method_proofs import proofs
from app.methods_doc import answering_classes, methods_path, methods_text, named_proofs, source_root
from app.settings_doc import operations_path, with_tables
from app.structs import IDL, METHODS
from app.structs.stubs import stub_path, stub_text


def write_methods() -> None:
    _check_place(methods_path())
    named = named_proofs(methods_path().read_text(encoding="utf-8"))
    chosen = {}
    for name, tests in proofs(source_root(), METHODS).items():
        # What the document names stays as long as it holds, so that not every new test changes it.
        chosen[name] = named[name] if named.get(name) in tests else next(iter(tests), "none")
    methods_path().write_text(methods_text(answering_classes(), chosen), encoding="utf-8")
    out.print(f"wrote {methods_path()}", highlight=False, soft_wrap=True)


def write_stubs() -> None:
    stub_path().write_text(stub_text(IDL), encoding="utf-8")
    out.print(f"wrote {stub_path()}", highlight=False, soft_wrap=True)


def write_settings() -> None:
    path = operations_path()
    _check_place(path)
    path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
    out.print(f"wrote {path}", highlight=False, soft_wrap=True)


def _check_place(path: Path) -> None:
    if not path.exists():
        fail(f"there is no {path}", "this is for developers: it runs in a checkout of the source")
