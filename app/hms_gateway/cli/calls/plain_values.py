"""Values of IDL types as plain JSON with the IDL's field names, and back; answers as tables and trees for people.

Binary is base64; a map whose keys are not text has them as JSON text, because a JSON object knows nothing else.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from hms_gateway.metastore.vocabulary.texts import did_you_mean, time_text
from hms_gateway.rpc.idl import BaseType, EnumType, ListType, MapType, SetType, StructType, Type
from hms_gateway.rpc.structs import ENUMS, STRUCTS

_INTEGER_BITS = {BaseType.I8: 8, BaseType.I16: 16, BaseType.I32: 32, BaseType.I64: 64}


class PlainValueError(ValueError):
    """A value does not fit its IDL type; the text names the place in it."""


def to_plain(kind: Type, value: Any) -> Any:
    """`value` in terms of JSON: structs and exceptions become objects of the fields that are set."""
    if value is None:
        return None
    match kind:
        case StructType(name):
            fields = STRUCTS[name].definition.fields
            pairs = ((field, getattr(value, field.name)) for field in fields)
            return {field.name: to_plain(field.type, part) for field, part in pairs if part is not None}
        case ListType(element):
            return [to_plain(element, part) for part in value]
        case SetType(element):
            return sorted((to_plain(element, part) for part in value), key=str)
        case MapType(key, element):
            return {_key_text(key, name): to_plain(element, part) for name, part in value.items()}
        case EnumType(name):
            return _member_name(name, value)
        case BaseType.BINARY:
            return base64.b64encode(value).decode()
        case _:
            return value


def from_plain(kind: Type, plain: Any, place: str) -> Any:
    """The value of IDL type `kind` that `plain` (parsed JSON) means; `place` names it in errors.

    Raises PlainValueError.
    """
    match kind:
        case StructType(name):
            return _struct(name, plain, place)
        case ListType(element):
            items = _of_type(plain, list, "a list", place)
            return [from_plain(element, item, f"{place}[{index}]") for index, item in enumerate(items)]
        case SetType(element):
            return {from_plain(element, item, place) for item in _of_type(plain, list, "a list", place)}
        case MapType(key, element):
            pairs = _of_type(plain, dict, "an object", place).items()
            return {_key(key, name, place): from_plain(element, part, f"{place}.{name}") for name, part in pairs}
        case EnumType(name):
            return _enum(name, plain, place)
        case BaseType():
            return _base(kind, plain, place)


def as_json(kind: Type, value: Any) -> str:
    """`value` as readable JSON text."""
    return json.dumps(to_plain(kind, value), ensure_ascii=False, indent=2)


def _struct(name: str, plain: Any, place: str) -> Any:
    given: Mapping[str, Any] = _of_type(plain, dict, f"an object with the fields of {name}", place)
    fields = {field.name: field for field in STRUCTS[name].definition.fields}
    for unknown in given.keys() - fields.keys():
        raise PlainValueError(f"{place}: {name} has no field {unknown!r}{did_you_mean(unknown, fields)}")
    values = {
        key: from_plain(fields[key].type, part, f"{place}.{key}") for key, part in given.items() if part is not None
    }
    return STRUCTS[name](**values)


def _base(kind: BaseType, plain: Any, place: str) -> Any:
    if kind in _INTEGER_BITS:
        number = _of_type(plain, int, "a whole number", place)
        bound = 1 << (_INTEGER_BITS[kind] - 1)
        if not -bound <= number < bound:
            raise PlainValueError(f"{place}: {number} does not fit in {kind.value}")
        return number
    if kind is BaseType.BOOL:
        return _of_type(plain, bool, "true or false", place)
    if kind is BaseType.DOUBLE:
        return float(_of_type(plain, (int, float), "a number", place))
    text = _of_type(plain, str, "text", place)
    if kind is BaseType.STRING:
        return _encodable(text, place)
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise PlainValueError(f"{place}: binary is written as base64: {error}") from error


def _encodable(text: str, place: str) -> str:
    """JSON can spell half a character, which no message can carry."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PlainValueError(f"{place}: {text!r} is not text: {error.reason}") from error
    return text


def _of_type(plain: Any, types: Any, expected: str, place: str) -> Any:
    is_misplaced_bool = isinstance(plain, bool) and types is not bool
    if is_misplaced_bool or not isinstance(plain, types):
        raise PlainValueError(f"{place}: expected {expected}, not {json.dumps(plain)[:80]}")
    return plain


def _enum(name: str, plain: Any, place: str) -> int:
    members = ENUMS[name].__members__
    if isinstance(plain, str) and plain in members:
        return int(members[plain])
    if isinstance(plain, int) and not isinstance(plain, bool):
        return plain
    raise PlainValueError(f"{place}: expected one of {', '.join(members)} or its number, not {json.dumps(plain)}")


def _member_name(name: str, value: int) -> str | int:
    """A number without a name stays one: servers newer than our IDL may send it."""
    by_value = {int(member): key for key, member in ENUMS[name].__members__.items()}
    return by_value.get(int(value), int(value))


def _key_text(kind: Type, key: Any) -> str:
    return key if kind is BaseType.STRING else json.dumps(to_plain(kind, key), ensure_ascii=False)


def _key(kind: Type, text: str, place: str) -> Any:
    if kind is BaseType.STRING:
        return text
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise PlainValueError(f"{place}: key {text!r} is not JSON") from error
    key = from_plain(kind, plain, f"{place} key")
    return tuple(key) if isinstance(key, list) else key


# The fields of the IDL that are times since 1970.
_TIMES: Final = frozenset(
    (
        "createTime", "lastAccessTime", "createdAt", "eventTime", "grantTime", "lastheartbeat", "acquiredat",
        "startedTime", "lastHeartbeatTime", "start_utc", "end_utc", "start", "endTime", "enqueueTime", "commitTime",
        "cleanerStart", "last_heartbeat", "lost_at", "last_modified_time", "lastAnalyzed",
    )
)  # fmt: skip


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
    """The row with the location of its storage descriptor, which does not fit in a table."""
    descriptor = row.get("sd")
    if not isinstance(descriptor, dict) or "location" not in descriptor:
        return row
    return {**row, "location": descriptor["location"]}


def _dated(name: str, value: Any) -> Any:
    """Times as people write them."""
    return (time_text(value) or "") if name in _TIMES and isinstance(value, int) else value


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
