"""Compiles IDL types into TJSON readers and writers over msgspec.

For each struct two things are made: a *mirror*, a class shaped like the struct's TJSON
(`{"1":{"str":"a"}}` is `Mirror(f1=Box(v="a"))`), which the JSON parser fills and the JSON writer reads in C, and a pair
of generated functions between mirror and struct. The generated source does no look-up by field or type at run time;
`Shape.source` shows it.
"""

import binascii
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Annotated, Any

import msgspec

from hms_gateway.rpc.idl import BaseType, EnumType, Field, ListType, MapType, Requiredness, SetType, StructType, Type
from hms_gateway.rpc.structs import STRUCTS, ThriftException
from hms_gateway.rpc.wire.tjson_scan import INTEGER_BITS, double_from_text, tag_of, text_of_special_double

# Marks the place in the written text where a list is to be streamed; JSON text never contains this byte.
STREAM_MARK = b"\0"
# Column lists repeat from partition to partition and from request to request: their text is the key to a template.
_REPEATED_STRUCT = "FieldSchema"
_REPEATED_BYTES_MAX = 16 * 1024
_REPEATED_LISTS_MAX = 256


# By struct's name the fields that are read; structs that are not named are read whole.
Fields = tuple[tuple[str, frozenset[str]], ...]


class Mismatch(Exception):
    """Text that the mirrors do not cover; the scanner reads it or says what is wrong."""


class Shape(msgspec.Struct, frozen=True):
    """How one type is read and written.

    `read` turns parsed TJSON into the value; it and `parse` raise anything when the text is not of the plain form.
    `write(value, streams)` gives what the JSON writer takes; lists that are to be streamed are appended to `streams`,
    in the order of their marks. `depth` is the deepest nesting of brackets `parse` accepts.
    """

    parse: Callable[[bytes], Any]
    read: Callable[[Any], Any]
    write: Callable[[Any, list[Any]], Any]
    depth: int
    source: str


def shape_of_struct(struct_class: Any) -> Shape:
    """The shape of a struct class, compiled when first asked for."""
    shape = _struct_shapes.get(struct_class)
    if shape is None:
        with _lock:
            shape = _struct_shapes.get(struct_class) or _compiler.struct(struct_class)
            _struct_shapes[struct_class] = shape
    return shape


def shape_of_type(type: Type) -> Shape:
    """The shape of a bare value of an IDL type, compiled when first asked for."""
    shape = _type_shapes.get(type)
    if shape is None:
        with _lock:
            shape = _type_shapes.get(type) or _compiler.bare(type)
            _type_shapes[type] = shape
    return shape


@lru_cache(64)
def narrow_shape(struct_class: Any, fields: Fields) -> Shape:
    """A shape for reading that skips other fields of the named structs and leaves them unset, whatever they are."""
    return _Compiler(dict(fields)).struct(struct_class)


