"""Settings as clients may ask for them (semantics §2.2)."""

import pytest

from hms_gateway.handlers.service import Configuration
from hms_gateway.metastore.vocabulary.settings import MetastoreSettings
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import ConfigValSecurityException, MetaException
from hms_gateway.runtime.limits import Limits

CALL = Call("tester")


@pytest.fixture
def configuration() -> Configuration:
    return Configuration(MetastoreSettings(hive_configuration={"hive.own": "1", "hive.own.password": "p"}), Limits())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hive.metastore.try.direct.sql", "true"),
        ("hive.metastore.try.direct.sql.ddl", "true"),
        ("hive.metastore.client.socket.timeout", "600s"),
        ("hive.metastore.partition.name.whitelist.pattern", ""),
        ("hive.metastore.client.capability.check", "true"),
        ("hive.metastore.disallow.incompatible.col.type.changes", "true"),
        ("metastore.try.direct.sql", "true"),
        ("metastore.try.direct.sql.ddl", "true"),
        ("metastore.client.socket.timeout", "600s"),
        ("metastore.partition.name.whitelist.pattern", ""),
        ("metastore.client.capability.check", "true"),
        ("metastore.disallow.incompatible.col.type.changes", "true"),
    ],
)
def test_keys_in_both_spellings(configuration: Configuration, key: str, value: str) -> None:
    assert configuration.getMetaConf(CALL, key) == value
    configuration.setMetaConf(CALL, key, "5")
    assert configuration.getMetaConf(CALL, key) == value


@pytest.mark.parametrize(("key", "shown"), [("hive.x", "hive.x"), ("", ""), (None, "null")])
def test_other_keys_are_invalid(configuration: Configuration, key: str | None, shown: str) -> None:
    for action in (lambda: configuration.getMetaConf(CALL, key), lambda: configuration.setMetaConf(CALL, key, "v")):
        with pytest.raises(MetaException) as raised:
            action()
        assert raised.value == MetaException(f"Invalid configuration key {shown}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hive.metastore.client.socket.timeout", "soon"),
        ("hive.metastore.client.socket.timeout", None),
        ("hive.metastore.partition.name.whitelist.pattern", "["),
        ("metastore.partition.name.whitelist.pattern", "["),
        ("metastore.client.socket.timeout", "soon"),
    ],
)
def test_values_are_checked(configuration: Configuration, key: str, value: str | None) -> None:
    with pytest.raises(MetaException, match=f"^MetaException.message:Invalid configuration value .* for key {key} by "):
        configuration.setMetaConf(CALL, key, value)


@pytest.mark.parametrize("value", ["600", "10s", "5 min", "1d", "200ms"])
def test_times_are_values(configuration: Configuration, value: str) -> None:
    configuration.setMetaConf(CALL, "hive.metastore.client.socket.timeout", value)


@pytest.mark.parametrize(
    ("name", "default", "value"),
    [
        (None, "d", "d"),
        ("hive.own", "d", "1"),
        ("hive.unknown", "d", "d"),
        ("hive.unknown", None, None),
        ("hive.metastore.warehouse.dir", "d", "/user/hive/warehouse"),
        ("hive.stats.autogather", "d", "true"),
        ("hive.metastore.event.db.listener.timetolive", "d", "86400s"),
        ("hive.metastore.event.expiry.duration", "d", "0s"),
        ("hive.metastore.batch.retrieve.max", "5", "300"),
        ("hive.metastore.limit.partition.request", "d", "-1"),
        ("hive.metastore.partition.name.whitelist.pattern", "d", "d"),
        ("hive.metastore.partition.inherit.table.properties", "d", "d"),
        ("hive.metastore.allow.incompatible.col.type.changes.serdes", "d", "d"),
        ("hdfs.x", "d", "d"),
        ("mapred.x", "d", "d"),
    ],
)
def test_config_values(configuration: Configuration, name: str | None, default: str | None, value: str | None) -> None:
    assert configuration.get_config_value(CALL, name, default) == value


@pytest.mark.parametrize("name", ["", "java.home", "hive.own.password", "hive.Secret", "hive.x.token", "hive.api.key"])
def test_secrets_are_refused(configuration: Configuration, name: str) -> None:
    with pytest.raises(ConfigValSecurityException) as raised:
        configuration.get_config_value(CALL, name, "d")
    assert raised.value == ConfigValSecurityException(f"For security reasons, the config key {name} cannot be accessed")


def test_who_one_claims_to_be_does_not_matter(configuration: Configuration) -> None:
    assert configuration.set_ugi(CALL, "somebody", ["g1", "g2"]) == ["g1", "g2"]
    assert configuration.set_ugi(CALL, None, None) == []
    configuration.flushCache(CALL)
