"""Checks the licences in a list of components (CycloneDX, JSON): `python -m tools.licences FILE`.

A licence is permissive, or the component is named here with the reason why it may be shipped.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

PERMISSIVE: Final = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0", "Python-2.0"),
    *("Unlicense", "Zlib", "Apache Software License", "BSD License", "ISC License (ISCL)", "MIT License"),
    "Python Software Foundation License",
}
_LIBRARY: Final = "an unchanged package of its own, which users can replace"
NAMED: Final = {
    "certifi": f"MPL-2.0: {_LIBRARY}",
    "psycopg": f"LGPL-3.0: {_LIBRARY}",
    "psycopg-binary": f"LGPL-3.0: {_LIBRARY}",
    # Text without a form that programs read.
    "protobuf": "BSD-3-Clause",
    "thrift": "Apache-2.0",
}


def problems(bill: dict[str, Any]) -> list[str]:
    """A line for each component whose licence is neither permissive nor named."""
    return [
        f"{component['name']} {component['version']}: {' and '.join(sorted(found)) or 'no licence'}"
        for component in bill["components"]
        if component["name"] not in NAMED
        for found in [_licences(component)]
        if not found or found - PERMISSIVE
    ]


def _licences(component: dict[str, Any]) -> set[str]:
    """Names or SPDX ids; every part of an expression counts, also the alternatives."""
    declared = [
        entry.get("expression") or entry["license"].get("id") or entry["license"]["name"].rpartition(" :: ")[2]
        for entry in component.get("licenses", [])
    ]
    return {part.strip(" ()") for text in declared for part in re.split(r"\b(?:AND|OR)\b", text)}


def main() -> int:
    """Print the problems of the file; 1 if there are any."""
    bill = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = problems(bill)
    for line in found:
        print(f"licence neither permissive nor named: {line}", file=sys.stderr)
    if not found:
        print(f"{len(bill['components'])} components: their licences are permissive or named")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
