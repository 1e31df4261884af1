"""Answers of methods as tables and trees for people."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from hms_gateway.cli.calls.plain_values import to_plain
from hms_gateway.rpc.idl import ListType, MapType, StructType, Type

# The fields of the IDL that are times since 1970.
_TIMES: Final = frozenset(
    (
        "createTime", "lastAccessTime", "createdAt", "eventTime", "grantTime", "lastheartbeat", "acquiredat",
        "startedTime", "lastHeartbeatTime", "start_utc", "end_utc", "start", "endTime", "enqueueTime", "commitTime",
        "cleanerStart", "last_heartbeat", "lost_at", "last_modified_time", "lastAnalyzed",
    )
)  # fmt: skip
_MILLISECONDS_FROM: Final = 100_000_000_000


def print_value(console: Console, kind: Type | None, value: Any) -> None:
    """Print what a method returned: lists of structs as a table, structs and maps as a tree, names one per line."""
    if kind is None:
        console.print("done", style="green")
        return
    plain = to_plain(kind, value)
    if isinstance(kind, ListType) and isinstance(kind.element, StructType):
        _print_table(console, kind.element.name, plain)
    elif isinstance(kind, ListType):
        _print_list(console, plain)
    elif isinstance(kind, StructType | MapType):
        title = kind.name if isinstance(kind, StructType) else f"{len(plain)} entries"
        console.print(_tree(title, plain))
    else:
        console.print(_text(plain), highlight=False, markup=False)


def _print_list(console: Console, items: Sequence[Any]) -> None:
    for item in items:
        console.print(_text(item), highlight=False, markup=False, soft_wrap=True)
    if not items:
        console.print("nothing", style="dim")


def _print_table(console: Console, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        console.print("nothing", style="dim")
        return
    rows = [_with_location(row) for row in rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    nested = [name for name in names if any(_is_nested(row.get(name)) for row in rows)]
    table = Table(title=f"{len(rows)} × {title}", title_justify="left", header_style="bold")
    for name in names:
        if name not in nested:
            table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(_dated(name, row.get(name))) for name in names if name not in nested))
    console.print(table)
    if nested:
        console.print(f"not shown: {', '.join(nested)} (--json shows everything)", style="dim")


def _with_location(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where the data is, out of the storage descriptor, which does not fit in a table."""
    descriptor = row.get("sd")
    if not isinstance(descriptor, dict) or "location" not in descriptor:
        return row
    return {**row, "location": descriptor["location"]}


def _dated(name: str, value: Any) -> Any:
    """Seconds or milliseconds since 1970 as people write times; 0 is that there is none."""
    if name not in _TIMES or not isinstance(value, int):
        return value
    if not value:
        return ""
    seconds = value / 1000 if value >= _MILLISECONDS_FROM else value
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):  # no year that a calendar has
        return value


def _is_nested(value: Any) -> bool:
    """Maps, structs and lists of them do not fit in a cell; a short list of words does."""
    if isinstance(value, list):
        return any(isinstance(item, dict | list) for item in value)
    return isinstance(value, dict)


def _cell(value: Any) -> str:
    return escape(", ".join(_text(item) for item in value) if isinstance(value, list) else _text(value))


def _tree(title: str, plain: Mapping[str, Any]) -> RenderableType:
    tree = Tree(f"[bold]{escape(title)}[/bold]", guide_style="dim")
    _add_branches(tree, plain)
    return tree


def _add_branches(tree: Tree, plain: Mapping[str, Any]) -> None:
    for name, value in plain.items():
        label = f"[cyan]{escape(name)}[/cyan]"
        if isinstance(value, dict) and value:
            _add_branches(tree.add(label), value)
        elif isinstance(value, list) and _is_nested(value):
            _add_items(tree.add(f"{label} [dim]({len(value)})[/dim]"), value)
        else:
            tree.add(f"{label}  {_leaf(_dated(name, value))}")


def _add_items(tree: Tree, items: Sequence[Any]) -> None:
    for item in items:
        if isinstance(item, dict) and not any(_is_nested(value) for value in item.values()):
            pairs = ((name, _dated(name, value)) for name, value in item.items())
            tree.add("  ".join(f"[cyan]{escape(name)}[/cyan] {_leaf(value)}" for name, value in pairs))
        elif isinstance(item, dict):
            _add_branches(tree.add("·"), item)
        else:
            tree.add(escape(_text(item)))


def _leaf(value: Any) -> str:
    if value in ({}, []):
        return "[dim]none[/dim]"
    return _cell(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
