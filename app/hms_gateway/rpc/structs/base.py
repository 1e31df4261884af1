"""Classes of structs: their base, and making them from the IDL."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeAlias, cast, runtime_checkable

import msgspec
from thrift.Thrift import TType

from hms_gateway.rpc.idl import (
    BaseType,
    EnumDef,
    EnumType,
    Field,
    Idl,
    ListType,
    MapType,
    MethodDef,
    SetType,
    StructDef,
    StructKind,
    StructType,
    Type,
)

# What every class made from the IDL has in common.


class Struct(msgspec.Struct, gc=False):
    """Base of the classes made from the IDL's structs and unions.

    An unset field is None: a default the IDL declares is for the reader of the field to apply, because "unset" and
    "set to the default" differ on the wire. Instances hold no reference cycles and stay out of the garbage
    collector's sight, whose walks would otherwise cost as much as decoding them (design D4).
    """

    definition: ClassVar[StructDef]
    thrift_spec: ClassVar[tuple[Any, ...]] = ()


class ThriftException(Exception):
    """Base of the classes made from the IDL's exceptions; the fields are attributes, None when unset."""

    definition: ClassVar[StructDef]
    thrift_spec: ClassVar[tuple[Any, ...]] = ()
    message: str | None = None

    def __init__(self, message: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        for field in self.definition.fields:
            setattr(self, field.name, fields.pop(field.name, None))
        if fields:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(fields)}")
        if message is not None:
            self.message = message

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = Exception.__hash__

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.definition.fields)
        return f"{type(self).__name__}({fields})"

    def __str__(self) -> str:
        """Java's `toString`: Hive quotes inner exceptions this way (semantics §0.1)."""
        return f"{type(self).__name__}(message:{self.message})"


# Values of a reply that are already encoded, so that sending them costs a copy (design D5).


@runtime_checkable
class Encoded(Protocol):
    """Takes the place of a struct in a reply; the codec splices it or asks for the struct."""

    def tjson(self) -> bytes:
        """The struct as compact TJSON, `{"1":{"str":...},...}`."""

    def struct(self) -> Struct:
        """The same as an object, for the protocols that are not TJSON."""


@runtime_checkable
class EncodedList(Protocol):
    """Takes the place of a list of structs in a reply and is read while the reply is sent.

    It is iterated once, by one of the two methods, and closed by the code that iterates it or decides not to.
    Iterating may wait for the database, so it runs outside the event loop.
    """

    def __len__(self) -> int:
        """The exact number of elements; a list header is sent before the first element is read."""

    def tjson_chunks(self) -> Iterator[bytes]:
        """The elements as compact TJSON joined by commas, some hundred in each chunk, none of them empty."""

    def struct_chunks(self) -> Iterator[list[Struct]]:
        """The same as objects."""

    def close(self) -> None:
        """Give back what reading needs (a connection, a snapshot). Harmless when called again."""


@runtime_checkable
class EncodedTexts(Protocol):
    """Takes the place of a reply that is a list of strings, and is read while it is sent: an EncodedList of names."""

    def __len__(self) -> int:
        """The exact number of texts."""

    def tjson_chunks(self) -> Iterator[bytes]:
        """The texts as JSON strings joined by commas, none of the chunks empty."""

    def text_chunks(self) -> Iterator[list[str]]:
        """The same as they are."""

    def close(self) -> None:
        """Give back what reading needs. Harmless when called again."""


def items_of(found: Iterable[Any] | EncodedList | EncodedTexts | None) -> list[Any]:
    """All of a list of structs or texts at once, also of one that would be read while it is sent."""
    if not isinstance(found, EncodedList | EncodedTexts):
        return list(found or ())
    chunks = found.struct_chunks() if isinstance(found, EncodedList) else found.text_chunks()
    try:
        return [one for chunk in chunks for one in chunk]
    finally:
        found.close()


# Builds the struct, exception, enum and method classes out of an IDL model.


StructClass: TypeAlias = type[Struct] | type[ThriftException]

_SPEC_TYPES = {
    BaseType.BOOL: TType.BOOL,
    BaseType.I8: TType.BYTE,
    BaseType.I16: TType.I16,
    BaseType.I32: TType.I32,
    BaseType.I64: TType.I64,
    BaseType.DOUBLE: TType.DOUBLE,
    BaseType.STRING: TType.STRING,
    BaseType.BINARY: TType.STRING,
}
_TEXTS = {BaseType.STRING: "UTF8", BaseType.BINARY: "BINARY"}


class Method:
    """One service method with the structs that carry its arguments and its result. Equal to nothing but itself.

    `result` has field 0 `success` unless the method is void, and one field for each declared exception. Both classes
    are made when they are first wanted: of three hundred methods a server is asked for a few dozen.
    """

    def __init__(self, service: str, definition: MethodDef, specs: "Specs") -> None:
        self.name = definition.name
        self.service = service
        self.definition = definition
        self._specs = specs

    @property
    def oneway(self) -> bool:
        return self.definition.oneway

    @cached_property
    def arguments(self) -> type[Struct]:
        return self._build(f"{self.name}_args", self.definition.arguments)

    @cached_property
    def result(self) -> type[Struct]:
        returns = self.definition.returns
        success = () if returns is None else (Field(0, "success", returns),)
        return self._build(f"{self.name}_result", success + self.definition.throws)

    def _build(self, name: str, fields: tuple[Field, ...]) -> type[Struct]:
        built = _build_struct(StructDef(name, StructKind.STRUCT, fields))
        built.thrift_spec = self._specs.of(built.definition)
        return built


