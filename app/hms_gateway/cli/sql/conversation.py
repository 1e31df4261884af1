"""The shell between two prompts: runs statements, pages their rows, keeps locks alive, completes names."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hms_gateway.cli.calls.calling import open_client
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.hiveql.shell_state import ShellState, all_columns
from hms_gateway.cli.hiveql.statement_reader import StatementReader
from hms_gateway.cli.sql.session import ReconnectingClient, SqlSession, StatementFailed, Unanswered
from hms_gateway.cli.terminal.output import hint
from hms_gateway.client.metastore_client import ClientError
from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError, Token, split_statements, tokens_of
from hms_gateway.rpc.structs import HeartbeatRequest, ThriftException
from hms_gateway.rpc.structs.catalogs import shown_key
from hms_gateway.rpc.wire import ApplicationError

KEPT_SECONDS: Final = 15.0
_TABLES_LOOKED_AT_MAX: Final = 500


class CatalogNames:
    """Names of the live catalog, each list kept for a while. Used by the threads that complete."""

    def __init__(self, client: ReconnectingClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._kept: dict[tuple[str | tuple[str, ...], ...], tuple[float, list[str]]] = {}
        self._lock = threading.Lock()

    def databases(self) -> list[str]:
        return self._names(("get_all_databases",))

    def tables(self, database: str) -> list[str]:
        return self._names(("get_all_tables", database))

    def partitioned_tables(self, database: str) -> list[str]:
        """All tables where there are too many to look at."""
        names = self.tables(database)
        if len(names) > _TABLES_LOOKED_AT_MAX:
            return names
        return self._names(("get_table_objects_by_name", database, tuple(names)))

    def columns(self, database: str, table: str) -> list[str]:
        return self._names(("get_table", database, table))

    def forget(self) -> None:
        """A statement may have changed something."""
        with self._lock:
            self._kept.clear()

    def _names(self, call: tuple[str | tuple[str, ...], ...]) -> list[str]:
        """Nothing where the metastore does not answer: completion must not disturb."""
        with self._lock:
            now = self._clock()
            until, names = self._kept.get(call, (0.0, []))
            if now < until:
                return names
            try:
                name, *arguments = call
                answer: Any = self._client.call(str(name), *map(_argument, arguments))
            except (ClientError, ThriftException, ApplicationError):
                answer = []
            names = _listed(answer) if isinstance(answer, list) else _columns(answer)
            self._kept[call] = (now + KEPT_SECONDS, names)
            return names


def _argument(value: str | tuple[str, ...]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


def _listed(answer: list[Any]) -> list[str]:
    """Names, or those of the tables that have partition keys."""
    return [
        each if isinstance(each, str) else each.tableName
        for each in answer
        if isinstance(each, str) or each.partitionKeys
    ]


def _columns(table: Any) -> list[str]:
    return [column.name or "" for column in all_columns(table)]


class SqlCompleter(Completer):  # type: ignore[misc]
    """`database` gives the current one."""

    def __init__(self, names: CatalogNames, database: Callable[[], str]) -> None:
        self._names = names
        self._database = database

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        begins = [begin for _, begin in split_statements(text)]
        statement = text[begins[-1] :] if begins and not text.rstrip().endswith(";") else ""
        tokens = tokens_of(statement)
        word = ""
        if tokens and tokens[-1].is_name and text.endswith(tokens[-1].text):
            word = tokens.pop().text
            statement = statement[: -len(word)]
        if tokens and tokens[-1].is_string and not text[-1:].isspace():
            return
        for name in dict.fromkeys(self._candidates(statement, tokens)):
            if name.lower().startswith(word.lower()):
                shown = name.lower() if word.islower() and name.isupper() else name
                yield Completion(shown, start_position=-len(word))

    def _candidates(self, statement: str, tokens: list[Token]) -> Iterable[str]:
        """Words that the reader of statements could go on with, and names of the kind that it wants."""
        reader = StatementReader(statement, self._database())
        with contextlib.suppress(CommandError):
            reader.statement()
        if reader.wanted == "the name of a table":
            is_listing = [token.upper for token in tokens[:2]] == ["SHOW", "PARTITIONS"]
            tables = self._names.partitioned_tables if is_listing else self._names.tables
            if tokens[-1].upper == ".":
                yield from tables(tokens[-2].text.lower())
                return
            yield from tables(self._database())
        if reader.wanted in ("the name of a table", "the name of a database"):
            yield from self._names.databases()
        if reader.wanted in ("the name of a column", "a partition key") and reader.tables:
            yield from self._names.columns(*reader.tables[0])
        yield from filter(str.isalpha, reader.offered)


HEARTBEAT_SECONDS: Final = 60.0


class LockKeeper:
    """Sends heartbeats from a thread with a client of its own. What is lost is noticed by its next use."""

    def __init__(self, state: ShellState, target: CallTarget) -> None:
        self._state = state
        self._target = target
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="locks of the shell", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _keep(self) -> None:
        while not self._stopping.wait(HEARTBEAT_SECONDS):
            if self._state.lock_ids:
                with contextlib.suppress(ClientError), open_client(self._target) as client:
                    for lock_id in list(self._state.lock_ids):
                        with contextlib.suppress(ThriftException, ApplicationError):
                            client.call("heartbeat", HeartbeatRequest(lockid=lock_id))


class Conversation:
    """Completion has a client of its own, since it runs in other threads."""

    def __init__(self, session: SqlSession, target: CallTarget) -> None:
        self._session = session
        self._completing = ReconnectingClient(target, _nothing)
        self._names = CatalogNames(self._completing)
        self._keeper = LockKeeper(session.state, target)
        self._keeper.start()
        self.completer = SqlCompleter(self._names, lambda: session.state.database)

    @property
    def database(self) -> str:
        return shown_key(self._session.state.database)

    def run(self, text: str) -> bool:
        """Run statements; whether the metastore has answered."""
        try:
            self._session.run_text(text)
        except Unanswered:
            return False
        except (StatementFailed, BrokenPipeError):
            # What was wrong is said, or the person has left the pager.
            pass
        except KeyboardInterrupt:
            hint("interrupted")
        finally:
            self._names.forget()
        return True

    def close(self) -> None:
        self._keeper.stop()
        self._completing.close()
        self._session.close()


def _nothing(text: str) -> None:
    """Completion says nothing about its troubles."""
