"""Parses Thrift IDL text into the model: the parts of the language that metastore documents use."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.idl.model import (
    BaseType,
    ConstantDef,
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

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))
    | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
    | (?P<sign>[{}()<>\[\],;:=*])
    """,
    re.VERBOSE | re.DOTALL,
)

_BASE_TYPES = {member.value: member for member in BaseType} | {"byte": BaseType.I8}
_STRUCT_KINDS = {member.value: member for member in StructKind}


class IdlError(ValueError):
    """The document is not IDL this parser knows; the text names the file and line."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


def parse_file(path: Path) -> Idl:
    """Parse `path` and what it includes (looked up beside it) into one model.

    A name of an included document may be written with or without its prefix (`fb303.FacebookService`).
    Raises IdlError for what is not understood and for names nobody declares.
    """
    structs: dict[str, StructDef] = {}
    enums: dict[str, EnumDef] = {}
    constants: dict[str, ConstantDef] = {}
    services: dict[str, ServiceDef] = {}
    typedefs: dict[str, Type] = {}

    def read(document: Path) -> None:
        _Parser(document, structs, enums, constants, services, typedefs, include=read).parse()

    read(path)
    return Idl(structs=structs, enums=enums, constants=constants, services=services)


class _Parser:
    def __init__(
        self,
        path: Path,
        structs: dict[str, StructDef],
        enums: dict[str, EnumDef],
        constants: dict[str, ConstantDef],
        services: dict[str, ServiceDef],
        typedefs: dict[str, Type],
        include: Callable[[Path], None],
    ) -> None:
        self._path = path
        self._structs = structs
        self._enums = enums
        self._constants = constants
        self._services = services
        self._typedefs = typedefs
        self._include = include
        text = path.read_text("utf-8")
        self._tokens = _tokenize(text, path)
        self._position = 0
        # A field may name a struct that is declared further down.
        self._declared = set(re.findall(r"\b(?:struct|union|exception)\s+(\w+)\s*\{", text))
        self._declared_enums = set(re.findall(r"\benum\s+(\w+)\s*\{", text))

    def parse(self) -> None:
        while (token := self._next()).kind != "end":
            match token.text:
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
                    self._struct(_STRUCT_KINDS[token.text])
                case "service":
                    self._service()
                case "," | ";":
                    pass
                case _:
                    raise self._unexpected(token, "a definition")

    def _constant(self) -> None:
        kind, name = self._type(), self._word()
        self._expect("=")
        self._constants[name] = ConstantDef(name, kind, self._value())

    def _enum(self) -> None:
        name = self._word()
        members: dict[str, int] = {}
        following = 0
        self._expect("{")
        while not self._accept("}"):
            member = self._word()
            if self._accept("="):
                following = int(self._next().text, 0)
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
        number = int(self._next().text)
        self._expect(":")
        requiredness = Requiredness.DEFAULT
        for word in (Requiredness.REQUIRED, Requiredness.OPTIONAL):
            if self._accept(word.value):
                requiredness = word
        kind, name = self._type(), self._word()
        default = self._value() if self._accept("=") else None
        return Field(number, name, kind, requiredness, default)

    def _type(self) -> Type:
        token = self._next()
        if token.text in ("list", "set", "map"):
            self._expect("<")
            first = self._type()
            second = self._type() if token.text == "map" and self._accept(",") else None
            self._expect(">")
            if second is not None:
                return MapType(first, second)
            return ListType(first) if token.text == "list" else SetType(first)
        if token.kind != "word":
            raise self._unexpected(token, "a type")
        name = self._local(token.text)
        if name in _BASE_TYPES:
            return _BASE_TYPES[name]
        if name in self._typedefs:
            return self._typedefs[name]
        if name in self._enums or name in self._declared_enums:
            return EnumType(name)
        if name in self._structs or name in self._declared:
            return StructType(name)
        raise self._unexpected(token, "a declared type")

    def _value(self) -> object:
        token = self._next()
        if token.kind == "string":
            return _unquote(token.text)
        if token.kind == "number":
            return (
                int(token.text, 0) if re.fullmatch(r"[+-]?(0x[0-9a-f]+|\d+)", token.text, re.I) else float(token.text)
            )
        if token.text in ("true", "false"):
            return token.text == "true"
        if token.text == "[":
            items = []
            while not self._accept("]"):
                items.append(self._value())
                self._separator()
            return items
        if token.text == "{":
            pairs: dict[object, object] = {}
            while not self._accept("}"):
                key = self._value()
                self._expect(":")
                pairs[key] = self._value()
                self._separator()
            return pairs
        enum, _, member = token.text.rpartition(".")
        if (definition := self._enums.get(self._local(enum))) and member in definition.members:
            return definition.members[member]
        raise self._unexpected(token, "a value")

    def _local(self, name: str) -> str:
        return name.rpartition(".")[2]

    def _separator(self) -> None:
        if not self._accept(","):
            self._accept(";")

    def _accept(self, text: str) -> bool:
        if self._tokens[self._position].text != text or self._tokens[self._position].kind == "string":
            return False
        self._position += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(self._tokens[self._position], f"`{text}`")

    def _word(self) -> str:
        token = self._next()
        if token.kind != "word":
            raise self._unexpected(token, "a name")
        return token.text

    def _string(self) -> str:
        token = self._next()
        if token.kind != "string":
            raise self._unexpected(token, "a quoted name")
        return _unquote(token.text)

    def _next(self) -> _Token:
        token = self._tokens[self._position]
        if token.kind != "end":
            self._position += 1
        return token

    def _unexpected(self, token: _Token, wanted: str) -> IdlError:
        return IdlError(f"{self._path.name}:{token.line}: expected {wanted}, found `{token.text or 'the end'}`")


def _tokenize(text: str, path: Path) -> list[_Token]:
    tokens, position, line = [], 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise IdlError(f"{path.name}:{line}: unreadable character `{text[position]}`")
        if match.lastgroup != "space":
            tokens.append(_Token(match.lastgroup or "", match.group(), line))
        line += match.group().count("\n")
        position = match.end()
    tokens.append(_Token("end", "", line))
    return tokens


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
