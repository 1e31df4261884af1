"""Every setting of the gateway: its name, default and meaning, from environment, TOML file and command line.

The descriptions are the documentation: `--help` and docs are generated from them.
"""

import dataclasses
import os
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource
from pydantic_settings import SettingsError as SourceError

from app.addresses import is_loopback
from app.limits import Limits

ENVIRONMENT_PREFIX = "HMS_GATEWAY_"
# Variables with our prefix that are no settings: where they are, and what `hms-gateway call` takes.
OTHER_VARIABLES = frozenset(f"{ENVIRONMENT_PREFIX}{name}" for name in ("CONFIG", "URL", "USER", "PASSWORD"))


class SettingsError(Exception):
    """A setting is wrong or unknown; the text names it and is meant for the operator."""


def _limits(value: object) -> object:
    """A table of limits, each a positive number of its field's type; what is not named keeps its default."""
    if not isinstance(value, dict):
        return value
    fields = {field.name: field for field in dataclasses.fields(Limits)}
    numbers: dict[str, Any] = {}
    for name, given in value.items():
        if name not in fields:
            raise ValueError(f"unknown limit {name!r}; known are {', '.join(fields)}")
        try:
            numbers[name] = int(given) if isinstance(fields[name].default, int) else float(given)
        except (TypeError, ValueError):
            raise ValueError(f"limit {name} must be a number, not {given!r}") from None
        if numbers[name] <= 0:
            raise ValueError(f"limit {name} must be above zero")
    return Limits(**numbers)


def _network(value: object) -> object:
    """An address or CIDR network, checked here so that a typing error stops the start and not a request."""
    ip_network(str(value), strict=False)
    return str(value)


Network = Annotated[str, BeforeValidator(_network)]


