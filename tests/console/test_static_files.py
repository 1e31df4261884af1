"""What the console is sent as: its files, their sizes, what goes with them, and what they are copies of."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from hms_gateway.console.static_files import FOLDER, static_file
from tests.gateway.serving import Running, running
from tools.console_files import COPIES, PACKAGES, called_methods, copied, shapes_path, shapes_text

BYTES_MAX = 300_000
COMPRESSED_BYTES_MAX = 100_000
SCRIPTS = sorted(path for path in FOLDER.glob("*.js"))


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server


def get(server: Running, path: str, **headers: str) -> httpx.Response:
    return httpx.get(server.root + path, headers=headers)


def test_all_files_together_stay_small():
    contents = [path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(map(len, contents)) < BYTES_MAX
    assert sum(len(gzip.compress(content, 9)) for content in contents) < COMPRESSED_BYTES_MAX


def test_the_copies_are_those_of_the_locked_packages():
    if not (PACKAGES / "node_modules").exists():
        pytest.skip("npm packages of tools/console")
    assert {path.name for path in (FOLDER / "vendor").iterdir()} == COPIES.keys()
    assert [path.name for path, content in copied() if path.read_bytes() != content] == [], (
        "run: python -m tools console"
    )


def test_each_copied_script_has_its_licence():
    licences = {path.name.removeprefix("LICENSE-") for path in (FOLDER / "vendor").glob("LICENSE-*")}
    assert licences == {"htm", "preact", "uplot"}


def test_the_shapes_are_those_of_the_interface():
    assert shapes_path().read_text(encoding="utf-8") == shapes_text(), "run: python -m tools console"


def test_every_method_that_is_called_has_a_shape_and_every_shape_is_used():
    used = set()
    for script in SCRIPTS:
        if script.name != "shapes.js":
            used |= set(re.findall(r'(?:call|useCall|post)\(\s*"(\w+)"', script.read_text(encoding="utf-8")))
    assert used == set(called_methods())


def test_texts_that_are_used_are_there_and_none_is_left_over():
    texts = set(re.findall(r"^  (\w+):", (FOLDER / "texts.js").read_text(encoding="utf-8"), re.MULTILINE))
    used = {
        name
        for script in SCRIPTS
        if script.name != "texts.js"
        for name in re.findall(r"\bt\.(\w+)", script.read_text(encoding="utf-8"))
    }
    by_name = {"byToken", "byTicket", "byPassword"}
    assert (used - texts, texts - used - by_name) == (set(), set())


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/index.html", "/ui/main.js", "/ui/vendor/preact_htm.js", "/ui/console.css"]
)
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
    for path in FOLDER.glob("*.*"):
        assert set(re.findall(r"https?://[\w.]+", path.read_text(encoding="utf-8"))) <= {"http://www.w3.org"}, path


def test_everything_that_the_page_loads_first_is_preloaded():
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    imported = {
        name
        for script in SCRIPTS
        for name in re.findall(r'^import [^;]* from "\./(.+)";$|^\} from "\./(.+)";$', script.read_text(), re.MULTILINE)
        for name in filter(None, name)
    }
    assert imported - set(re.findall(r'modulepreload" href="(.+?)"', page)) == set()


def test_slash_leads_to_the_console(server):
    for path, place in (("/", "ui/"), ("/ui", "ui/")):
        answer = get(server, path)
        assert (answer.status_code, answer.headers["location"]) == (307, place)


def test_files_are_compressed_and_not_sent_twice(server):
    answer = get(server, "/ui/frame.js")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.text == (FOLDER / "frame.js").read_text(encoding="utf-8")
    plain = get(server, "/ui/frame.js", **{"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    again = get(server, "/ui/frame.js", **{"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/ui/nothing.js", "/ui/%2e%2e/static_files.py", "/ui//etc/passwd", "/ui/vendor/LICENSE-htm", "/ui/vendor"]
)
def test_nothing_else_is_served(server, path):
    assert get(server, path).status_code == 404


def test_a_gateway_without_the_console():
    with running(console=False) as server:
        assert [get(server, path).status_code for path in ("/", "/ui", "/ui/", "/ui/main.js")] == [404] * 4
        assert get(server, "/healthz").status_code == 200


def test_a_path_from_outside_opens_no_file():
    assert static_file("../static_files.py") is None
    assert static_file(str(FOLDER / "main.js")) is None


def test_a_start_reads_none_of_it():
    """The module, and what it needs, is loaded with the first page."""
    program = "import sys, hms_gateway.composition.main; print('hms_gateway.console' in str(sorted(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert ended.stdout.strip() == "False"
