"""Puts the repository's address into a copy of the sources: `python -m tools.addresses FOLDER REPOSITORY TAG`.

A package index shows README.md without the files that its links name, and the project's pages by `project.urls`. No
file of the repository has its address.
"""

import re
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

# The text of a link or picture, and where it leads.
_LINK: Final = re.compile(r"(!?)(\[[^\]]*\])\((?!#|[a-z][a-z0-9+.-]*:)([^)\s]+)\)", re.IGNORECASE)


def with_addresses(markdown: str, repository: str, tag: str) -> str:
    """The text with links into the repository, at the tag, in place of relative ones (GitHub, GitLab)."""

    def absolute(link: re.Match[str]) -> str:
        mark, text, path = link.groups()
        return f"{mark}{text}({repository}/{'raw' if mark else 'blob'}/{tag}/{path})"

    return _LINK.sub(absolute, markdown)


def urls(repository: str, tag: str) -> str:
    """The table `project.urls` of pyproject.toml."""
    places = {
        "Homepage": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/README.md",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    return "\n".join(["[project.urls]", *(f'{name} = "{place}"' for name, place in places.items())]) + "\n"


def problem(repository: str) -> str | None:
    """What is wrong with an address; None for a right one."""
    parts = urlsplit(repository)
    if (
        parts.scheme != "https"
        or not parts.hostname
        or parts.query
        or parts.fragment
        or re.search(r'[\s"\\()]', repository)
    ):
        return f"REPOSITORY {repository!r} is no address; give the one of its page, such as https://git.example.org/team/hms-gateway"
    if parts.username is not None:
        return "REPOSITORY has a login, which packages would show to everyone; leave it out"
    return None


def main() -> int:
    """Change README.md and pyproject.toml of the folder; 2 for a wrong address."""
    folder, repository, tag = sys.argv[1:]
    repository = repository.rstrip("/").removesuffix(".git")
    if wrong := problem(repository):
        print(wrong, file=sys.stderr)
        return 2
    readme, project = Path(folder, "README.md"), Path(folder, "pyproject.toml")
    readme.write_text(with_addresses(readme.read_text("utf-8"), repository, tag), "utf-8")
    project.write_text(f"{project.read_text('utf-8')}\n{urls(repository, tag)}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