def build_enums(idl: Idl) -> dict[str, type[IntEnum]]:
    """One IntEnum for each enum. Struct fields hold plain ints, so unknown members survive a round trip."""
    return {name: _build_enum(enum) for name, enum in idl.enums.items()}


def _build_enum(definition: EnumDef) -> type[IntEnum]:
    make: Any = IntEnum  # the functional form, which type checkers only follow for literal names
    return cast("type[IntEnum]", make(definition.name, dict(definition.members), module="hms_gateway.rpc.structs"))


def build_structs(idl: Idl) -> dict[str, StructClass]:
    """One class for each struct, union and exception, `definition` and `thrift_spec` filled in."""
    classes = {name: _build_class(definition) for name, definition in idl.structs.items()}
    specs = Specs(classes)
    for name, built in classes.items():
        built.thrift_spec = specs.references[name][1] = specs.of(built.definition)
    return classes


def build_methods(idl: Idl, service: str, classes: Mapping[str, StructClass]) -> dict[str, Method]:
    """The methods of `service`, inherited ones included, by name."""
    specs = Specs(classes, filled=True)
    return {method.name: Method(service, method, specs) for method in idl.methods(service)}


def build_method(method: MethodDef, service: str, classes: Mapping[str, StructClass]) -> Method:
    """One method by itself."""
    return Method(service, method, Specs(classes, filled=True))


def specs_with_bytes(classes: Mapping[str, StructClass], names: Container[str]) -> Callable[[StructDef], Any]:
    """Field descriptions of any struct under which texts in fields of these names, at any depth, arrive as bytes."""
    specs = Specs(classes, bytes_fields=names)
    for name, built in classes.items():
        specs.references[name][1] = specs.of(built.definition)
    return specs.of


def specs_of_structs_alone(classes: Mapping[str, StructClass], instead: type) -> Callable[[StructDef], Any]:
    """Field descriptions of any struct under which every struct inside of it arrives as an instance of one class.

    Fields without structs are left out, so that the codec skips them.
    """
    specs = Specs(dict.fromkeys(classes, instead), filled=False)

    def of(definition: StructDef) -> Any:
        fields = tuple(field for field in definition.fields if _has_structs(field.type))
        return specs.of(msgspec.structs.replace(definition, fields=fields))

    for name, built in classes.items():
        specs.references[name][1] = of(built.definition)
    return of


def _has_structs(kind: Type) -> bool:
    match kind:
        case StructType():
            return True
        case ListType(element) | SetType(element):
            return _has_structs(element)
        case MapType(key, value):
            return _has_structs(key) or _has_structs(value)
        case _:
            return False


def _build_class(definition: StructDef) -> StructClass:
    if definition.kind is StructKind.EXCEPTION:
        namespace = {"definition": definition, "__module__": "hms_gateway.rpc.structs"}
        return type(definition.name, (ThriftException,), namespace)
    return _build_struct(definition)


def _build_struct(definition: StructDef) -> type[Struct]:
    fields = [(field.name, Any, None) for field in definition.fields]
    namespace = {"definition": definition}
    built = msgspec.defstruct(
        definition.name, fields, bases=(Struct,), namespace=namespace, module="hms_gateway.rpc.structs", gc=False
    )
    return cast("type[Struct]", built)


class Specs:
    """Field descriptions in the form Apache thrift's C codec reads.

    A struct type is the pair `[class, spec]`, one shared list for each class, because definitions may refer to each
    other before all of them are described.
    """

    def __init__(self, classes: Mapping[str, Any], *, filled: bool = False, bytes_fields: Container[str] = ()) -> None:
        self._bytes_fields = bytes_fields
        self.references: dict[str, list[Any]] = {
            name: [built, built.thrift_spec if filled else None] for name, built in classes.items()
        }

    def of(self, definition: StructDef) -> tuple[Any, ...]:
        """The fields of `definition`, indexed by field id."""
        by_id = {field.id: field for field in definition.fields}
        return tuple(self._field(by_id.get(number)) for number in range(max(by_id, default=-1) + 1))

    def _field(self, field: Field | None) -> tuple[Any, ...] | None:
        if field is None:
            return None
        code, detail = self._type(field.type, hashable=False)
        if field.name in self._bytes_fields and field.type is BaseType.STRING:
            detail = _TEXTS[BaseType.BINARY]
        return field.id, code, field.name, detail, None

    def _type(self, kind: Type, *, hashable: bool) -> tuple[int, Any]:
        match kind:
            case EnumType():
                return TType.I32, None
            case StructType(name):
                return TType.STRUCT, self.references[name]
            case ListType(element):
                return TType.LIST, (*self._type(element, hashable=hashable), hashable)
            case SetType(element):
                return TType.SET, (*self._type(element, hashable=True), hashable)
            case MapType(key, value):
                # A list as map key (SkewedInfo) has to arrive as a tuple, or it cannot be a key in Python.
                key_spec, value_spec = self._type(key, hashable=True), self._type(value, hashable=hashable)
                return TType.MAP, (*key_spec, *value_spec, hashable)
            case BaseType():
                return _SPEC_TYPES[kind], _TEXTS.get(kind)
