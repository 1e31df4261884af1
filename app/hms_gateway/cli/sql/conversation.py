"""The shell between two prompts: runs statements, pages their rows, keeps locks alive, completes names."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hms_gateway.cli.calls.calling import open_client
from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.hiveql.shell_state import ShellState
from hms_gateway.cli.sql.session import ReconnectingClient, SqlSession, StatementFailed, Unanswered
from hms_gateway.cli.terminal.output import hint
from hms_gateway.client.metastore_client import ClientError
from hms_gateway.metastore.vocabulary.hiveql_tokens import Token, split_statements, tokens_of
from hms_gateway.metastore.vocabulary.table_types import FORMATS
from hms_gateway.rpc.structs import HeartbeatRequest, ThriftException
from hms_gateway.rpc.structs.catalogs import shown_key
from hms_gateway.rpc.wire import ApplicationError

KEPT_SECONDS: Final = 15.0
_TABLES_LOOKED_AT_MAX: Final = 500
# What comes next after these words, the longest that fits first.
_AFTER: Final[Mapping[tuple[str, ...], str]] = MappingProxyType(
    {
        (): "SHOW DESCRIBE HELP CREATE ALTER DROP USE SET LOCK UNLOCK EXPLAIN GRANT REVOKE ABORT MSCK TRUNCATE",
        ("SHOW",): "DATABASES TABLES VIEWS PARTITIONS COLUMNS TBLPROPERTIES FUNCTIONS GRANT ROLES LOCKS LEASE "
        "TRANSACTIONS COMPACTIONS CREATE PRINCIPALS",
        ("SHOW", "CREATE"): "TABLE DATABASE",
        ("DESCRIBE",): "FORMATTED EXTENDED DATABASE FUNCTION",
        ("CREATE",): "TABLE EXTERNAL DATABASE VIEW FUNCTION ROLE OR",
        ("CREATE", "EXTERNAL"): "TABLE",
        ("DROP",): "TABLE DATABASE VIEW FUNCTION ROLE FORCE",
        ("DROP", "FORCE"): "LEASE",
        ("ALTER",): "TABLE VIEW DATABASE",
        ("LOCK",): "TABLE DATABASE",
        ("UNLOCK",): "TABLE DATABASE",
        ("EXPLAIN",): "LOCKS",
        ("ABORT",): "TRANSACTIONS",
        ("MSCK",): "REPAIR",
        ("MSCK", "REPAIR"): "TABLE",
        ("GRANT",): "SELECT INSERT UPDATE DELETE ALL ROLE",
        ("REVOKE",): "SELECT INSERT UPDATE DELETE ALL ROLE GRANT",
        ("SET",): "TBLPROPERTIES SERDE SERDEPROPERTIES FILEFORMAT LOCATION OWNER",
        ("ADD",): "COLUMNS PARTITION CONSTRAINT",
        ("STORED",): "AS",
        ("STORED", "AS"): " ".join(FORMATS),
        ("FILEFORMAT",): " ".join(FORMATS),
    }
)
# What may follow the name of a table.
_OF_TABLES: Final = (
    "RENAME", "ADD", "DROP", "REPLACE", "CHANGE", "SET", "UNSET", "PARTITION", "CLUSTERED", "COMPACT", "EXCHANGE",
    "TOUCH",
)  # fmt: skip
_OTHERS: Final = (
    "PARTITIONED", "BY", "COMMENT", "STORED", "AS", "LOCATION", "TBLPROPERTIES", "LIKE", "IN", "FROM", "ON", "TO",
    "PARTITION", "EXTENDED", "SHARED", "EXCLUSIVE", "IF", "EXISTS", "NOT", "CASCADE", "RESTRICT", "PURGE", "WITH",
)  # fmt: skip
_DATABASE_NEXT: Final = ("USE", "DATABASE", "SCHEMA", "IN", "FROM")
_TABLE_NEXT: Final = (
    "TABLE", "VIEW", "PARTITIONS", "TBLPROPERTIES", "FORMATTED", "EXTENDED", "DESCRIBE", "DESC", "LOCKS", "LIKE", "ON",
    "COLUMNS",
)  # fmt: skip


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
    return [column.name for column in [*((table.sd and table.sd.cols) or ()), *(table.partitionKeys or ())]]


class SqlCompleter(Completer):  # type: ignore[misc]
    """`database` gives the current one."""

    def __init__(self, names: CatalogNames, database: Callable[[], str]) -> None:
        self._names = names
        self._database = database

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        last = [begin for _, begin in split_statements(text)]
        tokens = tokens_of(text[last[-1] :] if last and not text.rstrip().endswith(";") else "")
        word = ""
        if tokens and tokens[-1].is_name and text.endswith(tokens[-1].text):
            word = tokens.pop().text
        if tokens and tokens[-1].is_string and not text[-1:].isspace():
            return
        for name in dict.fromkeys(self._candidates(tokens)):
            if name.lower().startswith(word.lower()):
                shown = name.lower() if word.islower() and name.isupper() else name
                yield Completion(shown, start_position=-len(word))

    def _candidates(self, tokens: list[Token]) -> Iterable[str]:
        words = [token.upper or token.text for token in tokens]
        tables = self._names.partitioned_tables if words[:2] == ["SHOW", "PARTITIONS"] else self._names.tables
        if len(words) >= 2 and words[-1] == ".":
            yield from tables(tokens[-2].text.lower())
            return
        for length in (2, 1, 0):
            key = tuple(words[len(words) - length :]) if length <= len(words) else ("-",)
            if key in _AFTER and (length or not words):
                yield from _AFTER[key].split()
                break
        if words and words[-1] in _DATABASE_NEXT:
            yield from self._names.databases()
        if words and words[-1] in (*_TABLE_NEXT, "FROM", "IN"):
            yield from tables(self._database())
            yield from self._names.databases()
        elif len(words) > 1:
            yield from _OF_TABLES if words[:2] == ["ALTER", "TABLE"] else ()
            yield from self._columns_of(tokens)
            yield from _OTHERS

    def _columns_of(self, tokens: list[Token]) -> Iterable[str]:
        """Columns of the first table that the statement names."""
        for at, token in enumerate(tokens):
            if token.upper in _TABLE_NEXT and at + 1 < len(tokens) and tokens[at + 1].is_name:
                first = tokens[at + 1].text.lower()
                if at + 3 < len(tokens) and tokens[at + 2].upper == ".":
                    return self._names.columns(first, tokens[at + 3].text.lower())
                if first in self._names.tables(self._database()):
                    return self._names.columns(self._database(), first)
        return ()


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
