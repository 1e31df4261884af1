"""H1: a trusted proxy that passes client headers on cannot be talked into any identity."""

import pytest

from tests.attacks.edge import basic, edge
from tests.gateway.serving import CALL, post

# Who is named has a password here as well.


def trusting(**keys: object) -> dict[str, object]:
    """The settings of a gateway that believes this machine."""
    return {"trusted_proxy": {"addresses": ["127.0.0.1"], **keys}, "users_by_other_logins": ["*"]}


SECRET = "a-secret-of-the-proxy"


@pytest.fixture(scope="module")
def by_header(tmp_path_factory):
    """A proxy that names the user in x-actor-username; what else the client sends comes through."""
    with edge(tmp_path_factory.mktemp("header"), **trusting(user_header="x-actor-username")) as it:
        yield it


def test_the_proxy_names_the_user(by_header):
    assert by_header.ask("x-actor-username: bob") == "bob"


def test_basic_with_an_asterisk_is_a_wrong_password(by_header):
    assert by_header.ask(basic("admin", "*")) == 401
    assert by_header.ask(basic("admin", "*"), "x-actor-username: admin") == 401


@pytest.mark.slow
def test_a_wrong_password_is_refused_whatever_the_headers_say(by_header):
    for name in ("x-actor-username", "X-Knox-Actor-ID", "SM_USER"):
        assert by_header.ask(basic("bob", "wrong"), f"{name}: admin") == 401
        assert by_header.ask("Authorization: Bearer placeholder", f"{name}: admin") == 401
        assert by_header.ask("Authorization:", f"{name}: admin") == 401


def test_a_forged_header_beside_the_proxys_own_means_nothing(by_header):
    for name in ("X-Knox-Actor-ID", "SM_USER", "X-Remote-User", "x_actor_username"):
        assert by_header.ask("x-actor-username: bob", f"{name}: admin") == "bob"
        assert by_header.ask(f"{name}: admin") == 401


@pytest.mark.slow
def test_a_parameter_that_contradicts_the_header_is_refused(tmp_path):
    with edge(tmp_path, **trusting(user_header="SM_USER")) as it:
        assert it.ask("sm_user: admin", query="?user.name=bob") == 401
        assert it.ask("sm_user: bob", query="?user.name=admin") == 401
        assert it.ask("sm_user: bob", query="?doAs=admin") == 403
        assert it.ask(query="?user.name=admin") == 401
        assert it.ask(query="?doAs=admin") == 401
        assert it.ask("sm_user: bob", query="?user.name=bob") == "bob"


@pytest.mark.slow
def test_a_header_beside_the_parameter_means_nothing(tmp_path):
    with edge(tmp_path, **trusting(user_parameter="user.name")) as it:
        assert it.ask("sm_user: admin", query="?user.name=bob") == "bob"
        assert it.ask("sm_user: admin") == 401
        assert it.ask(query="?user.name=bob&user.name=admin") == 401
        assert it.ask(query="?user.name=bob&doAs=admin") == 403
        assert it.ask(basic("bob"), query="?user.name=admin") == 401


@pytest.mark.parametrize("blank", ["\u00a0", "\u0085", "\u2003", "\u3000"])
def test_blanks_of_other_alphabets_make_no_other_user(by_header, blank):
    assert by_header.ask(f"x-actor-username: admin{blank}") == 401
    assert by_header.ask(f"x-actor-username: {blank}admin") == 401
    assert by_header.ask("x-actor-username: \t admin \t") == "admin"


def test_a_repeated_header_is_refused(by_header):
    assert by_header.ask("x-actor-username: bob", "X-Actor-Username: admin") == 401
    assert by_header.ask("x-actor-username: bob,admin") == 401


@pytest.mark.slow
def test_a_password_of_somebody_else_is_refused(by_header):
    assert by_header.ask(basic("bob"), "x-actor-username: admin") == 401
    assert by_header.ask(basic("admin"), "x-actor-username: bob") == 401
    assert by_header.ask(basic("bob"), "x-actor-username: bob") == "bob"


def test_a_header_after_the_body_is_not_read(by_header):
    body = '[1,"get_all_databases",1,1,{}]'
    head = [f"POST {by_header.server.path} HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked"]
    request = "\r\n".join([*head, "", f"{len(body):x}", body, "0", "x-actor-username: admin", "", ""])
    before = len(by_header.calls)
    with by_header.server.connect() as connection:
        connection.sendall(request.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 401 ")
    assert len(by_header.calls) == before


@pytest.mark.slow
def test_the_asterisk_counts_by_its_own_setting_only(tmp_path):
    with edge(tmp_path, **trusting(asterisk_password=True)) as it:
        assert it.ask(basic("bob", "*")) == "bob"
        assert it.ask(basic("bob", "*"), "X-Knox-Actor-ID: admin") == "bob"
        assert it.ask(basic("bob", "*"), query="?user.name=admin") == 401
        assert it.ask(basic("bob", "*"), query="?doAs=admin") == 403
        assert it.ask(basic("bob", "wrong")) == 401
        assert it.ask(basic("bob")) == "bob"


@pytest.mark.slow
def test_an_address_alone_is_not_enough_where_a_secret_is_set(tmp_path):
    with edge(tmp_path, **trusting(user_header="SM_USER", secret=SECRET)) as it:
        assert it.ask("SM_USER: bob", f"X-Proxy-Secret: {SECRET}") == "bob"
        assert it.ask("SM_USER: bob") == 401
        assert it.ask("SM_USER: bob", "X-Proxy-Secret: guess") == 401
        assert it.ask("SM_USER: bob", "X-Proxy-Secret: guess", f"X-Proxy-Secret: {SECRET}") == 401
        assert it.ask(basic("bob")) == "bob"


@pytest.mark.slow
def test_nothing_is_believed_without_trusted_proxies(tmp_path):
    with edge(tmp_path) as it:
        for lines in (["SM_USER: admin"], ["X-Knox-Actor-ID: admin"], [basic("admin", "*")], []):
            assert it.ask(*lines) == 401
            assert it.ask(*lines, query="?user.name=admin&doAs=admin") == 401
        assert it.ask(basic("bob"), "SM_USER: admin") == "bob"


@pytest.mark.slow
def test_a_password_that_was_verified_gives_no_other_identity(tmp_path):
    with edge(tmp_path, **trusting(user_header="SM_USER"), cached=True) as it:
        for _ in range(2):
            assert it.server.exchange(closing(basic("bob"))).startswith(b"HTTP/1.1 200 ")
        assert it.server.exchange(closing(basic("bob"), "SM_USER: admin")).startswith(b"HTTP/1.1 401 ")


def closing(*lines):
    return post(CALL, "Connection: close", *lines)
