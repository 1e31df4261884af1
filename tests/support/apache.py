"""Apache thrift's own protocols for classes that carry a `thrift_spec` only: the other side of round trips."""

from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.transport.TTransport import TMemoryBuffer


class _ApacheProtocol:
    """Structs in and out, by Apache's Python code alone."""

    def readContainerStruct(self, spec: Any) -> Any:
        value = spec[0]()
        self.readStruct(value, spec[1])  # type: ignore[attr-defined]
        return value

    def writeContainerStruct(self, value: Any, spec: Any) -> None:
        self.writeStruct(value, spec[1])  # type: ignore[attr-defined]

    @classmethod
    def encode(cls, value: Any) -> bytes:
        protocol = cls(TMemoryBuffer())  # type: ignore[call-arg]
        protocol.writeStruct(value, type(value).thrift_spec)  # type: ignore[attr-defined]
        return bytes(protocol.trans.getvalue())  # type: ignore[attr-defined]

    @classmethod
    def decode(cls, struct_class: Any, payload: bytes) -> Any:
        value = struct_class()
        protocol = cls(TMemoryBuffer(payload))  # type: ignore[call-arg]
        protocol.readStruct(value, struct_class.thrift_spec)  # type: ignore[attr-defined]
        return value


class ApacheTJson(_ApacheProtocol, TJSONProtocol):  # type: ignore[misc]
    pass


class ApacheBinary(_ApacheProtocol, TBinaryProtocol):  # type: ignore[misc]
    pass


class ApacheCompact(_ApacheProtocol, TCompactProtocol):  # type: ignore[misc]
    pass
