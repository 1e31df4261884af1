"""What operators and their tools look at: whether the gateway lives, whether it is ready, its metrics, the console."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AnyScope

from hms_gateway.gateway.admission.identity import Identity, Refused
from hms_gateway.gateway.application import GatewayStatus, NotReady
from hms_gateway.gateway.console.static_files import POLICY, static_file
from hms_gateway.gateway.http.request_body import Scope
from hms_gateway.gateway.observability.figures import Health
from hms_gateway.gateway.observability.metrics import CONTENT_TYPE, Metrics
from hms_gateway.runtime.tracebacks import forget_frames

READY_SECONDS_MAX = 5.0
_CONSOLE_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Asked for again each time, and answered with 304: after an upgrade no page mixes two versions.
    "cache-control": "no-cache",
    "vary": "accept-encoding",
}

_log = structlog.get_logger("hms_gateway.application")


class _Pages(Starlette):
    """Raises what is unforeseen, where Starlette answers first."""

    def build_middleware_stack(self) -> ASGIApp:
        return ExceptionMiddleware(self._routed, handlers=self.exception_handlers)

    async def _routed(self, scope: AnyScope, receive: Receive, send: Send) -> None:
        # Starlette's routes end with `$`, which takes a line end as well, and rules of proxies do not.
        if scope["path"].endswith("\n"):
            raise HTTPException(404)
        await self.router(scope, receive, send)


def pages(
    metrics: Metrics,
    ready: Callable[[], None],
    is_stopping: Callable[[], bool],
    endpoints: Sequence[str],
    identify: Callable[[Scope], Awaitable[Identity]],
    status: GatewayStatus,
    health: Callable[[], Health],
    *,
    show_names: bool,
    console: bool,
) -> Starlette:
    """/healthz, /readyz, /metrics and /status/costs, with or without a slash behind.

    `ready` raises while calls cannot be answered; `identify` raises Refused. `health` and `show_names` are for
    /metrics.

    With the console /ui too, and / leads there.

    Everywhere else the answer is 404 and the paths of the endpoints. Raises what is unforeseen.
    """

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if is_stopping():
            return PlainTextResponse("stopping\n", 503)
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                await asyncio.to_thread(ready)
        except TimeoutError:
            return PlainTextResponse(f"no answer from the database in {READY_SECONDS_MAX:g} seconds\n", 503)
        except NotReady as error:
            return PlainTextResponse(f"{error}\n", 503)
        except Exception as error:
            _log.warning("not ready", problem=repr(error), **_detail_of(error))
            forget_frames(error)
            return PlainTextResponse("the database cannot be used; the log says why\n", 503)
        return PlainTextResponse("ready\n")

    async def metrics_page(_request: Request) -> Response:
        # Only here, since a server whose metrics are not read needs no library for them.
        from hms_gateway.gateway.observability.metrics_text import metrics_text

        figures = await status.figures()
        text = metrics_text(metrics, figures, await asyncio.to_thread(health), show_names=show_names)
        return Response(text, headers={"content-type": CONTENT_TYPE.decode()})

    async def costs(request: Request) -> Response:
        try:
            identity = await identify(request.scope)
        except Refused as refused:
            headers = {name.decode(): value.decode() for name, value in refused.headers}
            return PlainTextResponse(f"{refused.text}\n", refused.status, headers)
        body = json.dumps(await status.report(identity.user), separators=(",", ":"))
        headers = {name.decode(): value.decode() for name, value in identity.headers}
        headers |= {"content-type": "application/json", "cache-control": "no-store"}
        return Response(body, headers=headers)

    makers = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics_page, "/status/costs": costs}

    async def nothing(_request: Request, _error: Exception) -> Response:
        return PlainTextResponse(f"Not found: Thrift messages go to {' or '.join(endpoints)}\n", 404)

    async def not_so(request: Request, error: Exception) -> Response:
        # A message that was posted to / wants to know where messages go.
        if request.url.path == "/":
            return await nothing(request, error)
        return PlainTextResponse("Method Not Allowed\n", 405, getattr(error, "headers", None))

    routes = [Route(path + slash, make) for path, make in makers.items() for slash in ("", "/")]
    return _Pages(exception_handlers={404: nothing, 405: not_so}, routes=[*routes, *(_console() if console else ())])


def _console() -> Iterator[Route]:
    async def to_page(_request: Request) -> Response:
        # Relative, because a proxy may serve the gateway below a path of its own.
        return RedirectResponse("ui/", 307)

    async def file(request: Request) -> Response:
        # The first time a file is read and compressed, and the script bundled, which takes a tenth of a second.
        found = await asyncio.to_thread(static_file, request.path_params["path"])
        if found is None:
            return PlainTextResponse("Not found: the console is at /ui\n", 404)
        headers = {**_CONSOLE_HEADERS, "etag": found.tag}
        if found.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        headers["content-type"] = found.content_type
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(found.compressed, headers={**headers, "content-encoding": "gzip"})
        return Response(found.content, headers=headers)

    yield Route("/", to_page)
    yield Route("/ui", to_page)
    yield Route("/ui/{path:path}", file)


def _detail_of(error: Exception) -> dict[str, str]:
    detail = getattr(error, "detail", "")
    return {"detail": detail} if detail else {}
