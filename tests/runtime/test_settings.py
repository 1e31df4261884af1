"""Where settings come from, and how wrong ones are named."""

import pickle
import re
from pathlib import Path

import pytest

from hms_gateway.pipeline.connection import VARIABLES
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import ProxyUser, Secret, Settings, SettingsError
from hms_gateway.runtime.settings_reading import load_settings


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    import os

    for name in list(os.environ):
        if name.startswith("HMS_GATEWAY_"):
            monkeypatch.delenv(name)


TRUSTING = "trusted_proxy.addresses = ['10.0.0.5']\ntrusted_proxy.user_header = 'SM_USER'\n"


def file(tmp_path, text):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return path


def test_defaults():
    settings = load_settings()
    assert (settings.port, settings.tls, settings.limits) == (30443, True, Limits())
    assert settings.paths == {"/gateway/default/hmshttpthrift/api/hms": "2.3", "/metastore": "4"}
    assert settings.warehouse_location.startswith("file:/")


def test_the_command_line_wins_over_the_environment_over_the_file(tmp_path, monkeypatch):
    path = file(tmp_path, 'host = "a"\nport = 1\nworkers = 3\n')
    monkeypatch.setenv("HMS_GATEWAY_HOST", "b")
    monkeypatch.setenv("HMS_GATEWAY_PORT", "2")
    settings = load_settings(path, host="c", port=None)
    assert (settings.host, settings.port, settings.workers) == ("c", 2, 3)


def test_limits_are_set_one_by_one(tmp_path, monkeypatch):
    path = file(tmp_path, "[limits]\nbody_bytes_max = 5\ndrain_seconds_max = 1.5\n")
    monkeypatch.setenv("HMS_GATEWAY_LIMITS__CONNECTIONS_MAX", "7")
    assert load_settings(path).limits == Limits(body_bytes_max=5, drain_seconds_max=1.5, connections_max=7)


