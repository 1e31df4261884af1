"""Statements about the session, and those that need an engine."""

from collections.abc import Mapping
from typing import Final

from hms_gateway.cli.hiveql.shell_state import CommandRefused, QualifiedName, ResultRows, ShellState, statement
from hms_gateway.cli.hiveql.showing import check_database
from hms_gateway.client.acquiring import SETTING_NAMES

_HELP: Final = """\
Statements end with a semicolon and may have several lines:
  SHOW CATALOGS | DATABASES | TABLES | VIEWS | COLUMNS IN t | FUNCTIONS | TBLPROPERTIES t | CREATE TABLE t
  SHOW PARTITIONS t [WHERE k LIKE 'e%' AND (d IN ('2024-01-01') OR NOT n BETWEEN 1 AND 3)] [LIMIT n]
  SHOW SNAPSHOTS t [LIMIT n];   SHOW REFS t   (of an Iceberg table)
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


@statement
def help(state: ShellState) -> ResultRows:
    return ResultRows(("help",), [(_HELP,)], is_text=True)


@statement
def use(state: ShellState, database: str) -> None:
    check_database(state, database)
    state.database = database


@statement
def set_option(state: ShellState, name: str = "", value: str | None = None) -> ResultRows | None:
    """`SET`, `SET name`, `SET name=value`."""
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


@statement
def repair(
    state: ShellState, name: QualifiedName, is_adding: bool = True, is_dropping: bool = False
) -> ResultRows | None:
    if state.repair is None:
        raise CommandRefused(f"REPAIR of table {name} needs Spark; pip install 'hms-gateway[spark]' brings it")
    return state.repair(state, name, is_adding, is_dropping)


@statement
def for_engines(state: ShellState, verb: str) -> ResultRows | None:
    """Something that reads or writes data, which a metastore does not do."""
    command = _COMMANDS.get(verb)
    raise CommandRefused(
        f"{verb} needs an engine that reads and writes data, and a metastore is not one; "
        f"run it in {_ENGINES}, with this metastore behind it" + (f"; {command}" if command else "")
    )


def _options(options: Mapping[str, str]) -> ResultRows:
    return ResultRows(("name", "value"), sorted(options.items()))