class ProxyUser(BaseModel):
    """Whom an authenticated user may act for with `?doAs=`, and from where (clients §9)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    users: list[str] = Field(description='Names of the users it may act for; ["*"] is everybody.')
    hosts: list[Network] = Field(default=[], description="Addresses or networks it may do so from; empty is anywhere.")


class Settings(BaseSettings):
    """What an operator can set. A name in upper case behind HMS_GATEWAY_ is its environment variable."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    host: str = Field(default="127.0.0.1", description="Address to listen on; 0.0.0.0 is every IPv4 address.")
    port: int = Field(default=30443, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    path: str = Field(
        default="/gateway/default/hmshttpthrift/api/hms",
        pattern=r"^/.+",
        description="URL path of the MS-HMSHTTP endpoint (Hive 2.3 shapes); /metastore is always served beside it.",
    )
    data_dir: Path = Field(default=Path("var"), description="Folder of the embedded database, certificate, passwords.")
    database_url: str | None = Field(
        default=None, description="SQLAlchemy URL of the database; unset is SQLite in data_dir."
    )
    database_connections_max: int = Field(
        default=40, ge=2, description="Connections each process may hold for reading; has to exceed streams_max."
    )
    workers: int = Field(default=1, ge=1, le=256, description="Server processes; on SQLite one is fastest.")

    tls: bool = Field(default=True, description="Serve HTTPS. Without it passwords travel readable.")
    tls_certificate: Path | None = Field(
        default=None, description="PEM certificate chain; unset makes a self-signed one in data_dir."
    )
    tls_key: Path | None = Field(default=None, description="PEM private key that belongs to tls_certificate.")

    users_file: Path | None = Field(default=None, description="Password file, htpasswd style; unset is data_dir/users.")
    admin_password: SecretStr | None = Field(
        default=None, description="Password of the user admin when the first start makes the password file."
    )
    thrift_port: int | None = Field(
        default=None, ge=1, le=65535, description="Port for Thrift over TCP (PySpark, PyIceberg, Trino); unset is none."
    )
    thrift_host: str = Field(default="127.0.0.1", description="Address that the Thrift port listens on.")
    thrift_sasl: Literal["off", "allow", "require"] = Field(
        default="off",
        description="SASL PLAIN with the passwords of users_file on the Thrift port. Without it clients are who they "
        "say, so an address that others can reach has to require it. There is no TLS on this port.",
    )
    thrift_dialect: Literal["2.3", "4"] = Field(
        default="2.3", description="Shapes of the messages on the Thrift port: those of Hive 2.3 or of Hive 4."
    )
    realm: str = Field(default="hms-gateway", pattern=r'^[^"\\\x00-\x1f]+$', description="Realm named to browsers.")
    credentials_remembered_seconds: float = Field(
        default=300.0, ge=0, description="How long a verified password is not hashed again."
    )

    trusted_proxies: list[Network] = Field(
        default=[], description="Addresses or networks of proxies whose word on the user's name is taken (Knox)."
    )
    trusted_proxy_users: list[str] = Field(
        default=["*"], description='Users that trusted proxies may name; ["*"] is everybody.'
    )
    trusted_user_headers: list[str] = Field(
        default=["x-knox-actor-id", "x-actor-username", "sm_user"],
        description="Headers a trusted proxy names the user in; the first one present counts.",
    )
    proxy_users: dict[str, ProxyUser] = Field(
        default={}, description="Authenticated users that may act for others with ?doAs=."
    )
    cors_origins: list[str] = Field(default=["*"], description='Origins of web pages that may call; ["*"] is any.')

    txn_timeout_seconds: float = Field(
        default=300.0, gt=0, le=10**9, description="A transaction or lock without a heartbeat for longer is lost."
    )
    administrators: list[str] = Field(
        default=["admin"], description="Users who may take the leases and locks of others away."
    )
    lease_seconds_max: int = Field(
        default=86_400, ge=1, le=10**9, description="The longest time a lease may last, extensions included."
    )
    lease_wait_seconds_max: int = Field(
        default=300, ge=0, le=3600, description="The longest time a request for a lease may wait."
    )

    warehouse_dir: str | None = Field(
        default=None, description="Location of new databases, with scheme; unset is data_dir/warehouse as file:."
    )
    file_systems: dict[str, Literal["manage", "ignore", "refuse"]] = Field(
        default={"file": "manage"},
        description="By scheme: make, move and delete directories (manage), leave them alone (ignore), "
        "or refuse such locations (refuse).",
    )
    file_system_default: Literal["manage", "ignore", "refuse"] | None = Field(
        default=None,
        description="What holds for schemes that file_systems does not name; unset ignores the known ones of Hadoop "
        "and object stores and refuses the rest.",
    )
    file_roots: list[str] = Field(
        default=[], description="Locations outside which no directory is made, moved or deleted; empty is anywhere."
    )

    event_seconds_max: int = Field(
        default=86_400, ge=60, description="Notification events are kept so long for clients that follow the log."
    )
    partition_mark_seconds_max: int = Field(
        default=0, ge=0, description="What markPartitionForEvent notes is kept so long; 0 is for ever."
    )

    limits: Annotated[Limits, BeforeValidator(_limits)] = Field(
        default=Limits(), description="Bounds by name, such as body_bytes_max."
    )
    threads: int = Field(default=32, ge=1, le=1000, description="Threads that answer calls the cache cannot.")
    streams_max: int = Field(
        default=24,
        ge=1,
        description="Long replies that may be on their way at the same time; each keeps a database connection.",
    )
    call_seconds_max: float = Field(default=600.0, gt=0, description="A call that takes longer is given up with 503.")
    header_seconds_max: float = Field(
        default=20.0, gt=0, description="Time a connection has for its TLS handshake and for each request's headers."
    )
    idle_seconds_max: float = Field(default=75.0, gt=0, description="How long an idle keep-alive connection is kept.")
    write_stall_seconds_max: float = Field(
        default=60.0, gt=0, description="A client that takes nothing of its reply for so long is cut off."
    )
    backlog: int = Field(default=2048, ge=1, description="Connections the kernel holds until they are accepted.")

    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Least level logged.")
    log_format: Literal["json", "text"] = Field(default="json", description="One JSON object per line, or for people.")
    access_log: bool = Field(default=True, description="Write one line per call.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, env_settings)

    @model_validator(mode="after")
    def _certificate_and_key(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together: set both or none")
        return self

    @model_validator(mode="after")
    def _streams_leave_connections(self) -> Self:
        if self.streams_max >= self.database_connections_max:
            raise ValueError("streams_max has to be below database_connections_max, or long replies starve the rest")
        return self

    @model_validator(mode="after")
    def _others_show_a_password(self) -> Self:
        if self.thrift_port is not None and self.thrift_sasl != "require" and not is_loopback(self.thrift_host):
            raise ValueError(
                f"thrift_host {self.thrift_host} can be reached by others, who could call in anybody's name: "
                "set thrift_sasl to require, or listen on 127.0.0.1"
            )
        return self

    @property
    def users_path(self) -> Path:
        return self.users_file or self.data_dir / "users"

    @property
    def warehouse_location(self) -> str:
        """Where databases without a location of their own live, `file:/srv/var/warehouse`."""
        return self.warehouse_dir or f"file:{(self.data_dir / 'warehouse').absolute()}"


def load_settings(config: Path | None = None, **given: object) -> Settings:
    """Read the settings: `given` (command line) before environment before the TOML file before defaults.

    Values of `given` that are None count as not given. Raises SettingsError naming the setting.
    """
    _refuse_unknown_variables()
    source = _with_file(config) if config is not None else Settings
    try:
        named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        loaded = source(**named)
    except ValidationError as error:
        raise SettingsError(_readable(error)) from error
    except (SourceError, ValueError) as error:
        raise SettingsError(f"{config or 'environment'}: {error}") from error
    # Of the class that everybody can import: worker processes get the settings pickled.
    return Settings.model_construct(**{name: getattr(loaded, name) for name in Settings.model_fields})


def described_settings() -> list[tuple[str, FieldInfo]]:
    """Name and field (default, description) of every setting, in order of their declaration."""
    return list(Settings.model_fields.items())


def _with_file(config: Path) -> type[Settings]:
    if not config.is_file():
        raise SettingsError(f"settings file {config} not found")

    class FileSettings(Settings):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *sources: PydanticBaseSettingsSource, **named: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            file_source = TomlConfigSettingsSource(settings_cls, toml_file=config)
            return (named["init_settings"], named["env_settings"], file_source)

    return FileSettings


def _refuse_unknown_variables() -> None:
    """A misspelt variable would otherwise be silently ignored."""
    known = {ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    for variable in sorted(os.environ):
        name = variable.upper()
        if name.startswith(ENVIRONMENT_PREFIX) and name.split("__")[0] not in known:
            raise SettingsError(f"environment variable {variable} is no setting")


def _readable(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"]) or "settings"
        is_unknown = problem["type"] == "extra_forbidden"
        lines.append(f"{name}: {'unknown setting' if is_unknown else problem['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines)
