"""What code, tests and documents refer to exists: sections of docs/reference, files, and the targets of links."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("app", "tests", "tools", "benchmarks", "schema", "docs", "deploy", "scripts")
SUFFIXES = {".py", ".pyi", ".md", ".thrift", ".toml", ".yml", ".xml", ".conf", ".service", ".js", ".mjs", ".html", ""}
FOREIGN = {"node_modules", "__pycache__", ".hypothesis"}

SECTION = r"§?(?:[A-Z]\b|\d+)(?:\.\d+)*"
# "semantics §2.5", "clients appendix A.2"; also a bare "§2.6" after one of them. MS-HMSHTTP is published elsewhere.
CITATION = re.compile(
    rf"\b(?P<document>[Ss]emantics|[Cc]lients|protocol)\s+(?:§|appendix\s+)(?P<first>{SECTION})|§(?P<next>{SECTION})"
)
# "§2.7 item 7", "§13 rows 16, 17, 36"
ENTRY = re.compile(
    r"^[\s,]*(?:item|row|rule|hole|trap|step)s?\s+(?P<numbers>\d+[a-z]?(?:(?:,\s*|\s+and\s+)\d+[a-z]?)*)"
)
DECISION = re.compile(r"\b(?:design|decision)\s+D(\d+)\b|\(D(\d+)\)")
# Not files of the tree: a test whose subject is such names, and a folder of the wheel.
NOT_HERE = {
    "test_method_proofs.py": {"tests/handlers/test_tables.py"},
    "pyproject.toml": {"app/hms_gateway/schema", "app/hms_gateway/cli.py"},
    # Made by `make test`; `make test-fast` does without.
    "Makefile": {"tests/interop/node/node_modules"},
}
OF_THE_DATA_FOLDER = {"warehouse/"}
ALONE_MAX = 400  # characters between a bare "§2.6" and the citation that names its document

FILE = re.compile(
    r"(?<![\w./$-])((?:app|tests|tools|benchmarks|schema|docs|deploy|scripts)/[\w][\w./-]*\w)(?:::(\w+))?"
)
# As documents name parts of the package: `storage/writing/store.py`, `handlers/`.
PART = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`")
DOCUMENT = re.compile(r"(?<![\w./-])(\w[\w-]*\.md)\b")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
ANCHOR = re.compile(r"<a id=\"([^\"]+)\"></a>")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.suffix == ".md" or path.name in ("Makefile", "pyproject.toml"))
    for folder in FOLDERS:
        for parent, folders, names in os.walk(ROOT / folder):
            folders[:] = set(folders) - FOREIGN
            yield from (path for path in map(Path(parent).joinpath, names) if path.suffix in SUFFIXES)


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


FILES = sorted(set(_files()) - {Path(__file__)})
DOCUMENTS = [path for path in FILES if path.suffix == ".md"]


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def _reference(name: str) -> str:
    return _text(ROOT / "docs" / "reference" / f"{name}.md")


def _has_section(document: str, section: str) -> bool:
    return f'<a id="s{section.replace(".", "-")}"></a>' in _reference(document)


def _part(document: str, section: str) -> str:
    """The text of a section with what is below it."""
    anchors = list(ANCHOR.finditer(_reference(document)))
    own = f"s{section.replace('.', '-')}"
    start = next(match.end() for match in anchors if match[1] == own)
    after = [match.start() for match in anchors if match.start() >= start and not match[1].startswith(f"{own}-")]
    return _reference(document)[start : after[0] if after else None]


def _missing_sections(text: str, document: str = "") -> Iterator[str]:
    """What a text cites of docs/reference and is not there; a bare "§2.6" is one of `document`."""
    if "§" not in text and "appendix" not in text:
        return
    prose = re.sub(r"\n\s*(?:#|//|\*)?\s*", " ", text)
    own, said_at = document, 0
    for match in CITATION.finditer(prose):
        if match["document"]:
            document = match["document"].lower()
        elif own:
            document = own
        elif not document or match.start() - said_at > ALONE_MAX:
            yield f"{match[0]}, of which document?"
            continue
        said_at = match.end()
        section = (match["first"] or match["next"]).lstrip("§")
        if document == "protocol":
            continue
        if not _has_section(document, section):
            yield f"{document} §{section}"
        elif entry := ENTRY.match(prose[match.end() :]):
            for number in re.findall(r"\d+[a-z]?", entry["numbers"]):
                if not re.search(rf"^\s*(?:\|\s*{number}\s*\||{number}\.)", _part(document, section), re.MULTILINE):
                    yield f"{document} §{section}: {number}"


def _by_file(missing: Callable[[Path], Iterable[str]], files: Iterable[Path] = FILES) -> dict[str, list[str]]:
    found = {_named(path): sorted(set(missing(path))) for path in files}
    return {name: names for name, names in found.items() if names}


@pytest.mark.slow
def test_what_is_cited_of_the_reference_is_there() -> None:
    def missing(path: Path) -> Iterator[str]:
        yield from _missing_sections(_text(path), path.stem if path.parent.name == "reference" else "")
        for match in DECISION.finditer(_text(path)):
            if f'<a id="d{match[1] or match[2]}"></a>' not in _reference("decisions"):
                yield match[0]

    assert not _by_file(missing)


@pytest.mark.slow
def test_files_that_are_named_exist() -> None:
    def missing(path: Path) -> Iterator[str]:
        for name, test in FILE.findall(_text(path)):
            target = ROOT / name
            if name in NOT_HERE.get(path.name, ()):
                continue
            if not target.exists():
                yield name
            elif test and f"def {test}(" not in _text(target):
                yield f"{name}::{test}"

    assert not _by_file(missing)


def test_parts_of_the_package_that_documents_name_exist() -> None:
    places = (ROOT / "app" / "hms_gateway", ROOT)
    assert len(PART.findall(_text(ROOT / "docs" / "architecture.md"))) > 50

    def missing(path: Path) -> Iterator[str]:
        named = set(PART.findall(_text(path))) - OF_THE_DATA_FOLDER
        return (part for part in named if not any((place / part).exists() for place in places))

    assert not _by_file(missing, DOCUMENTS)


def test_targets_of_make_that_documents_name_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", _text(ROOT / "Makefile"), re.MULTILINE))

    def missing(path: Path) -> Iterator[str]:
        for command in re.findall(r"(?:^ {4}|`)make((?: [a-z-]+)+)", _text(path), re.MULTILINE):
            yield from set(command.split()) - targets

    assert not _by_file(missing, DOCUMENTS)


@pytest.mark.slow
def test_documents_that_are_named_exist() -> None:
    known = {document.name for document in DOCUMENTS}
    assert not _by_file(lambda path: set(DOCUMENT.findall(_text(path))) - known)


def _slugs(path: Path) -> set[str]:
    """The anchors of a document: those that are written, and those that hosts make of headings."""
    text = FENCE.sub("", _text(path))
    headings = [re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in HEADING.findall(text)]
    return {*ANCHOR.findall(text), *headings}


def test_relative_links_have_their_targets() -> None:
    def missing(path: Path) -> Iterator[str]:
        for inline, defined in LINK.findall(FENCE.sub("", _text(path))):
            link = inline or defined
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if re.match(r"[a-z]+:", link):
                continue
            if not target.exists() or (anchor and anchor not in _slugs(target)):
                yield link

    assert not _by_file(missing, DOCUMENTS)


@pytest.mark.parametrize("name", ["semantics", "clients", "decisions"])
def test_every_numbered_heading_of_the_reference_has_its_own_anchor(name: str) -> None:
    text = _reference(name)
    anchors = ANCHOR.findall(text)
    assert len(anchors) == len(set(anchors))
    numbered = re.findall(r"^#{2,4} (?:Appendix )?(D?\d+(?:\.\d+)*|[A-Z](?:\.\d+)*)\.? ", text, re.MULTILINE)
    expected = [number.lower() if number[0] == "D" else f"s{number.replace('.', '-')}" for number in numbered]
    assert anchors == expected


def test_the_map_lists_every_document() -> None:
    docs = ROOT / "docs"
    listed = {(docs / link.partition("#")[0]).resolve() for link, _ in LINK.findall(_text(docs / "README.md"))}
    assert not {_named(path) for path in docs.rglob("*.md")} - {_named(path) for path in listed} - {"docs/README.md"}


def test_a_citation_without_a_section_is_found() -> None:
    assert list(_missing_sections('"""As semantics §99.1 says."""')) == ["semantics §99.1"]
    assert list(_missing_sections("(semantics §2.7\n    # item 99)")) == ["semantics §2.7: 99"]
    assert list(_missing_sections("semantics §5.6; what is written (§13 row 37, and §5.99)")) == ["semantics §5.99"]
    assert list(_missing_sections("a lonely §4")) == ["§4, of which document?"]


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".md"], ids=_named)
def test_no_diagram_has_a_semicolon(path: Path) -> None:
    """In Mermaid it ends a statement, so the rest of its line is an error and no diagram is drawn."""
    assert [part for part in FENCE.findall(path.read_text()) if part.startswith("```mermaid") and ";" in part] == []
