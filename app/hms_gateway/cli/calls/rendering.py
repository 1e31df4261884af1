"""Answers of methods as tables and trees for people."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from hms_gateway.cli.calls.plain_values import to_plain
from hms_gateway.idl import ListType, MapType, StructType, Type


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
    names = list(dict.fromkeys(name for row in rows for name in row))
    nested = [name for name in names if any(_is_nested(row.get(name)) for row in rows)]
    table = Table(title=f"{len(rows)} × {title}", title_justify="left", header_style="bold")
    for name in names:
        if name not in nested:
            table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in names if name not in nested))
    console.print(table)
    if nested:
        console.print(f"not shown: {', '.join(nested)} (--json shows everything)", style="dim")


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
            tree.add(f"{label}  {_leaf(value)}")


def _add_items(tree: Tree, items: Sequence[Any]) -> None:
    for item in items:
        if isinstance(item, dict) and not any(_is_nested(value) for value in item.values()):
            tree.add("  ".join(f"[cyan]{escape(name)}[/cyan] {_leaf(value)}" for name, value in item.items()))
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