class _Compiler:
    """Makes mirrors and functions; all generated functions share one namespace and call each other through it."""

    def __init__(self, kept: Mapping[str, frozenset[str]] | None = None) -> None:
        self._kept = kept or {}
        self._namespace: dict[str, Any] = {
            "Mismatch": Mismatch,
            "INTEGERS": {int},
            "BOOLEANS": {int, bool},
            "STRINGS": {str},
            "read_binary": _read_binary,
            "read_double": _read_double,
            "write_binary": _write_binary,
            "write_double": _write_double,
            "write_double_key": _write_double_key,
            "spliced": _spliced,
            "listed": _listed,
            "write_texts": _write_texts,
        }
        self._names: dict[Any, str] = {}
        self._mirrors: dict[Any, type[msgspec.Struct]] = {}
        self._boxes: dict[tuple[str, Any], str] = {}
        self._containers: dict[tuple[str, Type], str] = {}
        self._depths: dict[Any, int] = {}
        self._sources: dict[str, str] = {}

    def struct(self, struct_class: Any) -> Shape:
        name = self._struct(struct_class)
        read, write = self._namespace[f"read_{name}"], self._namespace[f"write_{name}"]
        parse = msgspec.json.Decoder(self._mirrors[struct_class]).decode
        source = self._sources[f"read_{name}"] + self._sources[f"write_{name}"]
        return Shape(parse, read, write, self._depths[struct_class], source)

    def bare(self, type: Type) -> Shape:
        name = f"value_{len(self._sources)}"
        source = f"def read_{name}(v):\n    return {self._read(type, 'v')}\n"
        source += f"def write_{name}(v, streams):\n    return {self._write(type, 'v')}\n"
        self._define(name, source)
        parse = msgspec.json.Decoder(self._annotation(type)).decode
        read, write = self._namespace[f"read_{name}"], self._namespace[f"write_{name}"]
        return Shape(parse, read, write, self._depth(type), source)

    # -- structs

    def _struct(self, struct_class: Any) -> str:
        """The name under which the class's functions are, or (in a cycle) will be, in the namespace."""
        if struct_class in self._names:
            return self._names[struct_class]
        definition = struct_class.definition
        name = self._names[struct_class] = f"{definition.name}_{len(self._names)}"
        kept = self._kept.get(definition.name)
        fields = sorted(
            (field for field in definition.fields if kept is None or field.name in kept), key=lambda field: field.id
        )
        for field in fields:
            for struct_name in _structs_in(field.type):
                self._struct(STRUCTS[struct_name])
        parsed = {field.name: field for field in fields if _is_parsed(definition.name, field.type)}
        boxes = {field.name: self._box(field.type, parsed=field.name in parsed) for field in fields}
        self._mirrors[struct_class] = self._mirror(name, fields, boxes, parsed, is_narrow=kept is not None)
        self._depths[struct_class] = 1 + max((1 + self._depth(field.type) for field in parsed.values()), default=0)
        self._namespace[f"Struct_{name}"] = struct_class
        self._define(f"read_{name}", self._struct_reader(name, struct_class, fields, parsed))
        self._define(f"write_{name}", self._struct_writer(name, fields, boxes))
        return name

    def _mirror(
        self, name: str, fields: list[Field], boxes: dict[str, str], parsed: Iterable[str], *, is_narrow: bool
    ) -> Any:
        mirror = msgspec.defstruct(
            f"Mirror_{name}",
            [
                (_attribute(field), self._namespace[boxes[field.name]] | None if field.name in parsed else None, None)
                for field in fields
            ],
            rename={_attribute(field): str(field.id) for field in fields},
            omit_defaults=True,
            forbid_unknown_fields=not is_narrow,
            gc=False,
        )
        self._namespace[f"Mirror_{name}"] = mirror
        return mirror

    def _box(self, type: Type, *, parsed: bool) -> str:
        """The class of `{"<tag>":<value>}`. A type of field that is left to the scanner has a box for writing only."""
        annotation = self._boxed_annotation(type) if parsed else None
        key = (tag_of(type), annotation)
        if key not in self._boxes:
            name = self._boxes[key] = f"Box_{len(self._boxes)}"
            self._namespace[name] = msgspec.defstruct(
                name,
                [("v", annotation, None)],
                rename={"v": tag_of(type)},
                omit_defaults=True,
                forbid_unknown_fields=True,
                gc=False,
            )
        return self._boxes[key]

    def _boxed_annotation(self, type: Type) -> Any:
        if _is_repeated(type):
            return msgspec.Raw
        return self._annotation(type) | None

    def _struct_reader(self, name: str, struct_class: Any, fields: list[Field], parsed: dict[str, Field]) -> str:
        keyword = issubclass(struct_class, ThriftException)
        values = [
            f"{f'{field.name}=' if keyword else ''}{self._read_field(field) if field.name in parsed else 'None'}"
            for field in struct_class.definition.fields
        ]
        required = [field for field in fields if field.requiredness is Requiredness.REQUIRED]
        source = f"def read_{name}(t):\n    s = Struct_{name}({', '.join(values)})\n"
        if not values:
            source += f"    if t.__class__ is not Mirror_{name}: raise Mismatch\n"
        if required:
            unset = " or ".join(f"s.{field.name} is None" for field in required)
            source += f"    if {unset}: raise Mismatch\n"
        return source + "    return s\n"

    def _read_field(self, field: Field) -> str:
        box = f"(b := t.{_attribute(field)})"
        value = self._read_columns() if _is_repeated(field.type) else self._read(field.type, "v")
        if value == "v":
            return f"None if {box} is None else b.v"
        return f"None if {box} is None or (v := b.v) is None else {value}"

    def _struct_writer(self, name: str, fields: list[Field], boxes: dict[str, str]) -> str:
        values = [
            f"None if (v := s.{field.name}) is None else {boxes[field.name]}({self._write_field(field)})"
            for field in fields
        ]
        return (
            f"def write_{name}(s, streams):\n"
            f"    if s.__class__ is not Struct_{name} and not isinstance(s, Struct_{name}): return spliced(s)\n"
            f"    return Mirror_{name}({', '.join(values)})\n"
        )

    def _read_columns(self) -> str:
        """Reading of a list that is likely to have been read before, by its text."""
        struct_class: Any = STRUCTS[_REPEATED_STRUCT]
        if "read_columns" not in self._namespace:
            type = ListType(StructType(_REPEATED_STRUCT))
            parse = msgspec.json.Decoder(self._annotation(type)).decode
            read = self._namespace[self._container_reader(type)]
            self._namespace["read_columns"] = _repeated(lambda text: read(parse(text)), struct_class.__copy__)
        return "read_columns(v)"

    # -- values

    def _annotation(self, type: Type) -> Any:
        """What msgspec has to accept for a value of `type`; it also checks the ranges of integers."""
        match type:
            case StructType(name):
                self._struct(STRUCTS[name])
                return self._mirrors[STRUCTS[name]]
            case ListType(element) | SetType(element):
                return list[str | int | self._annotation(element)]  # type: ignore[misc]
            case MapType(key, value):
                if isinstance(key, ListType | SetType | MapType | StructType):
                    return list[str | int | dict[str, None]]
                return list[str | int | dict[self._annotation(key), self._annotation(value)]]  # type: ignore[misc]
            case EnumType():
                return _integer_annotation(32)
            case BaseType.BOOL:
                return int | bool
            case BaseType.DOUBLE:
                return float | str
            case BaseType.STRING | BaseType.BINARY:
                return str
            case _:
                return _integer_annotation(INTEGER_BITS[type])

    def _read(self, type: Type, value: str) -> str:
        match type:
            case StructType(name):
                return f"read_{self._struct(STRUCTS[name])}({value})"
            case ListType() | SetType() | MapType():
                return f"{self._container_reader(type)}({value})"
            case BaseType.BOOL:
                return f"({value} != 0)"
            case BaseType.DOUBLE:
                return f"read_double({value})"
            case BaseType.BINARY:
                return f"read_binary({value})"
            case _:
                return value

    def _write_field(self, field: Field) -> str:
        # Only results have a field 0.
        if field.id == 0 and field.type == ListType(BaseType.STRING):
            return "write_texts(v, streams)"
        return self._write(field.type, "v")

    def _write(self, type: Type, value: str) -> str:
        match type:
            case StructType(name):
                return f"write_{self._struct(STRUCTS[name])}({value}, streams)"
            case ListType(StructType()):
                return f"{self._struct_list_writer(type)}({value}, streams)"
            case ListType(element) | SetType(element):
                return f'["{tag_of(element)}", len({value}), *{self._write_each(element, value)}]'
            case MapType(key, item):
                return self._write_map(key, item, value)
            case BaseType.BOOL:
                return f"(1 if {value} else 0)"
            case BaseType.DOUBLE:
                return f"write_double({value})"
            case BaseType.BINARY:
                return f"write_binary({value})"
            case _:
                return value

    def _write_each(self, element: Type, values: str) -> str:
        inner = f"{values}_"
        written = self._write(element, inner)
        return values if written == inner else f"[{written} for {inner} in {values}]"

    def _write_map(self, key: Type, item: Type, value: str) -> str:
        head = f'"{tag_of(key)}", "{tag_of(item)}"'
        if isinstance(key, ListType | SetType | MapType | StructType):
            # Apache's form of such a map is not JSON: most clients choke on it, all take an empty one (clients A.5).
            return f"[{head}, 0, {{}}]"
        inner_key, inner = f"{value}k", f"{value}_"
        written_key = {BaseType.BOOL: f'"1" if {inner_key} else "0"', BaseType.DOUBLE: f"write_double_key({inner_key})"}
        key_text = written_key.get(key, inner_key) if isinstance(key, BaseType) else inner_key
        written = self._write(item, inner)
        if (key_text, written) == (inner_key, inner):
            return f"[{head}, len({value}), {value}]"
        return f"[{head}, len({value}), {{{key_text}: {written} for {inner_key}, {inner} in {value}.items()}}]"

    def _struct_list_writer(self, type: ListType) -> str:
        key = ("write", type)
        if key not in self._containers:
            name = self._containers[key] = f"write_list_{len(self._containers)}"
            source = (
                f"def {name}(v, streams):\n"
                f"    if v.__class__ is not list: v = listed(v, streams)\n"
                f"    if v.__class__ is not list: return v.head\n"
                f'    return ["rec", len(v), *[{self._write(type.element, "x")} for x in v]]\n'
            )
            self._define(name, source)
        return self._containers[key]

    def _container_reader(self, type: ListType | SetType | MapType) -> str:
        key = ("read", type)
        if key not in self._containers:
            name = self._containers[key] = f"read_container_{len(self._containers)}"
            body = self._map_body(type) if isinstance(type, MapType) else self._list_body(type)
            self._define(name, f"def {name}(v):\n    {body}\n")
        return self._containers[key]

    def _list_body(self, type: ListType | SetType) -> str:
        element = type.element
        lines = [
            f'if len(v) < 2 or v[0] != "{tag_of(element)}" or v[1] != len(v) - 2: raise Mismatch',
            "del v[:2]",
            *_element_check(element),
        ]
        read = self._read(element, "x")
        values = "v" if read == "x" else f"[{read} for x in v]"
        if isinstance(type, SetType):
            if not isinstance(element, BaseType | EnumType):
                lines.append("if v: raise Mismatch")
            values = f"set({values})"
        return "\n    ".join([*lines, f"return {values}"])

    def _map_body(self, type: MapType) -> str:
        head = f'v[0] != "{tag_of(type.key)}" or v[1] != "{tag_of(type.value)}"'
        if isinstance(type.key, ListType | SetType | MapType | StructType):
            return f"if len(v) != 4 or {head} or v[2] != 0 or v[3] != {{}}: raise Mismatch\n    return {{}}"
        lines = [
            f"if len(v) != 4 or {head}: raise Mismatch",
            "m = v[3]",
            "if m.__class__ is not dict or v[2] != len(m): raise Mismatch",
        ]
        read = self._read(type.value, "x")
        key = self._read(type.key, "k")
        lines.append("return m" if (key, read) == ("k", "x") else f"return {{{key}: {read} for k, x in m.items()}}")
        return "\n    ".join(lines)

    def _depth(self, type: Type) -> int:
        match type:
            case StructType(name):
                self._struct(STRUCTS[name])
                return self._depths[STRUCTS[name]]
            case ListType(element) | SetType(element):
                return 1 + self._depth(element)
            case MapType(_, value):
                return 2 + self._depth(value)
            case _:
                return 0

    def _define(self, name: str, source: str) -> None:
        self._sources[name] = source
        exec(compile(source, f"<tjson {name}>", "exec"), self._namespace)


