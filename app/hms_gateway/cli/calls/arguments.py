"""Words of the command line as names of objects, and as arguments of a method by its IDL types."""

import difflib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hms_gateway.cli.calls.plain_values import PlainValueError, from_plain
from hms_gateway.cli.terminal.output import fail
from hms_gateway.metastore.vocabulary.texts import did_you_mean
from hms_gateway.rpc.idl import BaseType, EnumType, Field, ListType, StructType, Type
from hms_gateway.rpc.structs import STRUCTS, Method
from hms_gateway.rpc.structs.catalogs import marked
from hms_gateway.txn.rules.names import Target

_NUMBERS = {BaseType.I8, BaseType.I16, BaseType.I32, BaseType.I64, BaseType.DOUBLE}
_TRUE = {"true", "yes", "1"}
_FALSE = {"false", "no", "0"}
_NAME = re.compile("[A-Za-z_][A-Za-z_0-9]*")
# A text such as `ds=1` is a value; one that begins nearly as an argument is called is not.
_SURELY_MEANT = 0.85

# Of `catalog.database.table`, what the table lies in.
_PLACES_MAX: Final = 2


class ArgumentError(ValueError):
    """The words do not fit the method; the text is for the person who typed them."""


def parse_arguments(
    method: Method, words: Sequence[str], read_stdin: Callable[[], bytes] | None = None
) -> dict[str, Any]:
    """The arguments by IDL name, those that were given only.

    A word is the next argument in order, or `name=value` with the name of an argument. Where the only argument is a
    struct its fields may be given by name too. Text is taken as it is; numbers and true/false as such; structs,
    lists and maps are JSON, in place, as `@file` or as `-` for standard input; of all but text, null is null. Raises
    ArgumentError.
    """
    fields = {field.name: field for field in method.definition.arguments}
    request = _only_struct(method)
    given: dict[str, Any] = {}
    request_fields: dict[str, Any] = {}
    read = read_stdin or sys.stdin.buffer.read
    for word in words:
        name, separator, text = word.partition("=")
        if separator and name in fields:
            _set(given, fields[name], text, read)
        elif separator and request is not None and name in request:
            _set(request_fields, request[name], text, read)
        else:
            field = _next_field(method, given, word)
            if separator:
                _check_spelling(method, field, name, request)
            _set(given, field, word, read)
    if request_fields:
        _add_request_fields(method, given, request_fields)
    return given


def _only_struct(method: Method) -> dict[str, Field] | None:
    """The fields of the method's argument by name, when it has one and that is a struct."""
    arguments = method.definition.arguments
    if len(arguments) == 1 and isinstance(arguments[0].type, StructType):
        return {field.name: field for field in STRUCTS[arguments[0].type.name].definition.fields}
    return None


def _check_spelling(method: Method, field: Field, name: str, request: Mapping[str, Field] | None) -> None:
    """A word `name=value` that is the next argument by its place may be a name that is not spelled right."""
    known = [*(each.name for each in method.definition.arguments), *(request or ())]
    is_text_field = field.type is BaseType.STRING
    near = difflib.get_close_matches(name, known, n=1, cutoff=_SURELY_MEANT if is_text_field else 0.0)
    if (
        not _NAME.fullmatch(name)
        or (is_text_field and not near)
        or isinstance(field.type, ListType)
        or field.type is BaseType.BINARY
    ):
        return
    raise ArgumentError(f"{method.name} has no argument {name}{did_you_mean(name, known)}")


def _next_field(method: Method, given: dict[str, Any], word: str) -> Field:
    for field in method.definition.arguments:
        if field.name not in given:
            return field
    name = word.partition("=")[0]
    hint = did_you_mean(name, [field.name for field in method.definition.arguments]) if "=" in word else ""
    raise ArgumentError(f"{method.name} has no argument left for {word!r}{hint}")


def _set(given: dict[str, Any], field: Field, text: str, read_stdin: Callable[[], bytes]) -> None:
    if field.name in given:
        raise ArgumentError(f"{field.name} is given twice")
    try:
        given[field.name] = _value(field.type, text, field.name, read_stdin)
    except PlainValueError as error:
        raise ArgumentError(str(error)) from error


def _value(kind: Type, text: str, name: str, read_stdin: Callable[[], bytes]) -> Any:
    if kind is BaseType.STRING:
        return text
    if text == "null":
        return None
    if kind is BaseType.BOOL:
        return _bool(text, name)
    if isinstance(kind, EnumType):
        return from_plain(kind, int(text) if re.fullmatch(r"-?[0-9]+", text) else text, name)
    if kind in _NUMBERS:
        return from_plain(kind, _json(text, name), name)
    content = _content(text, name, read_stdin)
    if kind is BaseType.BINARY:
        return content if text == "-" or text.startswith("@") else from_plain(kind, text, name)
    if isinstance(kind, ListType) and kind.element is BaseType.STRING and not content.lstrip().startswith(b"["):
        return [_text(content, name)]
    return from_plain(kind, _json(content, name), name)


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{name}: the text is not UTF-8") from error


def _bool(text: str, name: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise ArgumentError(f"{name}: expected true or false, not {text!r}")
    return word in _TRUE


def _content(text: str, name: str, read_stdin: Callable[[], bytes]) -> bytes:
    """The value itself, or what the file or standard input it names holds."""
    if text == "-":
        return read_stdin()
    if not text.startswith("@"):
        return text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise ArgumentError(f"{name}: cannot read {text[1:]}: {error.strerror}") from error


def _json(content: str | bytes, name: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        shown = content if isinstance(content, str) else content.decode(errors="replace")
        raise ArgumentError(f"{name}: {shown[:80]!r} is not valid JSON: {error}") from error


def _add_request_fields(method: Method, given: dict[str, Any], request_fields: dict[str, Any]) -> None:
    argument = method.definition.arguments[0]
    if argument.name in given:
        raise ArgumentError(f"give {argument.name} as JSON or by its fields, not both")
    assert isinstance(argument.type, StructType)
    given[argument.name] = STRUCTS[argument.type.name](**request_fields)


def parse_object(text: str, database: str) -> Target:
    """`table`, `database.table`, `database.table/ds=1/hr=2`, or `database.*` for the database as a whole.

    `catalog.` may stand before a database. A table without one is in `database`. Names stay as they are spelled.
    """
    named, slash, partition = text.partition("/")
    *places, table_name = named.split(".")
    is_database = bool(places) and table_name == "*"
    is_whole = all((*places, table_name)) and len(places) <= _PLACES_MAX and bool(places or database)
    if not is_whole or (slash and (is_database or not partition)):
        fail(f"{text!r} is not an object", "write database.table, database.table/partition, or database.*")
    db_name = database if not places else places[0] if len(places) == 1 else marked(*places)
    if is_database:
        return Target(db_name)
    return Target(db_name, table_name, partition or None)
