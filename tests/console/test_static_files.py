"""What the console is sent as: its files, their sizes, what goes with them, and what they are copies of."""

import asyncio
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from hms_gateway.gateway.console.bundle import bundled
from hms_gateway.gateway.console.static_files import FOLDER, SOURCES, static_file
from tests.gateway.serving import Running, running
from tools.console_files import PACKAGES, called_methods, copied, shapes_path, shapes_text

BYTES_MAX = 300_000
COMPRESSED_BYTES_MAX = 100_000
SCRIPTS = sorted(path for path in SOURCES.glob("*.js"))


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server


def get(server: Running, path: str, **headers: str) -> httpx.Response:
    return httpx.get(server.root + path, headers=headers)


def test_all_files_together_stay_small():
    contents = [path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()]
    contents.append(bundled(SOURCES).encode())
    assert sum(map(len, contents)) < BYTES_MAX
    assert sum(len(gzip.compress(content, 9)) for content in contents) < COMPRESSED_BYTES_MAX


def test_the_copies_are_those_of_the_locked_packages():
    if not (PACKAGES / "node_modules").exists():
        pytest.skip("npm packages of tools/console")
    assert {path for path, _ in copied() if path.is_relative_to(FOLDER)} == set((FOLDER / "vendor").iterdir())
    assert [path.name for path, content in copied() if path.read_bytes() != content] == [], (
        "run: python -m tools console"
    )


def test_each_copied_script_has_its_licence():
    licences = {path.name.removeprefix("LICENSE-") for path in (FOLDER / "vendor").glob("LICENSE-*")}
    assert licences == {"htm", "preact", "uplot"}


def test_the_shapes_are_those_of_the_interface():
    assert shapes_path().read_text(encoding="utf-8") == shapes_text(), "run: python -m tools console"


def test_the_bundle_of_the_console_has_all_its_modules():
    assert {f"// {path.relative_to(SOURCES).as_posix()}" for path in SOURCES.rglob("*.js")} == set(
        re.findall(r"^// [\w/]+\.js$", bundled(SOURCES), re.MULTILINE)
    )


@pytest.mark.parametrize(
    "line", ['import "./y.js";', 'import * as y from "./y.js";', "export default 1;", 'export * from "./y.js";']
)
def test_a_module_of_another_form_is_refused(tmp_path, line):
    (tmp_path / "main.js").write_text(f"{line}\nconst a = 1;\nexport {{ a }};\n")
    with pytest.raises(ValueError, match=r"main\.js"):
        bundled(tmp_path)


def test_a_bundle_has_each_module_once_after_those_that_it_imports(tmp_path):
    (tmp_path / "main.js").write_text(
        'import { one as uno } from "./a.js";\nimport { two } from "./b.js";\nexport const sum = uno + two();\n'
        "export { sum as total };\n"
    )
    (tmp_path / "a.js").write_text('import { two } from "./b.js";\nconst inner = two() - 1;\nexport{inner as one};')
    (tmp_path / "b.js").write_text("export function two() {\n  return 2;\n}\n")
    text = bundled(tmp_path)
    assert re.findall(r"^const (\w+) = \(", text, re.MULTILINE) == ["_b", "_a", "_main"]
    assert "const { one: uno } = _a;" in text
    assert "return { one: inner };" in text
    assert text.endswith("export const { sum, total } = _main;\n")


@pytest.mark.slow
def test_a_bundle_is_the_same_from_run_to_run(tmp_path):
    names = [f"m{number}" for number in range(6)]
    (tmp_path / "main.js").write_text("".join(f'import {{ {name} }} from "./{name}.js";\n' for name in names))
    for name in names:
        (tmp_path / f"{name}.js").write_text(f"export const {name} = 1;\n")
    program = (
        "import pathlib, sys; from hms_gateway.gateway.console.bundle import bundled; "
        "print(bundled(pathlib.Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    bundles = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2", "3")
    }
    assert len(bundles) == 1


def test_every_method_that_is_called_has_a_shape_and_every_shape_is_used():
    used = set()
    for script in SCRIPTS:
        if script.name != "shapes.js":
            used |= set(re.findall(r'(?:call|useCall|post|change)\(\s*"(\w+)"', script.read_text(encoding="utf-8")))
    assert used == set(called_methods())


def test_texts_that_are_used_are_there_and_none_is_left_over():
    texts = set(re.findall(r"^  (\w+):", (SOURCES / "texts.js").read_text(encoding="utf-8"), re.MULTILINE))
    used = {
        name
        for script in SCRIPTS
        if script.name != "texts.js"
        for name in re.findall(r"\bt\.(\w+)", script.read_text(encoding="utf-8"))
    }
    by_name = {"byToken", "byTicket", "byPassword"}
    assert (used - texts, texts - used - by_name) == (set(), set())


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/ui/", "/ui/index.html", "/ui/console.js", "/ui/vendor/uplot.js", "/ui/console.css"])
def test_every_file_comes_with_the_policy_and_nothing_else_may_run(server, path):
    answer = get(server, path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"):
        assert part in policy
    assert "unsafe" not in policy
    assert "set-cookie" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_has_no_inline_script_or_style_and_names_no_other_host():
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*>[^<]", page) == []
    assert re.findall(r"<style|style=|\son\w+=", page) == []
    for path in (*FOLDER.glob("*.*"), *SCRIPTS):
        assert set(re.findall(r"https?://[\w.]+", path.read_text(encoding="utf-8"))) <= {"http://www.w3.org"}, path


def test_the_page_asks_for_three_files_before_it_shows_something():
    """A browser asks for others only when they are needed: plots, and what is not found by reading the page."""
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:href|src)="(.+?)"', page)) == {"console.js", "console.css", "icon.svg"}
    assert not re.search(r"^import\b", bundled(SOURCES), re.MULTILINE)


def test_slash_leads_to_the_console(server):
    for path, place in (("/", "ui/"), ("/ui", "ui/")):
        answer = get(server, path)
        assert (answer.status_code, answer.headers["location"]) == (307, place)


@pytest.mark.slow
def test_files_are_compressed_and_not_sent_twice(server):
    answer = get(server, "/ui/console.js")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.text == bundled(SOURCES)
    plain = get(server, "/ui/console.js", **{"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    again = get(server, "/ui/console.js", **{"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.slow
def test_files_are_made_beside_the_event_loop(server, monkeypatch):
    def made(path):
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return static_file(path)

    monkeypatch.setattr("hms_gateway.gateway.pages.static_file", made)
    assert get(server, "/ui/console.js").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    ["/ui/nothing.js", "/ui/%2e%2e/static_files.py", "/ui//etc/passwd", "/ui/vendor/LICENSE-htm", "/ui/src/main.js"],
)
def test_nothing_else_is_served(server, path):
    assert get(server, path).status_code == 404


@pytest.mark.slow
def test_a_gateway_without_the_console():
    with running(console=False) as server:
        assert [get(server, path).status_code for path in ("/", "/ui", "/ui/", "/ui/console.js")] == [404] * 4
        assert get(server, "/healthz").status_code == 200


def test_a_path_from_outside_opens_no_file():
    assert static_file("../static_files.py") is None
    assert static_file(str(FOLDER / "console.css")) is None


@pytest.mark.slow
def test_a_start_reads_none_of_it():
    """The module, and what it needs, is loaded with the first page."""
    program = (
        "import sys, hms_gateway.composition.main; print('hms_gateway.gateway.console' in str(sorted(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert ended.stdout.strip() == "False"
