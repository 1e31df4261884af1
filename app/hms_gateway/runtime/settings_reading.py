"""Reading of settings from command line, environment, TOML file and defaults, with errors meant for the operator."""

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from hms_gateway.runtime.limits import FixedLimits, Limits
from hms_gateway.runtime.settings import FixedSettings, Secret, Settings, SettingsError

ENVIRONMENT_PREFIX = "HMS_GATEWAY_"
# Variables with our prefix that are not settings: where they are, and what commands that call a gateway take.
OTHER_VARIABLES = frozenset(
    f"{ENVIRONMENT_PREFIX}{name}"
    for name in (
        *("CONFIG", "URL", "USER", "PASSWORD", "TOKEN", "CERTIFICATE", "KEY", "CACERT", "PROFILE", "PROFILES"),
        "CATALOG",
        *("PIPELINE_STATE", "SOURCE_PASSWORD"),
    )
)
# Besides true, false, 1 and 0.
_BOOLEANS = {"yes": True, "y": True, "on": True, "t": True, "no": False, "n": False, "off": False, "f": False}


# Settings that are gone, with what to set now; those that are fixed are told from their struct.
REPLACED = {
    "path": 'replaced by paths, a table of all paths such as paths = { "/api/hms" = "2.3", "/metastore" = "4" }',
    "trusted_user_headers": "replaced by trusted_proxy.user_header; name the one header that the trusted proxies set",
    "trusted_proxies": "replaced by trusted_proxy.addresses",
    "trusted_proxy_users": "replaced by trusted_proxy.users",
    "trusted_user_header": "replaced by trusted_proxy.user_header",
    "trusted_user_parameter": "replaced by trusted_proxy.user_parameter",
    "trusted_asterisk_password": "replaced by trusted_proxy.asterisk_password",
    "trusted_proxy_secret": "replaced by trusted_proxy.secret",
    "trusted_proxy_secret_header": "replaced by trusted_proxy.secret_header",
    "trusted_proxy_authority": "replaced by trusted_proxy.authority",
    "trusted_proxy_certificate_names": "replaced by trusted_proxy.certificate_names",
    "client_authority": "replaced by client_certificates.authority",
    "client_certificate_user": "replaced by client_certificates.user",
    "client_revocations": "replaced by client_certificates.revocations",
    "kerberos_keytab": "replaced by kerberos.keytab",
    "kerberos_realms": "replaced by kerberos.realms",
    "file_system_default": 'replaced by "*" in file_systems',
    "event_seconds_max": "replaced by metastore.event_seconds_max",
    "partitions_per_reply_max": "replaced by metastore.partitions_per_reply_max",
    "require_write_id_lists": "replaced by metastore.require_write_id_lists",
    "refuse_incompatible_column_changes": "replaced by metastore.refuse_incompatible_column_changes",
    "otel_endpoint": "replaced by otel.endpoint",
    "otel_share": "replaced by otel.share",
    "thrift_open": 'replaced by thrift_networks; ["127.0.0.0/8", "::1"] is every account of this machine',
    "tokens_file": "replaced by data_dir; the tokens are in its file tokens",
    "one_processor": "gone: the system places the threads",
    "access_log": "replaced by log_level; a call writes a line at debug and info",
}
_EXPECTED = re.compile(r"Expected `(\w+)[^`]*`(?: (<=|>=|<|>) ([-\d.]+))?")
# Of msgspec, about a text and a list.
_NOT_EMPTY = ("Expected `str` of length >= 1", "Expected `array` of length >= 1")
_NOUNS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": "a list",
    "object": "a table",
}
_BOUNDS = {"<=": "of at most", ">=": "of at least", "<": "below", ">": "above"}


