"""A uvicorn with nothing but an application of a few lines: what the gateway is compared with."""

import ssl
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import uvicorn


def run_bare(application: Callable[..., Any], started: Connection, tls: ssl.SSLContext | None) -> None:
    """Serve until the process ends; the port is sent to `started`."""

    class Bare(uvicorn.Server):
        async def startup(self, sockets: object = None) -> None:
            await super().startup()
            started.send(self.servers[0].sockets[0].getsockname()[1])

    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=0,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )
    Bare(config).run()