def test_proxy_users_and_file_systems_are_tables(tmp_path):
    path = file(
        tmp_path,
        f'{TRUSTING}[proxy_users.knox]\nusers = ["*"]\nhosts = ["10.1.0.0/16"]\n'
        '[file_systems]\nfile = "manage"\ns3a = "refuse"\n',
    )
    settings = load_settings(path)
    assert settings.proxy_users["knox"].hosts == ["10.1.0.0/16"]
    assert settings.file_systems == {"file": "manage", "s3a": "refuse"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("prot = 1", "prot: unknown setting; did you mean port?"),
        ('port = "x"', "port"),
        ("port = 70000", "port"),
        ("[limits]\nbody = 1", "body"),
        ("[limits]\nbody_bytes_max = 0", "body_bytes_max"),
        ('[limits]\nbody_bytes_max = "many"', "body_bytes_max"),
        ("[limits]\nbody_bytes_max = inf", "body_bytes_max must be a whole number, not inf"),
        ("[limits]\nbody_read_seconds_max = nan", "body_read_seconds_max must be a number above 0.0, not nan"),
        ("[limits]\nshare_per_user = 1.0", "share_per_user must be a number of at most 0.75, not 1.0"),
        ("[limits]\nnesting_depth_max = 7", "limits: nesting_depth_max is fixed at 64"),
        ("[limits]\nuploads_per_address_max = 7", "uploads_per_address_max is replaced by share_per_address"),
        ("threads = 7", "threads: fixed at 32"),
        ("access_log = false", "access_log: replaced by log_level"),
        ("[limits]\nbody_byte_max = 1", "unknown key 'body_byte_max'; did you mean body_bytes_max?"),
        ('host = ""', "setting host must not be empty, not ''$"),
        ('thrift_host = ""', "thrift_host must not be empty"),
        ('data_dir = ""', "data_dir must not be empty"),
        ('users_file = ""', "users_file must not be empty"),
        ('trusted_proxy.addresses = ["10.0.0.300"]', "10.0.0.300"),
        ("[proxy_users.knox]\nuser = 1", "proxy_users.knox"),
        ('file_systems = { s3 = "maybe" }', "file_systems.s3"),
        ('tls_key = "/k"', "tls_certificate"),
        ('path = "relative"', "path"),
        ('trusted_user_headers = ["sm_user"]', "trusted_user_headers: replaced by trusted_proxy.user_header"),
        ('trusted_proxies = ["10.0.0.5"]', "trusted_proxies: replaced by trusted_proxy.addresses"),
        (
            'trusted_proxy.addresses = ["10.0.0.5"]',
            "trusted_proxy: addresses is set without .*X-Knox-Actor-ID.*SM_USER",
        ),
        ('trusted_proxy.user_header = "SM_USER"', "user_header has no effect without addresses"),
        (f'trusted_proxy.secret = "{"s" * 16}"', "secret has no effect without addresses"),
        (f"{TRUSTING}trusted_proxy.asterisk_password = true", "user_header and asterisk_password are set"),
        (f'{TRUSTING}trusted_proxy.secret = "too short"', "secret is too weak"),
        ('trusted_proxy.authority = "/a.pem"', "authority has no effect without addresses"),
        (f"{TRUSTING}trusted_proxy.certificate_names = ['knox']", "needs authority"),
        (f"{TRUSTING}trusted_proxy.authority = '/a.pem'\ntls = false", "trusted_proxy.authority needs tls"),
        (f'{TRUSTING}trusted_proxy.secret_header = "a b"', "secret_header: 'a b' is not the name"),
        (f"{TRUSTING}forwarding_proxies = ['any']", "forwarding_proxies"),
        ("trusted_proxy = {addresses = ['::1'], user_header = 'Authorization'}", "user_header: Authorization"),
        ("forwarded_header = 'X-Real-IP'", "forwarded_header must be one of X-Forwarded-For, Forwarded"),
        ('cors_origins = ["https://page.example/"]', "cors_origins: 'https://page.example/' is not an origin"),
        ('cors_origins = ["page.example"]', "cors_origins: 'page.example' is not an origin"),
        ("a = [", "settings.toml"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, text, named):
    with pytest.raises(SettingsError, match=named):
        load_settings(file(tmp_path, text))


def test_a_variable_of_a_replaced_setting_says_what_replaced_it(monkeypatch):
    monkeypatch.setenv("HMS_GATEWAY_TRUSTED_USER_HEADERS", '["sm_user"]')
    with pytest.raises(SettingsError, match="HMS_GATEWAY_TRUSTED_USER_HEADERS: replaced by trusted_proxy"):
        load_settings()


@pytest.mark.parametrize("origin", ["https://page.example", "http://localhost:8000", "http://[::1]:*", "null", "*"])
def test_origins_of_pages_are_named_with_scheme_and_port(tmp_path, origin):
    assert load_settings(file(tmp_path, f'cors_origins = ["{origin}"]')).cors_origins == [origin]


def test_an_unknown_variable_is_named(monkeypatch):
    monkeypatch.setenv("HMS_GATEWAY_PROT", "1")
    with pytest.raises(SettingsError, match="HMS_GATEWAY_PROT"):
        load_settings()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"none\.toml"):
        load_settings(tmp_path / "none.toml")


def test_every_default_may_be_given():
    defaults = load_settings()
    given = {name: getattr(Settings(), name) for name in Settings.__annotations__}
    assert load_settings(**given) == defaults


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("THRIFT_PORT", "9083", 9083),
        ("LOCKS_IMPLICIT", "deny", "deny"),
        ("TLS_CERTIFICATE", "/c", None),
        ("ADMIN_PASSWORD", "{secret}", Secret("{secret}")),
        ("DATABASE_URL", "null", "null"),
        ("DRAIN_IDLE_SECONDS", "5", 5.0),
        ("LOG_FORMAT", "text", "text"),
    ],
)
def test_every_kind_of_setting_can_be_a_variable(monkeypatch, name, text, expected):
    monkeypatch.setenv(f"HMS_GATEWAY_{name}", text)
    if expected is None:
        monkeypatch.setenv("HMS_GATEWAY_TLS_KEY", text)
        expected = Path(text)
    assert getattr(load_settings(), name.lower()) == expected


def test_settings_travel_to_worker_processes(tmp_path):
    settings = load_settings(file(tmp_path, "port = 1\n[limits]\nbody_bytes_max = 5\n"), admin_password="secret")
    copy = pickle.loads(pickle.dumps(settings))
    assert (copy, type(copy)) == (settings, Settings)
    assert copy.limits.body_bytes_max == 5


def test_the_admin_password_is_not_shown(tmp_path):
    assert "correct horse" not in repr(load_settings(admin_password="correct horse"))


