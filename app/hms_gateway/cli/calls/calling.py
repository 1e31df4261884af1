"""`hms-gateway call`: one call to any metastore over HTTPS."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.status import Status

from hms_gateway.cli.calls.arguments import ArgumentError, parse_arguments
from hms_gateway.cli.calls.explaining import find_method, print_explanation, print_methods
from hms_gateway.cli.calls.plain_values import as_json, print_value
from hms_gateway.cli.calls.targets import CallTarget, target_of
from hms_gateway.cli.terminal.output import EXIT_REFUSED, err, fail, hint, out
from hms_gateway.client.metastore_client import ClientError, MetastoreClient, Progress, TicketAuth, TokenAuth
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.idl.model import signature
from hms_gateway.rpc.structs import Method, ThriftException
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType

PROGRESS_AFTER_SECONDS = 1.0


def run_call(
    of_target: Mapping[str, Any],
    *,
    method: str | None,
    words: Sequence[str],
    as_plain_json: bool,
    limit: int | None,
    explain: bool,
    show_list: bool,
) -> None:
    """Call and print the answer, or explain methods."""
    if show_list:
        print_methods()
    elif method is None:
        fail("which method?", "hms-gateway call --list shows all of them, hms-gateway call --help how to call them")
    elif explain:
        print_explanation(method)
    else:
        find_method(method)
        _call(target_of(**of_target), method, words, as_plain_json=as_plain_json, limit=limit)


def _call(target: CallTarget, name: str, words: Sequence[str], *, as_plain_json: bool, limit: int | None) -> None:
    """Call and print the answer, of a list the first `limit`.

    Exits with EXIT_REFUSED when the metastore refuses, EXIT_FAILED without an answer.
    """
    method = methods_of(dialect_at(target.url))[name]
    misspelt = next((word for word in words if word.startswith("--")), None)
    if misspelt is not None:
        fail(f"unknown option {misspelt}", "write a text that begins with a dash as name=value")
    try:
        arguments = parse_arguments(method, words)
    except ArgumentError as error:
        fail(str(error), signature(method.definition))
    value = _answer(target, method, arguments)
    kind = method.definition.returns
    if limit is not None and isinstance(value, list) and len(value) > limit:
        hint(f"{limit:,} of {len(value):,} are shown (--limit)")
        value = value[:limit]
    if out.is_terminal and not as_plain_json:
        print_value(out, kind, value)
    elif kind is not None:
        sys.stdout.write(as_json(kind, value) + "\n")


def _answer(target: CallTarget, method: Method, arguments: dict[str, Any]) -> Any:
    missing = [field.name for field in method.definition.arguments if field.name not in arguments]
    hint = f"not given: {', '.join(missing)}; hms-gateway call --explain {method.name} shows an example"
    with connected(target, hint if missing else "") as client, show_progress(method.name) as on_progress:
        return client.call(method.name, on_progress=on_progress, **arguments)


def dialect_at(url: str) -> Dialect:
    """Decided by the last part of the URL's path: the gateway serves the shapes of Hive 4 at /metastore."""
    path = url.partition("://")[2].partition("/")[2].partition("?")[0]
    return Dialect.HIVE_4 if path.rstrip("/*") == "metastore" else Dialect.HIVE_2_3


@contextlib.contextmanager
def connected(target: CallTarget, refusal_hint: str = "") -> Iterator[MetastoreClient]:
    """A client; its errors end the command with EXIT_REFUSED when the metastore refuses, EXIT_FAILED without answer."""
    try:
        with open_client(target) as client:
            yield client
    except ThriftException as error:
        fail(f"{type(error).__name__}: {error.message or 'no message'}", refusal_hint, exit_code=EXIT_REFUSED)
    except ApplicationError as error:
        is_unknown = error.type is ApplicationErrorType.UNKNOWN_METHOD
        hint = f"the server at {target.url} does not know this method" if is_unknown else refusal_hint
        fail(f"{error.type.name}: {error}", hint, exit_code=EXIT_REFUSED)
    except ClientError as error:
        fail(str(error), error.hint)


def open_client(target: CallTarget) -> MetastoreClient:
    """A client that raises its errors."""
    return MetastoreClient(
        target.url,
        _auth_of(target),
        target.verify,
        headers=target.headers,
        timeout_seconds=target.timeout_seconds,
        methods=methods_of(dialect_at(target.url)),
        catalog=target.catalog,
    )


def _auth_of(target: CallTarget) -> TokenAuth | TicketAuth | tuple[str, str] | None:
    if target.token is not None:
        return TokenAuth(target.token)
    if target.negotiates:
        return TicketAuth()
    return None if target.password is None else (target.user, target.password)


@contextlib.contextmanager
def show_progress(name: str) -> Iterator[Progress]:
    """Say on a terminal what is going on, as soon as the answer takes longer than people wait without wondering."""
    status = Status(f"{name}: waiting", console=err)
    started = time.monotonic()

    def on_progress(received: int, total: int | None) -> None:
        of_total = "" if total is None else f" of {total / 1e6:.1f}"
        status.update(f"{name}: {received / 1e6:.1f}{of_total} MB received, {time.monotonic() - started:.0f} s")

    timer = threading.Timer(PROGRESS_AFTER_SECONDS, status.start)
    timer.daemon = True
    if not err.is_terminal:
        yield on_progress
        return
    timer.start()
    try:
        yield on_progress
    finally:
        timer.cancel()
        timer.join()
        status.stop()
