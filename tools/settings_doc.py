"""Writes the tables of settings and limits into docs/operations.md."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import ENVIRONMENT_PREFIX, described_settings
from tools.marked import with_lines

_SETTINGS = "<!-- settings: python -m tools settings -->"
_LIMITS = "<!-- limits: python -m tools settings -->"


def operations_path() -> Path:
    """Where the document lies in the source tree."""
    return Path(__file__).resolve().parent.parent / "docs" / "operations.md"


def with_tables(document: str) -> str:
    """The document with what stands between its markers written anew. Raises ValueError when a marker is missing."""
    document = with_lines(document, _SETTINGS, _settings_rows())
    return with_lines(document, _LIMITS, _limits_rows())


def _settings_rows() -> Iterator[str]:
    yield "| setting | environment | default | meaning |"
    yield "|---|---|---|---|"
    for setting in described_settings():
        name, default = setting.name, _default_text(setting.default)
        meaning = setting.description.replace("|", "\\|")
        yield f"| `{name}` | `{ENVIRONMENT_PREFIX}{name.upper()}` | {default} | {meaning} |"


def _default_text(default: object) -> str:
    if default is None:
        return "–"
    if isinstance(default, Limits):
        return "see below"
    return f"`{default}`" if isinstance(default, str | Path) else f"`{json.dumps(default)}`"


def _limits_rows() -> Iterator[str]:
    yield "| limit | default |"
    yield "|---|---|"
    yield from (f"| `{name}` | {default:,} |" for name, default in msgspec.structs.asdict(Limits()).items())
