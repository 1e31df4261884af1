"""Writes what deploy/ has for Kubernetes from two sources: the settings and the templates of the Helm chart.

values.schema.json gets the settings with their types; deploy/kubernetes gets what `helm template` makes of the chart
with the values of each case in its folder ci.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Secret, Settings

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "deploy" / "helm" / "hms-gateway"
MANIFESTS = ROOT / "deploy" / "kubernetes"
HELM = ROOT / ".venv" / "kubernetes" / "helm"
"""Unpacked by scripts/peers."""
# Each folder of deploy/kubernetes, with its values; none are the chart's own.
CASES = {
    "sqlite": None,
    "postgresql": "ci/postgresql-values.yaml",
    "external": "ci/external-values.yaml",
    "knox": "ci/knox-values.yaml",
}
LINE_LENGTH = 100
_JOB = "templates/migrate.yaml"
# Set by the chart, or secrets, which come from Secrets.
_NOT_IN_VALUES = frozenset(
    (
        *("host", "port", "data_dir", "database_url", "thrift_host"),
        *("tls_certificate", "tls_key", "users_file", "admin_password", "admin_password_file", "secrets_key_file"),
    )
)


def schema_path() -> Path:
    """Where the schema of the chart's values lies in the source tree."""
    return CHART / "values.schema.json"


def schema_text(text: str) -> str:
    """The schema with the settings of the program in the place of those it has."""
    schema = json.loads(text)
    kinds = get_type_hints(Settings, include_extras=True)
    names = [name for name in Settings.__annotations__ if name not in _NOT_IN_VALUES]
    found, tables = msgspec.json.schema_components(
        [kinds[name] for name in names], schema_hook=_text_schema, ref_template="#/$defs/{name}"
    )
    schema["properties"]["settings"] = {
        "type": "object",
        "additionalProperties": False,
        "properties": dict(zip(names, map(_typed, found), strict=True)),
    }
    own = {name: one for name, one in schema["$defs"].items() if name[0].islower()}
    schema["$defs"] = own | {name: _typed(tables[name]) for name in sorted(tables)}
    limits = schema["$defs"]["Limits"]["properties"]
    schema["$defs"]["Limits"]["properties"] = {name: limits[name] for name in Limits.__annotations__}
    del schema["$defs"]["TrustedProxy"]["properties"]["secret"]
    return _written(schema) + "\n"


def manifests() -> Iterator[tuple[Path, str]]:
    """The files of deploy/kubernetes that helm makes. Raises OSError where it cannot be run."""
    for case, values in CASES.items():
        chosen = [] if values is None else ["--values", str(CHART / values)]
        yield MANIFESTS / case / "manifests.yaml", _rendered(*chosen, "--no-hooks")
    chosen = ["--values", str(CHART / "ci/postgresql-values.yaml"), "--show-only", _JOB]
    yield MANIFESTS / "migrate" / "manifests.yaml", _rendered(*chosen)


def _rendered(*options: str) -> str:
    command = [str(HELM), "template", "hms-gateway", str(CHART), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _text_schema(kind: type) -> dict[str, Any]:
    """Of the types that msgspec does not know: Path and Secret are texts."""
    if kind not in (Path, Secret):
        raise NotImplementedError
    return {"type": "string"}


def _typed(schema: Any) -> Any:
    """Without null, which is unset, and without defaults and texts, which are in docs/settings.md."""
    if isinstance(schema, list):
        return [_typed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    match schema.get("anyOf"):
        case [one, {"type": "null"}]:
            return _typed(one)
    return {name: _typed(one) for name, one in schema.items() if name not in ("title", "description", "default")}


def _written(value: Any, indent: str = "") -> str:
    """JSON with a line for each value that fits into one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= LINE_LENGTH or not isinstance(value, dict):
        return line
    below = indent + "  "
    rows = [f"{below}{json.dumps(name)}: {_written(one, below)}" for name, one in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
