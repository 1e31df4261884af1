"""Profiles: what a person calls often, by name, in a file of TOML."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click
from click.core import ParameterSource

from hms_gateway.cli.calls.target_options import TIMEOUT_SECONDS_MAX, is_time_out
from hms_gateway.cli.terminal.output import fail
from hms_gateway.metastore.vocabulary.texts import did_you_mean
from hms_gateway.runtime.logins.login_tokens import TokenCommand

FILE_VARIABLE: Final = "HMS_GATEWAY_PROFILES"
# What a profile may say, with the type of its value.
_KEYS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "url": str,
        "user": str,
        "cacert": str,
        "insecure": bool,
        "password_file": str,
        "token_file": str,
        "token_command": list,
        "negotiate": bool,
        "certificate": str,
        "key": str,
        "timeout": float,
        "headers": list,
    }
)
_PATHS: Final = ("cacert", "password_file", "token_file", "certificate", "key")
_LOGINS: Final = ("password_file", "token_file", "token_command", "negotiate", "certificate", "key")


def profiles_file() -> Path:
    """Where profiles are looked for."""
    given = os.environ.get(FILE_VARIABLE)
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hms-gateway" / "profiles.toml"


def with_profile(name: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options with what the profile says in place of defaults and variables; the command line stays.

    An option of the command line about how to log in leaves out all that the profile says about it.
    """
    if name is None:
        return dict(given)
    profile = _values(name)
    if any(_is_typed(option) for option in _LOGINS if option in given) or _is_typed("password_stdin"):
        profile = {key: value for key, value in profile.items() if key not in _LOGINS}
    if "certificate" in profile:
        # A key of the environment belongs to another certificate.
        profile.setdefault("key", None)
    if "token_command" in profile:
        profile["token_command"] = TokenCommand(tuple(profile["token_command"]))
    if "headers" in profile:
        profile["header"] = tuple(profile.pop("headers"))
    return {**given, **{key: value for key, value in profile.items() if key in given and not _is_typed(key)}}


def _is_typed(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def _values(name: str) -> dict[str, Any]:
    """Ends the command where the profile cannot be used."""
    file = profiles_file()
    try:
        profiles = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        fail(f"profile {name} is not known: {file} does not exist", "docs/shell.md shows what such a file contains")
    except (OSError, ValueError) as error:
        fail(f"profiles file {file} cannot be read: {error}")
    tables = [key for key, value in profiles.items() if isinstance(value, dict)]
    if name not in tables:
        hint = f"it has {', '.join(tables)}" if tables else f"it has no table such as [{name}]"
        fail(f"profile {name} is not in {file}{did_you_mean(name, tables)}", hint)
    return {key: _checked(file, name, key, value) for key, value in profiles[name].items()}


def _checked(file: Path, name: str, key: str, value: Any) -> Any:
    if key not in _KEYS:
        fail(f"{file}: [{name}] has an unknown key {key}{did_you_mean(key, _KEYS)}", f"known are {', '.join(_KEYS)}")
    checked = _of_kind(_KEYS[key], value)
    if checked is None:
        fail(f"{file}: [{name}] {key} must be {_NOUNS[_KEYS[key]]}")
    if key == "timeout" and not is_time_out(checked):
        fail(f"{file}: [{name}] timeout must be a number from above 0 to {TIMEOUT_SECONDS_MAX:,}")
    if key == "token_command" and not checked:
        fail(f"{file}: [{name}] token_command is empty")
    return file.parent / Path(checked).expanduser() if key in _PATHS else checked


def _of_kind(kind: type, value: Any) -> Any:
    """None when it is not of that kind."""
    if kind is list:
        return value if isinstance(value, list) and all(isinstance(each, str) for each in value) else None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if isinstance(value, kind) else None


_NOUNS: Final[Mapping[type, str]] = MappingProxyType(
    {str: "text", bool: "true or false", float: "a number", list: "a list of texts"}
)
