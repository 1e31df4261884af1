"""A synchronous client of a metastore that speaks binary Thrift over TCP, as Hive's own listens on port 9083."""

import itertools
from types import TracebackType
from typing import Any, Self

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport, TTransportException

from hms_gateway.client.metastore_client import (
    NotAMetastore,
    NotReached,
    OfCatalog,
    application_error,
    arguments_of,
    method_of,
    value_of,
)
from hms_gateway.rpc.structs import METHODS, Method, Struct
from hms_gateway.rpc.wire import MessageType, ProtocolError, TApplicationException
from hms_gateway.rpc.wire.binary import BinaryStream
from hms_gateway.rpc.wire.tjson_shapes import Fields
from hms_gateway.runtime.limits import Limits

_BUFFER_BYTES = 64 * 1024


class ThriftClient(OfCatalog):
    """Calls methods by IDL name over one connection; nothing is retried. Use it as a context manager or close it.

    Without encryption and without SASL; `framed` where the server has framed transport enabled. Replies are decoded
    as they arrive: their bytes are never in memory as a whole.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        framed: bool = False,
        timeout_seconds: float = 600.0,
        limits: Limits | None = None,
        catalog: str = "",
    ) -> None:
        """Raises NotReached."""
        super().__init__(f"thrift://{host}:{port}", catalog)
        self._seqids = itertools.count(1)
        socket = TSocket(host, port)
        socket.setTimeout(int(timeout_seconds * 1000))
        self._transport = TFramedTransport(socket) if framed else TBufferedTransport(socket, _BUFFER_BYTES)
        self._stream = BinaryStream(self._transport, limits or Limits())
        try:
            self._transport.open()
        except TTransportException as error:
            raise NotReached(f"{self._place} cannot be reached: {error}", "is the server running?") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def call(self, name: str, /, *arguments: Any, fields: Fields | None = None, **named: Any) -> Any:
        """As `MetastoreClient.call`; every field is read."""
        return self._about_catalog(self._call, name, arguments_of(method_of(METHODS, name), arguments, named))

    def _call(self, name: str, /, *arguments: Any, **named: Any) -> Any:
        method = method_of(METHODS, name)
        try:
            self._send(method, arguments_of(method, arguments, named))
            return None if method.oneway else value_of(method, self._receive(method))
        except (TTransportException, OSError) as error:
            self.close()
            raise NotReached(f"the connection to {self._place} broke: {error}") from error
        except ProtocolError as error:
            self.close()
            raise NotAMetastore(f"{self._place}: the answer to {name} is not readable: {error}") from error

    def _send(self, method: Method, arguments: Struct) -> None:
        kind = MessageType.ONEWAY if method.oneway else MessageType.CALL
        self._stream.write(method.name, kind, next(self._seqids), arguments)
        self._transport.flush()

    def _receive(self, method: Method) -> Struct:
        name, kind = self._stream.read_head()
        if kind is MessageType.EXCEPTION:
            raise application_error(self._stream.read(TApplicationException))
        if name != method.name:
            raise ProtocolError(f"{self._place} answers {name} to a call of {method.name}")
        result: Struct = self._stream.read(method.result)
        return result
