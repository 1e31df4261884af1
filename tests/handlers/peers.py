"""Clients of a whole metastore in this process: calls go through a codec, the processor and the store."""

from pathlib import Path
from typing import Any

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.processor import Reply
from hms_gateway.rpc.wire import Codec, MessageType
from hms_gateway.runtime.settings import Settings


class Peer:
    """A client with a codec and a dialect; an exception it is answered with is raised."""

    def __init__(
        self,
        metastore: Metastore,
        codec: Codec,
        dialect: Dialect,
        principal: str = "ann",
        recorded_at: str | None = None,
    ) -> None:
        self._principal, self._recorded_at = principal, recorded_at
        self._metastore = metastore
        self._codec = codec
        self._dialect = dialect

    def reply(self, name: str, *values: Any) -> Reply:
        """The reply as it goes to the edge."""
        method, codec = methods_of(self._dialect)[name], self._codec
        before, after = codec.envelope(name, MessageType.CALL, 1)
        payload = codec.encode(method.arguments(*values))
        assert isinstance(payload, bytes)
        call = Call(self._principal, dialect=self._dialect, recorded_at=self._recorded_at)
        return self._metastore.processor.process(codec, codec.read_message(before + payload + after), call)

    def ask(self, name: str, *values: Any) -> Any:
        """The answer; a declared exception is raised."""
        method, reply = methods_of(self._dialect)[name], self.reply(name, *values)
        assert reply.type is MessageType.REPLY, reply
        assert reply.payload is not None
        encoded = reply.payload if isinstance(reply.payload, bytes) else b"".join(reply.payload)
        result: Any = self._codec.decode(method.result, encoded)
        for field in method.definition.throws:
            raised = getattr(result, field.name)
            if raised is not None:
                raise raised
        return None if method.definition.returns is None else result.success


def metastore_in(folder: Path) -> Metastore:
    """A metastore that makes no directories, and whose clients may grant."""
    return build_metastore(Settings(data_dir=folder, file_systems={"file": "ignore"}, administrators=["admin", "ann"]))
