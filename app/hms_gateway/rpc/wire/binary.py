"""Thrift's binary and compact protocols, by Apache `thrift` with descriptions made from the IDL (design D4).

Structs go through the C accelerator where it could be built, else through the library's Python code. The library
decodes invalid UTF-8 to U+FFFD and checks no required fields; both are checked here afterwards.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import msgspec
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportException

from hms_gateway.rpc.idl import ListType, MapType, Requiredness, SetType, StructType, Type
from hms_gateway.rpc.structs import STRUCTS
from hms_gateway.rpc.structs.base import specs_with_bytes
from hms_gateway.rpc.wire.message import (
    LIST_BYTES,
    STRUCT_BYTES,
    ApplicationErrorType,
    Chunks,
    LimitExceeded,
    Message,
    MessageType,
    ProtocolError,
    TooManyStructs,
    binary_lists,
    compact_lists,
    structs_in,
)
from hms_gateway.runtime.limits import Limits

# All the library raises on bytes that are not a struct of the wanted type. AssertionError is the compact protocol's.
_UNREADABLE = (
    TProtocolException,
    TTransportException,  # lengths below zero or beyond its own limit
    EOFError,
    TypeError,
    OverflowError,
    ValueError,
    AssertionError,
    KeyError,
    IndexError,
)
# Over a connection the end of the bytes and what the system says about it are the connection's errors.
_UNREADABLE_STREAM = tuple(kind for kind in _UNREADABLE if kind not in (TTransportException, EOFError))
_REPLACED = "\ufffd".encode()
_packed = msgspec.msgpack.Encoder().encode


class _SpecProtocol:
    """Lets the library's Python code read and write classes that have a `thrift_spec` and no methods for it."""

    def readContainerStruct(self, spec: Any) -> Any:
        struct_class, struct_spec = spec
        value = struct_class()
        self.readStruct(value, struct_spec)  # type: ignore[attr-defined]
        return value

    def writeContainerStruct(self, value: Any, spec: Any) -> None:
        self.writeStruct(value, spec[1])  # type: ignore[attr-defined]

    def readString(self) -> str:
        """As the C code reads one: what is not UTF-8 is replaced, which `decode` notices."""
        return self.readBinary().decode(errors="replace")  # type: ignore[attr-defined, no-any-return]

    def writeString(self, value: Any) -> None:
        """A text may be bytes, as sketches are (`_spec_with_sketches`); the C code takes both."""
        self.writeBinary(value.encode() if isinstance(value, str) else value)  # type: ignore[attr-defined]


class _Binary(_SpecProtocol, TBinaryProtocolAccelerated):  # type: ignore[misc]
    pass


class _Compact(_SpecProtocol, TCompactProtocolAccelerated):  # type: ignore[misc]
    pass