@pytest.mark.parametrize("name", [*VARIABLES.values(), "HMS_GATEWAY_PIPELINE_STATE", "HMS_GATEWAY_SOURCE_PASSWORD"])
def test_variables_of_commands_that_call_a_gateway_are_not_taken_for_settings(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    load_settings()


def test_lists_and_tables_of_the_environment_are_json(monkeypatch):
    monkeypatch.setenv("HMS_GATEWAY_TRUSTED_PROXY__ADDRESSES", '["10.0.0.0/8"]')
    monkeypatch.setenv("HMS_GATEWAY_TRUSTED_PROXY__USER_HEADER", "SM_USER")
    monkeypatch.setenv("HMS_GATEWAY_LIMITS", '{"body_bytes_max": 5, "connections_max": 6}')
    monkeypatch.setenv("HMS_GATEWAY_LIMITS__CONNECTIONS_MAX", "7")
    monkeypatch.setenv("HMS_GATEWAY_PROXY_USERS__KNOX__USERS", '["*"]')
    monkeypatch.setenv("HMS_GATEWAY_FILE_SYSTEMS__S3A", "refuse")
    settings = load_settings()
    assert settings.trusted_proxy.addresses == ["10.0.0.0/8"]
    assert settings.limits == Limits(body_bytes_max=5, connections_max=7)
    assert settings.proxy_users == {"knox": ProxyUser(users=["*"])}
    assert settings.file_systems == {"s3a": "refuse"}


def test_the_directory_may_be_one_variable(monkeypatch):
    text = '{"urls": ["ldaps://directory.example"], "bind_name": "uid={user},dc=corp"}'
    monkeypatch.setenv("HMS_GATEWAY_LDAP", text)
    assert load_settings().ldap.urls == ["ldaps://directory.example"]


@pytest.mark.parametrize(
    ("text", "expected"), [("no", False), ("OFF", False), ("0", False), ("yes", True), ("True", True), ("1", True)]
)
def test_yes_and_no_have_many_spellings(monkeypatch, text, expected):
    monkeypatch.setenv("HMS_GATEWAY_TLS", text)
    assert load_settings().tls is expected


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("TRUSTED_PROXY", "10.0.0.0/8", "HMS_GATEWAY_TRUSTED_PROXY is not JSON"),
        ("LIMITS", "5", "limits must be "),
        ("TLS", "perhaps", "tls must be "),
        ("PORT", "", "port must be "),
        ("THRIFT_PORT", "0", "thrift_port must be "),
        ("LOG_LEVEL", "loud", "log_level must be one of debug, info, warning, error"),
        ("FILE_SYSTEMS__*", "maybe", r"file_systems\.\* must be one of manage, ignore, refuse"),
        ("FILE_SYSTEMS__*", "manage", r'file_systems: "\*" must be ignore or refuse'),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch, name, text, told):
    monkeypatch.setenv(f"HMS_GATEWAY_{name}", text)
    with pytest.raises(SettingsError, match=told):
        load_settings()


def test_everything_that_is_wrong_is_told_at_once(tmp_path):
    path = file(tmp_path, 'port = -1\ntls = "x"\nprot = 1\n')
    with pytest.raises(SettingsError) as refused:
        load_settings(path, host=5)
    port, tls, unknown, host = str(refused.value).split("; ", 3)
    unknown, host = f"{unknown}; {host}".rsplit("; ", 1)
    assert port.startswith(f"{path}: setting port must be ")
    assert tls.startswith(f"{path}: setting tls must be ")
    assert unknown == f"{path}: setting prot: unknown setting; did you mean port?"
    assert host.startswith("host must be ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('trusted_proxies = ["x"]', "setting trusted_proxies: "),
        ('audit_log = " "', "setting audit_log must be "),
        ("[limits]\nbody_bytes = 1", "setting limits: unknown key 'body_bytes'"),
    ],
)
def test_a_setting_of_the_file_is_told_with_it_and_one_of_the_environment_without(tmp_path, monkeypatch, text, told):
    path = file(tmp_path, text)
    with pytest.raises(SettingsError, match=rf"^{re.escape(str(path))}: {re.escape(told)}"):
        load_settings(path)
    monkeypatch.setenv("HMS_GATEWAY_PORT", "x")
    with pytest.raises(SettingsError, match=r"^port must be "):
        load_settings(file(tmp_path, "port = 80"))


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        ("{}", "paths is empty"),
        ('{ "metastore" = "4" }', "'metastore' is not a path"),
        *(
            (f'{{ "{path}" = "4" }}', "is not a path")
            for path in ("/", "/a/", "/a//b", "/a%20b", "/\u00e9", "/a?b", "/a b")
        ),
        ('{ "/metrics/x" = "4" }', "/metrics/x is a page of the gateway"),
        ('{ "/metastore" = "3" }', "paths./metastore must be one of 2.3, 4, not '3'"),
    ],
)
def test_wrong_paths_are_refused(tmp_path, paths, told):
    with pytest.raises(SettingsError, match=re.escape(told)):
        load_settings(file(tmp_path, f"paths = {paths}"))


