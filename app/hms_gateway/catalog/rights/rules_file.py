"""The file of rules: read when it changes. A broken one is logged with line and column, and the rules before stay."""

import logging
import re
import time
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from hms_gateway.catalog.rights.policy import PRIVILEGES, Action, NamePattern, Rule, read_pattern
from hms_gateway.runtime.file_versions import FileVersion, file_version

LOOK_EVERY_SECONDS: Final = 1.0
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
RULES_MAX: Final = 10_000
_ACTIONS: Final = frozenset({*PRIVILEGES, Action.ADMIN.value})
_KEYS: Final = frozenset({"name", "users", "groups", "roles", "actions", "objects", "locations"})
_NAME: Final = re.compile(r"[^\s.\"']+(\.[^\s.\"']+)?")

_log = logging.getLogger(__name__)


class RulesError(Exception):
    """The file cannot be used; the text names it, with line and column, and is meant for the operator."""


class RulesFile:
    """The rules of now; none without a file. `generation` grows with every change."""

    def __init__(self, path: Path | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.generation = 0
        self._monotonic = monotonic
        self._version: FileVersion | None = None if path is None else file_version(path)
        self.rules: tuple[Rule, ...] = () if path is None else read_rules(path)
        self._next_look = monotonic() + LOOK_EVERY_SECONDS

    @property
    def is_due(self) -> bool:
        """Tell whether `look` would look at the file."""
        return self.path is not None and self._monotonic() >= self._next_look

    def look(self) -> int:
        """Read the file if it has changed, a second after the last look at the earliest; the generation."""
        if self.path is None or not self.is_due:
            return self.generation
        self._next_look = self._monotonic() + LOOK_EVERY_SECONDS
        version = file_version(self.path)
        if version != self._version:
            self._version = version
            try:
                self.rules = read_rules(self.path)
            except RulesError as error:
                _log.error("rules not read; the previous rules stay in force: %s", error)
            else:
                self.generation += 1
        return self.generation


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a file. Raises RulesError."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise RulesError(f"{path} is larger than {FILE_BYTES_MAX} bytes; write fewer rules with patterns")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(f"{path} cannot be read: {error}") from error
    return parse_rules(text, str(path))


def parse_rules(text: str, name: str = "rules") -> tuple[Rule, ...]:
    """Rules written in TOML. Raises RulesError."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RulesError(f"{name}: {error}") from error
    for key in content:
        if key != "rule":
            raise RulesError(f"{name}: {key!r} is not known ({_place(text, key)}); write [[rule]]")
    given = content.get("rule", [])
    if not isinstance(given, list) or len(given) > RULES_MAX:
        raise RulesError(f"{name}: rule is not a list of at most {RULES_MAX}; write [[rule]] before each")
    return tuple(_rule(one, number, text, name) for number, one in enumerate(given, 1))


def _rule(given: Any, number: int, text: str, name: str) -> Rule:
    def wrong(what: str) -> RulesError:
        return RulesError(f"{name}: rule {number} {what} (at line {_line_of(text, number)}, column 1)")

    if not isinstance(given, dict):
        raise wrong("is not a table; write [[rule]]")
    if unknown := sorted(set(given) - _KEYS):
        raise wrong(f"has the key {unknown[0]!r}, which is not one of {', '.join(sorted(_KEYS))}")

    def texts(key: str) -> list[str]:
        found = given.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
            raise wrong(f"has {key} that is not a list of texts")
        return found

    parties = {key: frozenset(texts(key)) for key in ("users", "groups", "roles")}
    if not any(parties.values()):
        raise wrong("names no party; give it users, groups or roles")
    locations = [(one, read_pattern(one)) for one in texts("locations")]
    for one, pattern in locations:
        if pattern is None:
            raise wrong(
                f"has the location {one!r}; write a directory with its scheme; a final /* excludes the directory itself"
            )
    actions = frozenset(one.lower() for one in texts("actions"))
    if not (actions or locations) or (actions - _ACTIONS):
        bad = ", ".join(sorted(actions - _ACTIONS)) or "nothing"
        raise wrong(f"has actions that name {bad}; the actions are {', '.join(sorted(_ACTIONS))}")
    objects = texts("objects")
    if objects and not actions:
        raise wrong("has objects and no actions; add actions")
    if not objects and actions - {Action.ADMIN.value}:
        raise wrong("has no objects; write patterns such as sales_* or sales.orders")
    for one in objects:
        if not _NAME.fullmatch(one):
            raise wrong(f"has the object {one!r}; write a database or database.table, with * for any characters")
    rule_name = given.get("name", f"rule {number}")
    if not isinstance(rule_name, str):
        raise wrong("has a name that is not a text")
    patterns = tuple(pattern for _, pattern in locations if pattern is not None)
    return Rule(rule_name, actions=actions, objects=tuple(_objects(objects)), locations=patterns, **parties)


def _objects(objects: Iterable[str]) -> Iterable[tuple[NamePattern, NamePattern | None]]:
    for one in objects:
        database, dot, table = one.lower().partition(".")
        yield NamePattern(database), NamePattern(table) if dot else None


def _line_of(text: str, number: int) -> int:
    headers = [line for line, one in enumerate(text.splitlines(), 1) if one.lstrip().startswith("[[rule]]")]
    return headers[number - 1] if number <= len(headers) else 1


def _place(text: str, key: str) -> str:
    for line, one in enumerate(text.splitlines(), 1):
        column = one.find(key)
        if column >= 0:
            return f"at line {line}, column {column + 1}"
    return "at line 1, column 1"