class _Elements:
    """A struct whose only field is a list."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


class ApacheCodec:
    """The codecs `binary` and `compact`."""

    content_type = "application/x-thrift"

    def __init__(self, name: str, protocol_class: Any, limits: Limits, lists: Callable[[bytes], int]) -> None:
        self.name = name
        self._lists = lists
        self._protocol_class = protocol_class
        self._limits = limits

    def read_message(self, body: bytes) -> Message:
        """The message in `body`, its struct still encoded and not looked at; raises ProtocolError."""
        if len(body) > self._limits.body_bytes_max:
            raise LimitExceeded("body_bytes_max", self._limits.body_bytes_max)
        protocol = self._protocol(body)
        try:
            name, type_number, seqid = protocol.readMessageBegin()
        except _UNREADABLE as error:
            raise self._unreadable("message", error) from error
        try:
            message_type = MessageType(type_number)
        except ValueError:
            text = f"message: {type_number} is not a message type"
            raise ProtocolError(text, ApplicationErrorType.INVALID_MESSAGE_TYPE, name=name, seqid=seqid) from None
        return Message(name, message_type, seqid, body[protocol.trans.cstringio_buf.tell() :])

    def decode(self, struct_class: Any, payload: bytes) -> Any:
        """`payload` as an instance of `struct_class`; raises ProtocolError or LimitExceeded."""
        name = struct_class.definition.name
        value = self._read(payload, struct_class, struct_class.thrift_spec)
        if not payload.isascii() and self._has_replaced(value, payload):
            value = self._read(payload, struct_class, _spec_with_sketches(struct_class))
            if self._has_replaced(value, payload):
                raise ProtocolError(f"{name}: a string is not valid UTF-8")
        check = _required_check(struct_class)
        if check is not None:
            check(value)
        return value

    def decoded_bytes(self, struct_class: Any, payload: bytes, bytes_max: int) -> int:
        """As `Codec.decoded_bytes`."""
        size = self._lists(payload) * LIST_BYTES
        if size > bytes_max:
            return size
        most = (bytes_max - size) // STRUCT_BYTES
        try:
            return size + STRUCT_BYTES * structs_in(partial(self._read, payload), struct_class, most)
        except TooManyStructs:
            return bytes_max + 1

    def encode(self, value: Any) -> bytes | Iterator[bytes]:
        """A struct, declared exception or `Encoded`; an iterator of chunks if there is an EncodedList inside.

        Raises TypeError, ValueError or OverflowError for values that are not of the IDL's types.
        """
        if hasattr(value, "tjson"):
            value = value.struct()
        splices = list(_splices(value, in_elements=False))
        if not splices:
            try:
                return self._struct(value)
            except (TypeError, AttributeError):
                # Rare enough not to look for beforehand: a splice inside an element of a list.
                splices = list(_splices(value, in_elements=True))
                if not splices:
                    raise
        streams = [splice for splice in splices if hasattr(splice, "close")]
        chunks = self._chunks(value)
        return Chunks(chunks, streams) if streams else b"".join(chunks)

    def envelope(self, name: str, type: MessageType, seqid: int) -> tuple[bytes, bytes]:
        """The bytes before and after a message's struct."""
        protocol = self._protocol()
        protocol.writeMessageBegin(name, type, seqid)
        return protocol.trans.getvalue(), b""

    def _protocol(self, data: bytes | None = None) -> Any:
        return self._protocol_class(
            TMemoryBuffer(data),
            string_length_limit=self._limits.string_bytes_max,
            container_length_limit=self._limits.container_elements_max,
        )

    def _read(self, payload: bytes, struct_class: Any, spec: Any) -> Any:
        """`payload` as the spec describes it; raises ProtocolError."""
        value, protocol = struct_class(), self._protocol(payload)
        try:
            if protocol._fast_decode is None:
                protocol.readStruct(value, spec)
            else:
                protocol._fast_decode(value, protocol, [struct_class, spec])
        except _UNREADABLE as error:
            raise self._unreadable(_name_of(struct_class), error) from error
        return value

    def _struct(self, value: Any) -> bytes:
        """One whole struct."""
        protocol = self._protocol()
        spec = type(value).thrift_spec
        if protocol._fast_encode is None:
            protocol.writeStruct(value, spec)
            return bytes(protocol.trans.getvalue())
        return bytes(protocol._fast_encode(value, [type(value), spec]))

    def _has_replaced(self, value: Any, payload: bytes) -> bool:
        """Whether U+FFFD is in `value` more often than the peer wrote it.

        Nearly always it is in neither, and packing says so in a fifth of the time of encoding. Numbers may look like it
        in both, so what is found has to be counted in the same encoding.
        """
        try:
            if _REPLACED not in _packed(value):
                return False
        except TypeError:
            pass  # an exception among the fields
        return self._struct(value).count(_REPLACED) > payload.count(_REPLACED)

    def _unreadable(self, where: str, error: Exception) -> ProtocolError:
        """The library's error in our words; its texts are few and mostly empty."""
        text = str(error)
        limits = self._limits
        if "recursion depth" in text or getattr(error, "type", None) == TProtocolException.DEPTH_LIMIT:
            return LimitExceeded("nesting_depth_max", limits.nesting_depth_max, where)
        if "exceeded" in text and text.endswith(f": {limits.container_elements_max}"):
            return LimitExceeded("container_elements_max", limits.container_elements_max, where)
        if "exceeded" in text:
            return LimitExceeded("string_bytes_max", limits.string_bytes_max, where)
        if isinstance(error, EOFError):
            return ProtocolError(f"{where}: the bytes end inside a value")
        return ProtocolError(f"{where}: {text or type(error).__name__}")

    def _chunks(self, value: Any) -> Iterator[bytes]:
        """`value` with its splices, written by the library's Python code down to the splices and by C from there."""
        protocol = self._protocol()
        yield from self._write_struct(protocol, value)
        yield _drain(protocol)

    def _write_struct(self, protocol: Any, value: Any) -> Iterator[bytes]:
        protocol.writeStructBegin("")
        for field in type(value).thrift_spec:
            item = None if field is None else getattr(value, field[2])
            if item is None:
                continue
            number, code, name, detail, _ = field
            protocol.writeFieldBegin(name, code, number)
            if code == TType.STRUCT:
                yield from self._write_whole_or_spliced(protocol, item, detail[0])
            elif code == TType.LIST and detail[0] == TType.STRUCT:
                yield from self._write_structs(protocol, item, detail[1])
            elif hasattr(item, "text_chunks"):
                yield from self._write_texts(protocol, item)
            else:
                protocol.writeFieldByTType(code, item, detail)
            protocol.writeFieldEnd()
        protocol.writeFieldStop()
        protocol.writeStructEnd()

    def _write_whole_or_spliced(self, protocol: Any, value: Any, struct_class: Any) -> Iterator[bytes]:
        if hasattr(value, "tjson"):
            protocol.trans.write(self._struct(value.struct()))
        elif not isinstance(value, struct_class):
            raise TypeError(f"{type(value).__name__} was given where a {struct_class.__name__} belongs")
        elif next(_splices(value, in_elements=True), None) is None:
            protocol.trans.write(self._struct(value))
        else:
            yield from self._write_struct(protocol, value)

    def _write_structs(self, protocol: Any, values: Any, element: Any) -> Iterator[bytes]:
        """`element` is class and spec, as in the spec of a list."""
        protocol.writeListBegin(TType.STRUCT, len(values))
        if hasattr(values, "struct_chunks"):
            for chunk in values.struct_chunks():
                protocol.trans.write(self._elements(chunk, element))
                yield _drain(protocol)
        else:
            for value in values:
                yield from self._write_whole_or_spliced(protocol, value, element[0])
        protocol.writeListEnd()

    def _elements(self, values: list[Any], element: Any) -> bytes:
        """The elements of a list without its head. The C code takes whole structs, so they are the field of one."""
        head = self._protocol()
        if head._fast_encode is None:
            return b"".join(map(self._struct, values))
        head.writeStructBegin("")
        head.writeFieldBegin("values", TType.LIST, 1)
        head.writeListBegin(TType.STRUCT, len(values))
        spec = (None, (1, TType.LIST, "values", (TType.STRUCT, element, False), None))
        written = self._protocol()._fast_encode(_Elements(values), [_Elements, spec])
        return bytes(written[len(head.trans.getvalue()) : -1])

    def _write_texts(self, protocol: Any, texts: Any) -> Iterator[bytes]:
        protocol.writeListBegin(TType.STRING, len(texts))
        for chunk in texts.text_chunks():
            for text in chunk:
                protocol.writeString(text)
            yield _drain(protocol)
        protocol.writeListEnd()