def _is_parsed(struct_name: str, type: Type) -> bool:
    """Whether the fast path reads a field: not where a struct may contain itself, so its depth is known beforehand."""
    return not any(struct_name == name or struct_name in _reachable(name) for name in _structs_in(type))


@cache
def _reachable(struct_name: str) -> frozenset[str]:
    """The structs that may be inside a struct, at any depth."""
    found: set[str] = set()
    waiting = [struct_name]
    while waiting:
        for field in STRUCTS[waiting.pop()].definition.fields:
            new = set(_structs_in(field.type)) - found
            found |= new
            waiting += new
    return frozenset(found)


def _structs_in(type: Type) -> list[str]:
    match type:
        case StructType(name):
            return [name]
        case ListType(element) | SetType(element):
            return _structs_in(element)
        case MapType(key, value):
            return _structs_in(key) + _structs_in(value)
        case _:
            return []


def _is_repeated(type: Type) -> bool:
    return type == ListType(StructType(_REPEATED_STRUCT))


def _repeated(read: Callable[[bytes], list[Any]], copy: Callable[[Any], Any]) -> Callable[[msgspec.Raw], list[Any]]:
    """`read` with a memory. The structs it gives are copies, so the callers may change them."""
    remembered = lru_cache(_REPEATED_LISTS_MAX)(read)

    def read_repeated(raw: msgspec.Raw) -> list[Any]:
        text = bytes(raw)
        if len(text) > _REPEATED_BYTES_MAX:
            return read(text)
        return list(map(copy, remembered(text)))

    return read_repeated


