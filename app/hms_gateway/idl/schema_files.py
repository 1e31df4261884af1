"""Place of the files of `schema/`: inside the package in a wheel, beside `app/` in a source tree."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def schema_file(name: str) -> Path:
    """The path of a file of `schema/`. Raises FileNotFoundError."""
    for folder in (_PACKAGE, _PACKAGE.parents[1]):
        path = folder / "schema" / name
        if path.exists():
            return path
    raise FileNotFoundError(f"schema/{name} is missing; install hms-gateway again")
