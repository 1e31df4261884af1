"""What can be known of Kerberos without any."""

import sys
from pathlib import Path

import pytest

from hms_gateway.runtime.kerberos import KerberosError, ServiceKeys, ServiceTickets, short_name


@pytest.mark.parametrize("needs_it", [lambda: ServiceKeys(Path("http.keytab")), lambda: ServiceTickets("localhost")])
def test_a_missing_package_is_named(needs_it, monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(KerberosError, match=r"needs the package gssapi.*pip install 'hms-gateway\[kerberos\]'"):
        needs_it()


@pytest.mark.parametrize(
    ("principal", "user"),
    [("alice@LAKE.TEST", "alice"), ("spark/host.lake.test@LAKE.TEST", "spark"), ("a@b@LAKE.TEST", "a@b")],
)
def test_users_of_principals(principal, user):
    assert short_name(principal) == user
