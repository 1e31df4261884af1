"""What a request is answered with that fails: refused, not readable, not possible (clients §10, row by row)."""

from collections.abc import Mapping

import structlog

from hms_gateway.gateway.admission.identity import HeaderList
from hms_gateway.gateway.admission.refusals import NOT_TRIED, ClientGone, Refusals, Refused
from hms_gateway.gateway.http.exchange import TEXT, Exchange, Response
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.rpc.call import Unavailable
from hms_gateway.rpc.repeatable import KeyReused
from hms_gateway.wire import (
    ApplicationError,
    ApplicationErrorType,
    Codec,
    Codecs,
    Message,
    MessageType,
    NotThrift,
    ProtocolError,
)
from hms_gateway.wire.message import TApplicationException

_log = structlog.get_logger("hms_gateway.endpoint")


class Failures:
    """Makes responses of errors. `content_types` are those of the codecs, by name."""

    def __init__(self, codecs: Codecs, content_types: Mapping[str, bytes], metrics: Metrics) -> None:
        self._codecs = codecs
        self._content_types = content_types
        self._refusals = Refusals(metrics)

    def response(self, exchange: Exchange, error: Exception) -> Response:
        """The response to a request that failed with `error`. Raises ClientGone, which has none."""
        if isinstance(error, ClientGone):
            raise error
        try:
            return self._expected(exchange, error)
        except Exception as unexpected:
            request = exchange.request_id.decode()
            _log.error("request failed", request=request, exc_info=unexpected)
            text = f"Internal error in request {request}; the log of the gateway says why"
            return self._refused(exchange, Refused(500, text, reason="internal_error"))

    def _expected(self, exchange: Exchange, error: Exception) -> Response:
        """The same as `response`. Raises what is none of the errors of a request whose message is not read."""
        if isinstance(error, (Refused, Unavailable, ApplicationError)) and error.limit:
            self.note(exchange, error.limit)
        if exchange.is_read:
            return self._failed_call(exchange, exchange.codec, exchange.message, error)
        if isinstance(error, NotThrift):
            error = Refused(400, str(error), reason="not_thrift")
        if isinstance(error, Refused):
            return self._refused(exchange, error)
        if isinstance(error, ProtocolError):
            return self._unreadable(exchange, exchange.codec, error)
        raise error

    def _failed_call(self, exchange: Exchange, codec: Codec, message: Message, error: Exception) -> Response:
        """For a call that was read. JSON clients parse the body whatever the status is."""
        headers: HeaderList = ()
        kind = ApplicationErrorType.INTERNAL_ERROR
        if isinstance(error, Unavailable):
            # What keeps calls from being answered is logged where it is: a limit above, an outage by the store.
            status, text, exchange.outcome = 503, f"The metastore is not available: {error}", "unavailable"
            headers = NOT_TRIED
        elif isinstance(error, KeyReused):
            status, text, exchange.outcome, kind = 422, error.message, "key_reused", error.type
        elif isinstance(error, ApplicationError):
            exchange.outcome = error.type.name
            return self._exception(codec, message.name, message.seqid, error)
        elif isinstance(error, Refused):
            status, text, exchange.outcome, headers = error.status, error.text, error.reason, error.headers
        else:
            _log.error("call failed", method=message.name, request=exchange.request_id.decode(), exc_info=error)
            status, text, exchange.outcome = 500, f"Internal error processing {message.name}", "internal_error"
        if codec.name != "tjson" or message.type is MessageType.ONEWAY:
            return Response(status, TEXT, _text(text), headers)
        return self._exception(codec, message.name, message.seqid, ApplicationError(text, kind), status, headers)

    def _unreadable(self, exchange: Exchange, codec: Codec, error: ProtocolError) -> Response:
        """400 for every refused envelope: an answer with 200 needs a seqid, which may be what is wrong."""
        exchange.outcome = error.type.name
        exchange.method = error.name or ""
        if codec.name != "tjson":
            return Response(400, TEXT, _text(str(error)))
        return self._exception(codec, error.name or "", error.seqid or 0, error, 400)

    def _refused(self, exchange: Exchange, refused: Refused) -> Response:
        """For a request whose message was not looked at: an application exception if it is TJSON.

        Without one Node never calls back (clients §0 rule 6).
        """
        exchange.outcome = refused.reason
        beginning = exchange.beginning if refused.beginning is None else refused.beginning
        try:
            codec = self._codecs.sniff(beginning) if beginning else None
        except NotThrift:
            codec = None
        if codec is None or codec.name != "tjson":
            return Response(refused.status, TEXT, _text(refused.text), refused.headers)
        exchange.method, seqid = _addressee(codec, beginning)
        kind = ApplicationErrorType.INTERNAL_ERROR if refused.status >= 500 else ApplicationErrorType.UNKNOWN
        error = ApplicationError(refused.text, kind)
        return self._exception(codec, exchange.method, seqid, error, refused.status, refused.headers)

    def _exception(
        self,
        codec: Codec,
        name: str,
        seqid: int,
        error: ApplicationError,
        status: int = 200,
        headers: HeaderList = (),
    ) -> Response:
        before, after = codec.envelope(name, MessageType.EXCEPTION, seqid)
        payload = codec.encode(TApplicationException(error.message, int(error.type)))
        assert isinstance(payload, bytes)
        return Response(status, self._content_types[codec.name], before + payload + after, headers)

    def note(self, exchange: Exchange, limit: str) -> None:
        """The request was refused, or its reply cut off, because of `limit`."""
        identity = exchange.identity
        user, address = ("", exchange.head.address) if identity is None else (identity.user, identity.address)
        self._refusals.note(limit, user=user, address=address)


def _addressee(codec: Codec, beginning: bytes) -> tuple[str, int]:
    """Method and seqid as far as the beginning of a body says; errors carry what was read before they occurred."""
    try:
        message = codec.read_message(beginning)
    except ProtocolError as error:
        return error.name or "", error.seqid or 0
    except Exception:
        # What is to be answered may be just that.
        return "", 0
    return message.name, message.seqid


def _text(text: str) -> bytes:
    return f"{text}\n".encode("utf-8", "replace")
