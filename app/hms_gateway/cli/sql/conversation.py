"""What a shell does between two prompts: runs what was typed, pages its rows, keeps locks, completes names."""

from hms_gateway.cli.calls.targets import CallTarget
from hms_gateway.cli.sql.completing import CatalogNames, SqlCompleter
from hms_gateway.cli.sql.lock_keeping import LockKeeper
from hms_gateway.cli.sql.reconnecting import ReconnectingClient
from hms_gateway.cli.sql.session import SqlSession, StatementFailed, Unanswered
from hms_gateway.cli.terminal.output import err


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
        return self._session.state.database

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
            err.print("interrupted", style="dim")
        finally:
            self._names.forget()
        return True

    def close(self) -> None:
        self._keeper.stop()
        self._completing.close()
        self._session.close()


def _nothing(text: str) -> None:
    """Completion says nothing about its troubles."""