def _element_check(element: Type) -> list[str]:
    """Elements follow the tag and the count, so msgspec lets strings and integers pass among them."""
    if isinstance(element, StructType):
        return []  # a string has no fields: its reader raises
    allowed = {
        BaseType.STRING: "STRINGS",
        BaseType.BINARY: "STRINGS",
        BaseType.BOOL: "BOOLEANS",
        BaseType.DOUBLE: None,
    }
    if isinstance(element, BaseType | EnumType):
        name = allowed.get(element, "INTEGERS") if isinstance(element, BaseType) else "INTEGERS"
        return [f"if not set(map(type, v)) <= {name}: raise Mismatch"] if name else []
    return ["if not set(map(type, v)) <= {list}: raise Mismatch"]


def _integer_annotation(bits: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=-(1 << bits - 1), le=(1 << bits - 1) - 1)]


def _attribute(field: Field) -> str:
    return f"f{field.id}" if field.id >= 0 else f"negative{-field.id}"


def _read_binary(text: str) -> bytes:
    return binascii.a2b_base64(text, strict_mode=True)


def _read_double(value: float | str) -> float:
    if value.__class__ is float:
        return value
    number = double_from_text(str(value))
    if number is None:
        raise Mismatch
    return number


def _write_binary(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


def _write_double(value: float) -> float | str:
    # Not a number and the infinities are the values whose difference with themselves is not zero.
    return value if value - value == 0 else text_of_special_double(value)


def _write_double_key(value: float) -> str:
    return str(_write_double(value))


def _spliced(value: Any) -> msgspec.Raw:
    """An `Encoded` in place of a struct."""
    try:
        text = value.tjson()
    except AttributeError:
        raise TypeError(f"{type(value).__name__} cannot be encoded as a struct") from None
    return msgspec.Raw(text)


class _Streamed:
    """The written form of an `EncodedList`: its head and the mark where its elements go."""

    def __init__(self, count: int, tag: str = "rec") -> None:
        self.head = [tag, count, msgspec.Raw(STREAM_MARK)] if count else [tag, 0]


def _listed(value: Any, streams: list[Any]) -> list[Any] | _Streamed:
    """Anything but a list in place of a list of structs."""
    if not hasattr(value, "tjson_chunks"):
        return list(value)
    return _streamed(value, streams, "rec")


def _write_texts(value: Any, streams: list[Any]) -> list[Any]:
    """A list of strings, or `EncodedTexts` in place of one."""
    return _streamed(value, streams, "str").head if hasattr(value, "tjson_chunks") else ["str", len(value), *value]


def _streamed(value: Any, streams: list[Any], tag: str) -> _Streamed:
    count = len(value)
    if count:
        streams.append(value)
    else:
        value.close()
    return _Streamed(count, tag)


_lock = threading.RLock()
_compiler = _Compiler()
_struct_shapes: dict[Any, Shape] = {}
_type_shapes: dict[Type, Shape] = {}
