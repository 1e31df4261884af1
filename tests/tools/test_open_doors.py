"""Who gets in without a login: every combination of the settings, and the tables of docs/security.md."""

from itertools import product
from pathlib import Path

import pytest

from hms_gateway.runtime.settings import CertificateLogins
from tools.open_doors import HOSTS, NETWORKS, REFUSED, SASL, http_door, security_path, security_text, thrift_door

CERTIFICATES = CertificateLogins(authority=Path("ca.pem"))
OTHERS = [
    {"authorization": authorization, "network_users": users, **tls}
    for authorization, users, tls in product(
        ("off", "grants"),
        (["*"], ["ann"]),
        ({}, {"tls": False}, {"thrift_tls": True}, {"thrift_tls": True, "client_certificates": CERTIFICATES}),
    )
]


def test_the_document_shows_what_the_settings_do() -> None:
    document = security_path().read_text("utf-8")
    assert security_text(document) == document


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("networks", NETWORKS, ids=str)
def test_no_other_setting_opens_a_door(host: str, networks: list[str]) -> None:
    for others in OTHERS:
        if not networks:
            others = {**others, "network_users": ["*"]}
        for sasl in SASL:
            assert thrift_door(host, networks, sasl, **others) == thrift_door(host, networks, sasl)
        assert http_door(host, networks, **others) == http_door(host, networks)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("networks", NETWORKS, ids=str)
def test_required_certificates_are_as_required_logins(host: str, networks: list[str]) -> None:
    required = CertificateLogins(authority=Path("ca.pem"), use="require")
    for sasl in SASL:
        found = thrift_door(host, networks, sasl, thrift_tls=True, client_certificates=required)
        assert found == thrift_door(host, networks, "require")


def test_without_networks_others_log_in() -> None:
    assert [thrift_door("0.0.0.0", [], sasl) for sasl in SASL] == [REFUSED, REFUSED, "logins"]
    assert [thrift_door("127.0.0.1", [], sasl) for sasl in SASL] == ["own account", "own account, logins", "logins"]
    assert {http_door(host, []) for host in HOSTS} == {"logins"}