@cache
def _sketch_specs() -> Callable[[Any], Any]:
    return specs_with_bytes(STRUCTS, frozenset({"bitVectors"}))


@cache
def _spec_with_sketches(struct_class: Any) -> Any:
    """For callers of 3.1 and later who talk to a server of 2.3: the sketches in their statistics are bytes, no text.

    Such a field is bytes then, whatever the struct's own type says (semantics §10.1).
    """
    return _sketch_specs()(struct_class.definition)


class BinaryStream:
    """Binary messages over a transport of the library's, decoded while they arrive (the client's side)."""

    def __init__(self, transport: Any, limits: Limits) -> None:
        self._protocol = _Binary(
            transport,
            string_length_limit=limits.string_bytes_max,
            container_length_limit=limits.container_elements_max,
        )

    def write(self, name: str, kind: MessageType, seqid: int, value: Any) -> None:
        """One message; the transport has still to be flushed."""
        self._protocol.writeMessageBegin(name, kind, seqid)
        spec = type(value).thrift_spec
        if self._protocol._fast_encode is None:
            self._protocol.writeStruct(value, spec)
        else:
            self._protocol.trans.write(self._protocol._fast_encode(value, [type(value), spec]))
        self._protocol.writeMessageEnd()

    def read_head(self) -> tuple[str, MessageType]:
        """Name and type of the next message. Raises ProtocolError, and what the transport raises."""
        try:
            name, number, _ = self._protocol.readMessageBegin()
            return name, MessageType(number)
        except _UNREADABLE_STREAM as error:
            raise ProtocolError(f"message: {error}") from error

    def read(self, struct_class: Any) -> Any:
        """The struct of the message. Raises ProtocolError, and what the transport raises."""
        value, protocol = struct_class(), self._protocol
        try:
            if protocol._fast_decode is None:
                protocol.readStruct(value, struct_class.thrift_spec)
            else:
                protocol._fast_decode(value, protocol, [struct_class, struct_class.thrift_spec])
        except _UNREADABLE_STREAM as error:
            raise ProtocolError(f"{_name_of(struct_class)}: {error}") from error
        return value


