"""A program for test_running: serves canned answers with as many workers as it is told, and prints its port."""

import os
import sys
from pathlib import Path
from typing import Any, cast

from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.assembly import build_gateway
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.running import run
from hms_gateway.rpc.wire import make_codecs
from hms_gateway.runtime.door import listening_sockets
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logging import configure_logging
from hms_gateway.runtime.settings import Settings
from tests.gateway.serving import Anybody, CannedProcessor, FakeCache


def build(settings: Settings) -> Gateway:
    """Answers get_all_databases with the id of the process."""
    if settings.realm == "broken":
        raise RuntimeError("this worker cannot start")
    processor = CannedProcessor(get_all_databases=b'{"0":{"lst":["str",1,"%d"]}}' % os.getpid())
    return build_gateway(
        settings,
        codecs=make_codecs(Limits()),
        processor=processor,
        cache=cast(Any, FakeCache()),
        ready=lambda: None,
        metrics=Metrics({"get_all_databases"}),
        certificate=None,
        authenticator=Anybody(),
        on_stop=[say_stopped],
    )


def say_stopped() -> None:
    """In one piece: all workers write to one pipe, and an unbuffered `print` writes the end of the line by itself."""
    os.write(sys.stdout.fileno(), f"stopped {os.getpid()}\n".encode())


def main() -> None:
    folder, workers, realm = sys.argv[1:]
    configure_logging()
    settings = Settings(data_dir=Path(folder), port=0, workers=int(workers), tls=False, realm=realm)
    listeners = listening_sockets(settings.host, settings.port)
    run(settings, build, listeners, on_listening=lambda addresses: print(addresses[0][1], flush=True))


if __name__ == "__main__":
    main()