def test_the_paths_are_those_that_are_set(tmp_path, monkeypatch):
    assert load_settings(file(tmp_path, 'paths = { "/a" = "2.3", "/a/b" = "4" }')).paths == {"/a": "2.3", "/a/b": "4"}
    monkeypatch.setenv("HMS_GATEWAY_PATHS", '{"/c": "4"}')
    assert load_settings().paths == {"/c": "4"}


REACHED = {"thrift_port": 9083, "thrift_host": "0.0.0.0", "host": "0.0.0.0"}


@pytest.mark.parametrize("name", ["thrift_networks", "http_networks"])
@pytest.mark.parametrize(
    ("network", "told"),
    [
        ("10.0.0.1/8", "10.0.0.1/8 has host bits set"),
        ("10.0.0.0/33", "'10.0.0.0/33' does not appear to be an IPv4 or IPv6 network"),
        ("10.0.0.0/8,10.1.0.0/16", "does not appear to be"),
        ("spark", "does not appear to be"),
        ("", "does not appear to be"),
        ("0.0.0.0/0", "0.0.0.0/0 is every address; name the networks of your clients"),
        ("::/0", "::/0 is every address"),
    ],
)
def test_a_network_that_is_typed_wrong_is_refused(name, network, told):
    with pytest.raises(SettingsError, match=f"^{name}: .*{re.escape(told)}"):
        load_settings(**REACHED, **{name: ["127.0.0.1", network]})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"thrift_port": 9083, "thrift_host": "0.0.0.0"}, "thrift_host 0.0.0.0 can be reached by others"),
        ({"thrift_port": 9083, "thrift_networks": ["10.0.0.0/8"]}, "thrift_networks: nobody there reaches thrift_host"),
        ({"thrift_networks": ["127.0.0.1"]}, "thrift_networks has no effect without thrift_port"),
        ({"http_networks": ["10.0.0.0/8"]}, "http_networks: nobody there reaches host 127.0.0.1"),
        (
            {**REACHED, "thrift_networks": ["10.0.0.0/8"], "thrift_sasl": "require"},
            'thrift_networks has no effect with thrift_sasl = "require"',
        ),
        (
            {
                **REACHED,
                "thrift_networks": ["10.0.0.0/8"],
                "thrift_tls": True,
                "client_certificates": {"authority": "ca.pem", "use": "require"},
            },
            'thrift_networks has no effect with client_certificates.use = "require"',
        ),
        ({"network_user": "spark"}, "network_user has no effect without thrift_networks or http_networks"),
        ({"network_users": ["ann"]}, "network_users has no effect"),
        ({"http_networks": ["127.0.0.1"], "network_user": "admin"}, "network_user admin is in administrators or"),
        ({"path": "/a"}, "path: replaced by paths"),
        ({"thrift_open": True}, "thrift_open: replaced by thrift_networks"),
    ],
)
def test_settings_of_clients_without_a_login_that_fit_ill_are_refused(given, told):
    with pytest.raises(SettingsError, match=f"^{re.escape(told)}"):
        load_settings(**given)


def test_paths_may_be_given_as_text_or_path(tmp_path):
    assert load_settings(data_dir=tmp_path).data_dir == load_settings(data_dir=str(tmp_path)).data_dir == tmp_path
    with pytest.raises(SettingsError, match="data_dir"):
        load_settings(file(tmp_path, "data_dir = 5"))


def test_a_wrong_secret_is_not_shown(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("admin_password = 1234567\n", "utf-8")
    with pytest.raises(SettingsError, match=r"setting admin_password ") as refused:
        load_settings(path)
    assert "1234567" not in str(refused.value)


@pytest.mark.parametrize("name", ["calls_per_second", "bytes_per_second", "partitions_per_second", "burst_seconds"])
def test_rates_are_finite(tmp_path, name):
    path = file(tmp_path, f"[user_rates.ann]\n{name} = inf\n")
    with pytest.raises(SettingsError, match=rf"user_rates\.ann: {name} must be a finite number"):
        load_settings(path)


@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_audit_log_says_what_it_may_be(tmp_path, value):
    with pytest.raises(SettingsError, match="audit_log must be stdout, syslog or the path of a file"):
        load_settings(file(tmp_path, f'audit_log = "{value}"\n'))