def make_binary(limits: Limits) -> ApacheCodec:
    """TBinaryProtocol: strict and old headers are read, strict ones written."""
    return ApacheCodec("binary", _Binary, limits, binary_lists)


def make_compact(limits: Limits) -> ApacheCodec:
    """TCompactProtocol."""
    return ApacheCodec("compact", _Compact, limits, compact_lists)


def _name_of(struct_class: Any) -> str:
    definition = getattr(struct_class, "definition", None)
    return "message" if definition is None else str(definition.name)


def _drain(protocol: Any) -> bytes:
    """What was written since the last time."""
    written = bytes(protocol.trans.getvalue())
    protocol.trans = TMemoryBuffer()
    return written


def _splices(value: Any, *, in_elements: bool) -> Iterator[Any]:
    """What is encoded already in a struct, in its fields and their fields; inside elements of lists if wanted."""
    struct_class: Any = type(value)
    if hasattr(texts := getattr(value, "success", None), "text_chunks"):
        yield texts
        return
    for name in _splice_names(struct_class):
        item = getattr(value, name)
        if hasattr(item, "tjson") or hasattr(item, "struct_chunks"):
            yield item
        elif isinstance(item, list):
            for element in item:
                if hasattr(element, "tjson"):
                    yield element
                elif in_elements:
                    yield from _splices(element, in_elements=True)
        elif hasattr(item, "thrift_spec"):
            yield from _splices(item, in_elements=in_elements)


@cache
def _splice_names(struct_class: Any) -> tuple[str, ...]:
    """The fields that are a struct or a list of structs."""
    return tuple(
        field.name
        for field in struct_class.definition.fields
        if isinstance(field.type.element if isinstance(field.type, ListType) else field.type, StructType)
    )


_Check = Callable[[Any], None]


@cache
def _required_check(struct_class: Any) -> _Check | None:
    """What raises ProtocolError if a required field is missing in a struct or inside it; None if nothing is required.

    In Java the missing field is found where the struct ends, so the innermost is named first (semantics §0.1).
    """
    definition = struct_class.definition
    required = [field.name for field in definition.fields if field.requiredness is Requiredness.REQUIRED]
    nested = [
        (field.name, _value_check(field.type)) for field in definition.fields if _requires(field.type, frozenset())
    ]
    if not required and not nested:
        return None

    def check(value: Any) -> None:
        for name, check_field in nested:
            field = getattr(value, name)
            if field is not None:
                check_field(field)
        for name in required:
            if getattr(value, name) is None:
                raise ProtocolError(f"Required field '{name}' is unset! Struct:{definition.hive_name}")

    return check


def _value_check(type: Type) -> _Check:
    match type:
        case StructType(name):
            return lambda value: _check_struct(STRUCTS[name], value)
        case ListType(element) | SetType(element):
            check_element = _value_check(element)
            return lambda values: _check_each(check_element, values)
        case MapType(_, item):
            check_item = _value_check(item)
            return lambda entries: _check_each(check_item, entries.values())
        case _:
            raise AssertionError(f"{type} holds no struct")


def _check_struct(struct_class: Any, value: Any) -> None:
    # Looked up when called, because structs may contain themselves.
    check = _required_check(struct_class)
    if check is not None:
        check(value)


def _check_each(check: _Check, values: Any) -> None:
    for value in values:
        check(value)


def _requires(type: Type, seen: frozenset[str]) -> bool:
    """Whether a required field is anywhere in values of `type`."""
    match type:
        case StructType(name):
            if name in seen:
                return False
            fields = STRUCTS[name].definition.fields
            return any(
                field.requiredness is Requiredness.REQUIRED or _requires(field.type, seen | {name}) for field in fields
            )
        case ListType(element) | SetType(element):
            return _requires(element, seen)
        case MapType(_, item):
            return _requires(item, seen)
        case _:
            return False