def _settable(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The types of a struct's own fields; those of its base are fixed."""
    kinds = get_type_hints(struct, include_extras=True)
    return {name: kinds[name] for name in struct.__annotations__}


_KINDS: dict[str, Any] = _settable(Settings)
_LIMITS: dict[str, Any] = _settable(Limits)
_FIXED: dict[str, Any] = msgspec.structs.asdict(FixedSettings())
_FIXED_LIMITS: dict[str, Any] = msgspec.structs.asdict(FixedLimits())


def load_settings(config: Path | None = None, **given: object) -> Settings:
    """Read the settings: `given` (command line) before environment before the TOML file before defaults.

    Values of `given` that are None count as not given. Raises SettingsError naming the setting, and the file where
    that alone sets it.
    """
    values: dict[str, Any] = {} if config is None else _from_file(config)
    of_file = set(values)
    for more in (_from_environment(os.environ), {name: value for name, value in given.items() if value is not None}):
        of_file -= more.keys()
        _merge(more, values)
    return _settings(values, dict.fromkeys(of_file, f"{config}: setting "))


def _settings(values: Mapping[str, Any], places: Mapping[str, str]) -> Settings:
    """Checked one by one, so that the operator hears of everything that is wrong at once."""
    problems, checked = [], {}
    for name, value in values.items():
        try:
            if name not in _KINDS:
                raise SettingsError(f"{name}: {_gone(name) or _unknown(name)}")
            checked[name] = _converted(name, _KINDS[name], value)
        except SettingsError as error:
            problems.append(f"{places.get(name, '')}{error}")
    if problems:
        raise SettingsError("; ".join(problems))
    try:
        return Settings(**checked)
    except ValueError as error:
        named = re.match(r"\w*", str(error))
        raise SettingsError(f"{places.get(named[0], '') if named else ''}{error}") from error


def _converted(name: str, kind: Any, value: Any) -> Any:
    """The value as one of its type, from whatever TOML, environment or command line can say. Raises SettingsError."""
    plain = _plain(kind)
    if isinstance(value, dict):
        if get_origin(plain) is dict:
            return {key: _converted(f"{name}.{key}", get_args(plain)[1], one) for key, one in value.items()}
        table = next((one for one in _alternatives(kind) if _is_table(one)), None)
        if table is not None:
            return _table(name, table, value)
    if plain is bool and isinstance(value, str):
        value = _BOOLEANS.get(value.lower(), value)
    try:
        return msgspec.convert(value, kind, strict=False, dec_hook=_made_of_text)
    except msgspec.ValidationError as error:
        words = ", ".join(_words(plain))
        what = f"must be one of {words}" if words else what_must_be(str(error))
        # A database URL may have a password in it.
        is_secret = name == "database_url" or Secret in (plain, *get_args(plain))
        raise SettingsError(f"{name} {what}" + ("" if is_secret else f", not {value!r}")) from error


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _table(name: str, struct: type[msgspec.Struct], given: Mapping[str, Any]) -> msgspec.Struct:
    """A table of the settings; what is not named keeps its default."""
    kinds = _LIMITS if struct is Limits else _settable(struct)
    values = {}
    for key, value in given.items():
        if key not in kinds:
            gone = _gone_limit(key) if struct is Limits else None
            raise SettingsError(f"{name}: {gone or f'unknown key {key!r}{_meant(key, kinds)}'}")
        values[key] = _converted(f"{name}.{key}", kinds[key], value)
    missing = [one.name for one in msgspec.structs.fields(struct) if one.required and one.name not in values]
    if missing:
        raise SettingsError(f"{name}: {missing[0]} is missing")
    try:
        return struct(**values)
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from error


def _unknown(name: str) -> str:
    return f"unknown setting{_meant(name)}"


def _meant(name: str, known: Iterable[str] = _KINDS) -> str:
    """A setting or limit that is spelled nearly so. A start without such a mistake does not load the library for it."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def what_must_be(problem: str) -> str:
    """Demand of a text of msgspec such as "Expected `int` <= 65535", in words."""
    what, _, place = problem.partition(" - at `$")
    if what in _NOT_EMPTY:
        return "must not be empty"
    expected = _EXPECTED.match(what)
    if expected is None:
        return f"is refused ({problem})"
    kind, bound, number = expected.groups()
    at = [f"at {place.removesuffix('`')}"] if place else []
    return " ".join(["must be", _NOUNS.get(kind, kind), *([_BOUNDS[bound], number] if bound else []), *at])


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _words(kind: Any) -> list[str]:
    """Words that may be said, where they are few."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [word for part in get_args(kind) for word in _words(part)]


def _made_of_text(kind: type, value: object) -> object:
    """For the types that msgspec does not know: Path and Secret."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, str | Path):
        raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
    if kind is Path and not value:
        raise ValueError(_NOT_EMPTY[0])  # or it would be the current folder
    return kind(value)


def _gone_limit(name: str) -> str | None:
    if name in _FIXED_LIMITS:
        return f"{name} is fixed at {_FIXED_LIMITS[name]}"
    for share in ("share_per_user", "share_per_address"):
        if name.endswith(f"_{share.removeprefix('share_')}_max"):
            return f"{name} is replaced by {share}, a fraction of every total"
    return None


def _gone(name: str) -> str | None:
    """The reason that a setting of an earlier version cannot be set; None for a name that was none."""
    return f"fixed at {_FIXED[name]}" if name in _FIXED else REPLACED.get(name)


def _from_file(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingsError(f"settings file {config} not found") from error
    except (OSError, ValueError) as error:
        raise SettingsError(f"{config}: {error}") from error


def _from_environment(variables: Mapping[str, str]) -> dict[str, Any]:
    """Lists and tables are JSON; `__` leads into a table. A misspelt variable would otherwise be silently ignored."""
    values: dict[str, Any] = {}
    for variable, text in sorted(variables.items()):
        upper = variable.upper()
        if not upper.startswith(ENVIRONMENT_PREFIX) or upper in OTHER_VARIABLES:
            continue
        name, *keys = upper.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        if name not in _KINDS:
            problem = _gone(name)
            raise SettingsError(
                f"environment variable {variable} is not a setting{_meant(name)}"
                if problem is None
                else f"{variable}: {problem}"
            )
        is_json = text.startswith(("[", "{")) if keys else any(map(_is_compound, _alternatives(_KINDS[name])))
        value = _from_json(variable, text) if is_json else text
        for key in reversed(keys):
            value = {key: value}
        _merge({name: value}, values)
    return values


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """The type itself, and those of a union such as `Ldap | None`."""
    plain = _plain(kind)
    return (plain, *get_args(plain))


def _is_compound(kind: Any) -> bool:
    return _is_table(kind) or get_origin(kind) in (list, dict)


def _from_json(variable: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingsError(f'environment variable {variable} is not JSON (a list is ["a", "b"]): {error}') from error


def _merge(more: Mapping[str, Any], values: dict[str, Any]) -> None:
    """Put `more` over `values`, table by table."""
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(values.get(name), dict):
            _merge(value, values[name])
        else:
            values[name] = value
