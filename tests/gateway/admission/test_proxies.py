"""The client's address behind proxies: the right-most hop that is not one of ours, from configured peers only."""

import pytest

from hms_gateway.gateway.admission.proxies import Proxies, element_address, node_address
from hms_gateway.runtime.addresses import Networks

PROXY, NGINX, STRANGER = "10.0.0.5", "10.9.0.1", "192.0.2.9"


def address(*values, peer=PROXY, header="X-Forwarded-For", **options):
    fields = [(header.lower().encode(), value.encode("latin-1")) for value in values]
    proxies = Proxies([PROXY], [NGINX], forwarded_header=header, **options)
    return proxies.head(dict(fields), fields, b"", peer).address


def test_the_address_is_the_last_that_is_not_a_proxy_of_ours():
    assert address("203.0.113.1, 198.51.100.7, 10.9.0.1") == "198.51.100.7"
    assert address("203.0.113.1", "198.51.100.7", "10.9.0.1") == "198.51.100.7"
    assert address("198.51.100.7", peer=NGINX) == "198.51.100.7"


def test_other_peers_are_not_believed():
    assert address("198.51.100.7", peer=STRANGER) == STRANGER
    assert address("198.51.100.7", secret="s" * 16) == PROXY
    assert address("198.51.100.7", secret="s" * 16, peer=NGINX) == "198.51.100.7"


def test_without_a_readable_hop_the_address_is_the_peers():
    for value in ("", ",", "unknown", "198.51.100.7, unknown", "198.51.100.7, _hidden", "10.9.0.1", "a.example"):
        assert address(value) == PROXY
    assert address() == PROXY


def test_only_the_named_header_is_read():
    fields = [(b"forwarded", b"for=198.51.100.7"), (b"x-forwarded-for", b"203.0.113.1")]
    for header, expected in (("Forwarded", "198.51.100.7"), ("X-Forwarded-For", "203.0.113.1")):
        proxies = Proxies([PROXY], forwarded_header=header)
        assert proxies.head(dict(fields), fields, b"", PROXY).address == expected


def test_of_forwarded_the_last_element_counts_whatever_is_left_of_it():
    for first in ("for=203.0.113.1", 'for="open', "for", ";;;", 'by="a,b'):
        assert address(f"{first}, for=198.51.100.7;proto=https", header="Forwarded") == "198.51.100.7"
    assert address("for=198.51.100.7, for=10.9.0.1;by=10.0.0.5", header="Forwarded") == "198.51.100.7"
    assert address('For="[2001:db8::1]:4711"', header="Forwarded") == "2001:db8::1"


def test_a_long_list_is_read_from_its_end():
    padding = "203.0.113.1, " * 3_000
    assert address(f"{padding}198.51.100.7") == "198.51.100.7"
    assert address("x" * 60_000 + ", 198.51.100.7") == "198.51.100.7"
    assert address("x" * 60_000) == PROXY
    # The first piece of what is read may be the end of an address.
    assert address("203.0.113.1" + ",10.9.0.1" * 113 + "    ") == PROXY


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        (" 192.0.2.1:8080 ", "192.0.2.1"),
        ('"192.0.2.1:8080"', "192.0.2.1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("[2001:db8:0::1]", "2001:db8::1"),
        ('"[2001:db8::1]:80"', "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
        *((garbage, "") for garbage in ("", "unknown", "_a", "192.0.2.1:", "192.0.2.1:x", "192.0.2.1:123456", "[::1")),
        *((garbage, "") for garbage in ("[192.0.2.1]", "::1]", "[::1]80", "fe80::1%eth0", "1", "192.0.2.01", '"')),
        *((garbage, "") for garbage in ("١.1.1.1", "localhost", '""', "192.0.2.1/32", "0x7f.0.0.1", "x" * 100_000)),
    ],
)  # fmt: skip
def test_an_address_is_read_as_it_is_written(node, expected):
    assert node_address(node) == expected


@pytest.mark.parametrize(
    "element", ["", "for", "for=", "by=192.0.2.1", "for=192.0.2.1;for=192.0.2.1", "xfor=192.0.2.1"]
)
def test_an_element_without_exactly_one_for_has_no_address(element):
    assert element_address(element) == ""


def test_ipv4_addresses_written_as_ipv6_are_recognised():
    assert Networks(["10.0.0.0/8"]).contain("::ffff:10.1.1.1")
    assert not Networks(["10.0.0.0/8"]).contain("::1")
    assert not Networks(["10.0.0.0/8"]).contain("no address")
    assert Networks(["fe80::/10"]).contain("fe80::1%eth0")
