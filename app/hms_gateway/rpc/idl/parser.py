"""Parses Thrift IDL text into the model: the parts of the language that metastore documents use."""

import re
from collections.abc import Callable
from pathlib import Path

from hms_gateway.rpc.idl.model import (
    BaseType,
    EnumDef,
    EnumType,
    Field,
    Idl,
    ListType,
    MapType,
    MethodDef,
    Requiredness,
    ServiceDef,
    SetType,
    StructDef,
    StructKind,
    StructType,
    Type,
)

# What is between tokens is part of the token after it. The last one is empty: the end.
_TOKEN = re.compile(
    r"""
    (?: \s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/ )*
    (   "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*'
      | [+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | [A-Za-z_][A-Za-z0-9_.]*
      | [{}()<>\[\],;:=*]
      | . | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z_]")
_NUMBER = re.compile(r"[+-]?\d")
_WHOLE_NUMBER = re.compile(r"[+-]?(0x[0-9a-f]+|\d+)", re.IGNORECASE)

_BASE_TYPES = {member.value: member for member in BaseType} | {"byte": BaseType.I8}
_REQUIREDNESS = {member.value: member for member in (Requiredness.REQUIRED, Requiredness.OPTIONAL)}
_STRUCT_KINDS = {member.value: member for member in StructKind}


class IdlError(ValueError):
    """The document is not IDL this parser knows; the text names the file and line."""


def parse_file(path: Path) -> Idl:
    """Parse `path` and what it includes (looked up beside it) into one model.

    A name of an included document may be written with or without its prefix (`fb303.FacebookService`).
    Raises IdlError for what is not understood and for undeclared names.
    """
    structs: dict[str, StructDef] = {}
    enums: dict[str, EnumDef] = {}
    services: dict[str, ServiceDef] = {}
    typedefs: dict[str, Type] = {}

    def read(document: Path) -> None:
        _Parser(document, structs, enums, services, typedefs, include=read).parse()

    read(path)
    return Idl(structs=structs, enums=enums, services=services)


class _Parser:
    def __init__(
        self,
        path: Path,
        structs: dict[str, StructDef],
        enums: dict[str, EnumDef],
        services: dict[str, ServiceDef],
        typedefs: dict[str, Type],
        include: Callable[[Path], None],
    ) -> None:
        self._path = path
        self._structs = structs
        self._enums = enums
        self._services = services
        self._typedefs = typedefs
        self._include = include
        text = path.read_text("utf-8")
        self._text = text
        self._tokens: list[str] = _TOKEN.findall(text)
        self._position = 0
        self._read = 0
        # A field may name a struct that is declared further down.
        self._declared = set(re.findall(r"\b(?:struct|union|exception)\s+(\w+)\s*\{", text))
        self._declared_enums = set(re.findall(r"\benum\s+(\w+)\s*\{", text))

    def parse(self) -> None:
        while word := self._next():
            match word:
                case "include":
                    self._include(self._path.parent / self._string())
                case "namespace":
                    self._next()
                    self._next()
                case "const":
                    self._constant()
                case "typedef":
                    target = self._type()
                    self._typedefs[self._word()] = target
                case "enum":
                    self._enum()
                case "struct" | "union" | "exception":
                    self._struct(_STRUCT_KINDS[word])
                case "service":
                    self._service()
                case "," | ";":
                    pass
                case _:
                    raise self._unexpected("a definition")

    def _constant(self) -> None:
        """Read over it: what a constant names, no method says."""
        self._type()
        self._word()
        self._expect("=")
        self._value()

    def _enum(self) -> None:
        name = self._word()
        members: dict[str, int] = {}
        following = 0
        self._expect("{")
        while not self._accept("}"):
            member = self._word()
            if self._accept("="):
                following = self._whole_number()
            members[member] = following
            following += 1
            self._separator()
        self._enums[name] = EnumDef(name, members)

    def _struct(self, kind: StructKind) -> None:
        name = self._word()
        self._expect("{")
        self._structs[name] = StructDef(name, kind, self._fields("}"))

    def _service(self) -> None:
        name = self._word()
        extends = self._local(self._word()) if self._accept("extends") else None
        methods = []
        self._expect("{")
        while not self._accept("}"):
            methods.append(self._method())
            self._separator()
        self._services[name] = ServiceDef(name, extends, tuple(methods))

    def _method(self) -> MethodDef:
        oneway = self._accept("oneway")
        returns = None if self._accept("void") else self._type()
        name = self._word()
        self._expect("(")
        arguments = self._fields(")")
        throws: tuple[Field, ...] = ()
        if self._accept("throws"):
            self._expect("(")
            throws = self._fields(")")
        return MethodDef(name, returns, arguments, throws, oneway)

    def _fields(self, closing: str) -> tuple[Field, ...]:
        fields = []
        while not self._accept(closing):
            fields.append(self._field())
            self._separator()
        return tuple(fields)

    def _field(self) -> Field:
        number = self._whole_number()
        self._expect(":")
        requiredness = _REQUIREDNESS.get(self._tokens[self._position], Requiredness.DEFAULT)
        if requiredness is not Requiredness.DEFAULT:
            self._next()
        kind, name = self._type(), self._word()
        default = self._value() if self._accept("=") else None
        return Field(number, name, kind, requiredness, default)

    def _type(self) -> Type:
        word = self._word("a type")
        if word in ("list", "set", "map"):
            self._expect("<")
            first = self._type()
            second = self._type() if word == "map" and self._accept(",") else None
            self._expect(">")
            if second is not None:
                return MapType(first, second)
            return ListType(first) if word == "list" else SetType(first)
        name = self._local(word)
        if name in _BASE_TYPES:
            return _BASE_TYPES[name]
        if name in self._typedefs:
            return self._typedefs[name]
        if name in self._enums or name in self._declared_enums:
            return EnumType(name)
        if name in self._structs or name in self._declared:
            return StructType(name)
        raise self._unexpected("a declared type")

    def _value(self) -> object:
        token = self._next()
        if _is_quoted(token):
            return _unquote(token)
        if _NUMBER.match(token):
            return int(token, 0) if _WHOLE_NUMBER.fullmatch(token) else float(token)
        if token in ("true", "false"):
            return token == "true"
        if token == "[":
            items = []
            while not self._accept("]"):
                items.append(self._value())
                self._separator()
            return items
        if token == "{":
            pairs: dict[object, object] = {}
            while not self._accept("}"):
                key = self._value()
                self._expect(":")
                pairs[key] = self._value()
                self._separator()
            return pairs
        enum, _, member = token.rpartition(".")
        if (definition := self._enums.get(self._local(enum))) and member in definition.members:
            return definition.members[member]
        raise self._unexpected("a value")

    def _local(self, name: str) -> str:
        return name.rpartition(".")[2]

    def _separator(self) -> None:
        if not self._accept(","):
            self._accept(";")

    def _accept(self, text: str) -> bool:
        if self._tokens[self._position] != text:
            return False
        self._position += 1
        return True

    def _expect(self, text: str) -> None:
        if self._next() != text:
            raise self._unexpected(f"`{text}`")

    def _word(self, wanted: str = "a name") -> str:
        token = self._next()
        if not _WORD.match(token):
            raise self._unexpected(wanted)
        return token

    def _whole_number(self) -> int:
        token = self._next()
        if not _WHOLE_NUMBER.fullmatch(token):
            raise self._unexpected("a whole number")
        return int(token, 0)

    def _string(self) -> str:
        token = self._next()
        if not _is_quoted(token):
            raise self._unexpected("a quoted name")
        return _unquote(token)

    def _next(self) -> str:
        """The next token, empty at the end, which stays the next one."""
        self._read = self._position
        token = self._tokens[self._position]
        if token:
            self._position += 1
        return token

    def _unexpected(self, wanted: str) -> IdlError:
        """About the token that was read last."""
        for index, match in enumerate(_TOKEN.finditer(self._text)):
            if index == self._read:
                line = self._text.count("\n", 0, match.start(1)) + 1
                found = match.group(1) or "the end"
                return IdlError(f"{self._path.name}:{line}: expected {wanted}, found `{found}`")
        raise AssertionError("every token was found once")


def _is_quoted(token: str) -> bool:
    return len(token) > 1 and token[0] in "\"'"


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


_PACKAGE = Path(__file__).resolve().parents[2]


def schema_file(name: str) -> Path:
    """The path of a file of `schema/`. Raises FileNotFoundError."""
    for folder in (_PACKAGE, _PACKAGE.parents[1]):
        path = folder / "schema" / name
        if path.exists():
            return path
    raise FileNotFoundError(f"schema/{name} is missing; install hms-gateway again")
