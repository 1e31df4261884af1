"""Ends of connections as texts."""

import pytest

from hms_gateway.runtime.addresses import host_and_port, host_of


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::5", "::1", "fe80::1%eth0", "::ffff:192.0.2.1", "a.test", ""])
def test_a_host_is_read_from_an_address_with_and_without_a_port(host):
    assert host_of(host_and_port(host, 5000)) == host_of(host) == host
