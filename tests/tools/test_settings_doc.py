"""The settings in documents and example files are those of the program."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from hms_gateway.runtime.settings_reading import OTHER_VARIABLES, load_settings
from tools.settings_doc import _GROUPS, settings_path, settings_text

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "deploy" / "hms-gateway.toml"
# As the file says beside them.
OTHER_THAN_DEFAULT = {"authorization": "grants", "audit_log": "stdout", "data_dir": Path("/var/lib/hms-gateway")}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for variable in [name for name in os.environ if name.startswith("HMS_GATEWAY_")]:
        monkeypatch.delenv(variable)


def test_the_document_is_up_to_date():
    assert settings_path().read_text(encoding="utf-8") == settings_text(), "run: python -m tools settings"


@pytest.mark.slow
def test_every_setting_and_limit_has_a_row_below_a_heading():
    rows = set(re.findall(r"^\| `(\w+)` \|", settings_text(), re.MULTILINE))
    assert {*Settings.__annotations__, *Limits.__annotations__} <= rows
    assert set(re.findall("^## (.+)$", settings_text(), re.MULTILINE)) >= set(_GROUPS.values())


def test_the_example_file_holds_the_defaults_it_says():
    example, defaults = load_settings(EXAMPLE), load_settings()
    for name in tomllib.loads(EXAMPLE.read_text(encoding="utf-8")):
        assert getattr(example, name) == OTHER_THAN_DEFAULT.get(name, getattr(defaults, name)), name


def test_what_the_example_file_has_in_comments_can_be_set(tmp_path):
    """Every `# name = value` of the file, uncommented, is accepted."""
    text = re.sub(r"^# (\w+ = )", r"\1", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (tmp_path / "all.toml").write_text(text)
    assert load_settings(tmp_path / "all.toml").database_url is not None


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "docs/calling.md",
        "docs/engines.md",
        "docs/operations.md",
        "docs/settings.md",
        "Dockerfile",
        "deploy/docker-compose.yml",
        "deploy/hms-gateway.toml",
        "deploy/systemd/hms-gateway.service",
    ],
)
def test_every_variable_named_in_the_files_exists(path):
    known = {f"HMS_GATEWAY_{name.upper()}" for name in Settings.__annotations__} | OTHER_VARIABLES
    named = set(re.findall(r"HMS_GATEWAY_[A-Z_]+[A-Z]", (ROOT / path).read_text(encoding="utf-8")))
    assert {name.partition("__")[0] for name in named} - {"HMS_GATEWAY_NAME"} <= known
