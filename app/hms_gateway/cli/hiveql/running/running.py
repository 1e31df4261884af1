"""Runs statements: the one place that knows which function does which."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from hms_gateway.cli.hiveql import statements as say
from hms_gateway.cli.hiveql.running import altering, defining, describing, granting, locking, partitioning, showing
from hms_gateway.cli.hiveql.running.shell_state import CommandRefused, ResultRows, ShellState
from hms_gateway.cli.hiveql.statements import Statement
from hms_gateway.client.acquiring import SETTING_NAMES

_HELP: Final = """\
Statements end with a semicolon and may have several lines:
  SHOW DATABASES | TABLES | VIEWS | COLUMNS IN t | FUNCTIONS | TBLPROPERTIES t | CREATE TABLE t
  SHOW PARTITIONS t [WHERE k LIKE 'e%' AND (d IN ('2024-01-01') OR NOT n BETWEEN 1 AND 3)] [LIMIT n]
  SHOW LOCKS [t] [EXTENDED] | LEASE * | TRANSACTIONS | COMPACTIONS | GRANT USER u ON t | ROLES
  DESCRIBE [FORMATTED] t [PARTITION (k='v')] [column];   CREATE | ALTER | DROP DATABASE | TABLE | VIEW
  LOCK TABLE t EXCLUSIVE;   UNLOCK TABLE t;   EXPLAIN LOCKS statement;   ABORT TRANSACTIONS 1 2;   GRANT | REVOKE
  USE db;   SET name=value;   quit, or Ctrl-D
Tab completes, the arrow up is history, Ctrl-R searches it, Ctrl-C stops a statement or clears the line."""
_META: Final = "metaconf:"
_ENGINES: Final = "spark-sql of Spark, beeline of Hive, or Trino"
# Commands that do a part of it without an engine's shell.
_COMMANDS: Final = {
    "ANALYZE": "hms-gateway pipeline stats writes statistics",
    "EXPORT": "hms-gateway export writes definitions without data",
    "IMPORT": "hms-gateway import makes what hms-gateway export has written",
}


def run_statement(statement: Statement, state: ShellState) -> ResultRows | None:
    """What the statement gives, None when it gives nothing.

    Rows may still be made while they are read. Raises Refused, CommandError for a query, and what the client does.
    """
    return _RUNNERS[type(statement)](statement, state)


def _help(statement: say.Help, state: ShellState) -> ResultRows:
    return ResultRows(("help",), [(_HELP,)], is_text=True)


def _use(statement: say.Use, state: ShellState) -> None:
    showing.check_database(state, statement.database)
    state.database = statement.database


def _set(statement: say.SetOption, state: ShellState) -> ResultRows | None:
    name, value = statement.name, statement.value
    if name.startswith(_META):
        key = name.removeprefix(_META)
        if value is None:
            return _options({name: state.call("getMetaConf", key)})
        state.call("setMetaConf", key, value)
        return None
    if name and name not in SETTING_NAMES:
        known = ", ".join([*SETTING_NAMES, f"{_META}NAME for a setting of the metastore"])
        raise CommandRefused(f"setting {name} is not known here; known are {known}")
    if value is None:
        return _options(state.options if not name else {name: state.options.get(name, "")})
    state.options[name] = value
    return None


def _options(options: Mapping[str, str]) -> ResultRows:
    return ResultRows(("name", "value"), sorted(options.items()))


def _for_engines(statement: say.ForEngines, state: ShellState) -> ResultRows | None:
    command = _COMMANDS.get(statement.verb)
    raise CommandRefused(
        f"{statement.verb} needs an engine that reads and writes data, and a metastore is not one; "
        f"run it in {_ENGINES}, with this metastore behind it" + (f"; {command}" if command else "")
    )


def _repair(statement: say.Repair, state: ShellState) -> ResultRows | None:
    raise CommandRefused(f"REPAIR of table {statement.table} needs Spark; pip install 'hms-gateway[spark]' brings it")


_RUNNERS: Final[Mapping[type[Statement], Callable[[Any, ShellState], ResultRows | None]]] = MappingProxyType(
    {
        **showing.RUNNERS,
        **describing.RUNNERS,
        **defining.RUNNERS,
        **altering.RUNNERS,
        **partitioning.RUNNERS,
        **locking.RUNNERS,
        **granting.RUNNERS,
        say.Help: _help,
        say.Use: _use,
        say.SetOption: _set,
        say.ForEngines: _for_engines,
        say.Repair: _repair,
    }
)
