"""Users of an LDAP directory at the door, with a real slapd: who gets in under which name, and while it is away."""

import asyncio
import socket
import time

import pytest
from structlog.testing import capture_logs

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth.directory import AWAY_SECONDS, DirectoryAway, LdapDirectory
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.gateway.logins import build_authenticator
from hms_gateway.runtime.settings import SettingsError
from hms_gateway.runtime.settings_reading import load_settings
from tests.gateway.auth.test_authentication import Clock, basic
from tests.gateway.auth.test_directory_login import directory_stack
from tests.support.private_slapd import BASE, PASSWORD, SEARCH_PASSWORD, PrivateSlapd, SlapdUnavailable

pytestmark = pytest.mark.ldap

PEOPLE = f"ou=people,{BASE}"
BINDS = {"bind_name": f"uid={{user}},{PEOPLE}", "group_base": f"ou=groups,{BASE}"}


@pytest.fixture(scope="module")
def slapd():
    try:
        it = PrivateSlapd()
    except SlapdUnavailable as reason:
        pytest.skip(f"no LDAP: {reason}")
    try:
        it.make()
        it.start()
        yield it
    finally:
        it.delete()


@pytest.fixture(scope="module")
def searches(slapd, tmp_path_factory):
    file = tmp_path_factory.mktemp("ldap") / "password"
    file.write_text(SEARCH_PASSWORD + "\n")
    return {
        "search_base": BASE,
        "search_user": f"cn=search,{BASE}",
        "search_password_file": str(file),
        "group_base": f"ou=groups,{BASE}",
    }


def directory(slapd, url: str | None = None, **settings) -> LdapDirectory:
    urls = [url or f"ldap://127.0.0.1:{slapd.port}"]
    loaded = load_settings(ldap={"urls": urls, "authority": str(slapd.certificate), **settings})
    assert loaded.ldap is not None
    return LdapDirectory(loaded.ldap)


def test_a_user_is_searched_for_and_has_groups(slapd, searches):
    found = directory(slapd, **searches).check("ann", PASSWORD)
    assert (found.name, found.groups) == ("ann", {"engineers", "auditors"})


def test_a_user_binds_under_the_name_of_the_entry(slapd):
    found = directory(slapd, **BINDS).check("ann", PASSWORD)
    # Who binds may not read the groups here, and may read the own entry.
    assert (found.name, found.groups) == ("ann", frozenset())


@pytest.mark.parametrize("way", ["ldaps", "start_tls"])
def test_passwords_go_over_tls_that_is_checked(slapd, searches, way, tmp_path):
    tls = {"ldaps": {"url": f"ldaps://127.0.0.1:{slapd.tls_port}"}, "start_tls": {"start_tls": True}}[way]
    assert directory(slapd, **tls, **searches).check("ann", PASSWORD).name == "ann"
    with pytest.raises(DirectoryAway):
        directory(slapd, **tls, **{**searches, "authority": None}).check("ann", PASSWORD)


@pytest.mark.parametrize("rules", ["bind", "search"])
@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("ann", "wrong"),
        ("ann", ""),
        ("ann", "a\0b"),
        ("nobody", PASSWORD),
        ("", PASSWORD),
        ("*", PASSWORD),
        ("ann)(uid=*", PASSWORD),
        ("ann,ou=people", PASSWORD),
        ("a\0nn", PASSWORD),
        ("é" * 2000, PASSWORD),
    ],
)
def test_what_does_not_let_in(slapd, searches, rules, user, password):
    assert directory(slapd, **(BINDS if rules == "bind" else searches)).check(user, password) is None


@pytest.mark.parametrize("rules", ["bind", "search"])
def test_one_user_has_one_name_however_it_is_written(slapd, searches, rules):
    asked = directory(slapd, **(BINDS if rules == "bind" else searches))
    assert {asked.check(name, PASSWORD).name for name in ("ann", "ANN", "Ann ")} == {"ann"}
    assert {asked.check(name, PASSWORD).name for name in ("bea", "Bea")} == {"Bea"}


@pytest.mark.parametrize("rules", ["bind", "search"])
@pytest.mark.parametrize("sent", ["\uff41nn", "\u24d0nn", "\U0001d482nn", "\uff21NN", "a\u00adnn"])
def test_letters_that_the_directory_takes_for_others_make_no_other_user(slapd, searches, rules, sent):
    found = directory(slapd, **(BINDS if rules == "bind" else searches)).check(sent, PASSWORD)
    assert found is None or (found.name == "ann" and found.groups <= {"engineers", "auditors"})


@pytest.mark.parametrize("rules", ["bind", "search"])
def test_an_entry_that_does_not_show_the_name_lets_nobody_in_and_is_logged(slapd, searches, rules):
    asked = directory(slapd, **(BINDS if rules == "bind" else searches), user_attribute="displayName")
    with capture_logs() as lines:
        assert asked.check("ann", PASSWORD) is None
    assert [(line["log_level"], line["user_attribute"]) for line in lines] == [("error", "displayName")]


def test_a_search_that_finds_two_lets_in_neither(slapd, searches):
    asked = directory(slapd, **searches, search_filter="(mail={user})", user_attribute="mail")
    assert asked.check("ann@corp.test", PASSWORD).name == "ann@corp.test"
    assert asked.check("shared@corp.test", PASSWORD) is None


def test_an_account_that_may_not_search_is_the_operators_to_change(slapd, searches, tmp_path):
    (tmp_path / "wrong").write_text("wrong")
    with pytest.raises(DirectoryAway, match=r"does not accept ldap\.search_user"):
        directory(slapd, **{**searches, "search_password_file": str(tmp_path / "wrong")}).check("ann", PASSWORD)


def test_the_next_server_is_asked_when_one_does_not_answer(slapd, searches):
    loaded = load_settings(ldap={"urls": ["ldap://localhost:1", f"ldap://localhost:{slapd.port}"], **searches})
    assert LdapDirectory(loaded.ldap).check("ann", PASSWORD).name == "ann"


def test_a_server_that_says_nothing_is_away_in_time(searches):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        loaded = load_settings(
            ldap={"urls": [f"ldap://127.0.0.1:{silent.getsockname()[1]}"], "seconds_max": 0.2, **searches}
        )
        with pytest.raises(DirectoryAway):
            LdapDirectory(loaded.ldap).check("ann", PASSWORD)


def ask(authenticator, header: bytes, address: str = "10.0.0.1"):
    """The identity, or the refusal."""
    fields = [(b"authorization", header)]
    head = RequestHead(dict(fields), fields, b"", address)
    try:
        return authenticator.remembered(head) or asyncio.run(authenticator.authenticate(head))
    except Refused as refused:
        return refused


def test_the_password_file_comes_first_and_all_logins_go_on_beside_each_other(slapd, searches, tmp_path):
    loaded = load_settings(data_dir=tmp_path, ldap={"urls": [f"ldap://localhost:{slapd.port}"], **searches})
    add_user(loaded.users_path, "cem", "of the file")
    authenticator = build_authenticator(loaded)
    try:
        assert ask(authenticator, basic("cem", "of the file")).user == "cem"
        assert ask(authenticator, basic("cem", PASSWORD)).status == 401
        identity = ask(authenticator, basic("ANN", PASSWORD))
        assert (identity.user, identity.groups) == ("ann", {"engineers", "auditors"})
        refused = ask(authenticator, basic("ann", "wrong"))
        assert (refused.status, len(refused.headers)) == (401, 2)
        assert ask(authenticator, b"Bearer hmsgw_wrong").status == 401
    finally:
        authenticator.close()


class Counted:
    """A directory that can go away."""

    def __init__(self, asked: LdapDirectory) -> None:
        self._asked = asked
        self.count = 0
        self.is_away = False

    def check(self, user: str, password: str):
        self.count += 1
        if self.is_away:
            raise DirectoryAway("gone")
        return self._asked.check(user, password)


@pytest.fixture
def bench(slapd, searches, tmp_path):
    clock = Clock()
    counted = Counted(directory(slapd, **searches))
    authenticator = directory_stack(
        counted.check,
        is_local=lambda user: False,
        kept_seconds=3_600.0,
        monotonic=clock,
        sleep=clock.sleep,
    )
    yield clock, counted, authenticator
    authenticator.close()


def test_a_right_password_is_asked_about_once_in_a_while(bench):
    clock, counted, authenticator = bench
    for _ in range(3):
        assert ask(authenticator, basic("ann", PASSWORD)).user == "ann"
    assert counted.count == 1
    clock.now += 300
    assert ask(authenticator, basic("ann", PASSWORD)).user == "ann"
    assert counted.count == 2


def test_while_it_is_away_who_was_right_goes_on_for_a_time(bench):
    clock, counted, authenticator = bench
    assert ask(authenticator, basic("ann", PASSWORD)).user == "ann"
    counted.is_away = True
    clock.now += 3_000
    assert ask(authenticator, basic("ann", PASSWORD)).user == "ann"
    asked = counted.count
    assert ask(authenticator, basic("ann", PASSWORD)).user == "ann"
    assert counted.count == asked
    refused = ask(authenticator, basic("Bea", PASSWORD))
    assert (refused.status, refused.reason) == (503, "directory_away")
    clock.now += 601
    assert ask(authenticator, basic("ann", PASSWORD)).status == 503
    counted.is_away = False
    clock.now += AWAY_SECONDS
    assert ask(authenticator, basic("ann", PASSWORD)).user == "ann"


def test_passwords_are_not_logged(bench):
    _, counted, authenticator = bench
    with capture_logs() as lines:
        ask(authenticator, basic("ann", PASSWORD))
        ask(authenticator, basic("ann", "a wrong password"))
        counted.is_away = True
        ask(authenticator, basic("Bea", PASSWORD))
    assert [line["event"] for line in lines] == ["login refused by the directory", "the directory is unreachable"]
    assert PASSWORD not in repr(lines)
    assert "a wrong password" not in repr(lines)


def test_guesses_wait_longer_each_time(bench):
    clock, _, authenticator = bench
    for number in range(6):
        assert ask(authenticator, basic("ann", f"wrong {number}")).status == 401
    assert clock.slept == sorted(clock.slept)
    assert clock.slept[-1] > 0


def test_many_requests_with_one_password_ask_once(bench):
    _, counted, authenticator = bench
    fields = [(b"authorization", basic("ann", PASSWORD))]
    head = RequestHead(dict(fields), fields, b"", "10.0.0.1")

    async def ask_all():
        return await asyncio.gather(*(authenticator.authenticate(head) for _ in range(50)))

    assert {identity.user for identity in asyncio.run(ask_all())} == {"ann"}
    assert counted.count == 1


def test_a_request_does_not_wait_for_a_directory_that_hangs(tmp_path):
    def hang(user: str, password: str) -> None:
        time.sleep(0.5)

    authenticator = directory_stack(
        hang,
        is_local=lambda user: False,
        kept_seconds=3_600.0,
        seconds_max=0.01,
    )
    assert ask(authenticator, basic("ann", PASSWORD)).status == 503
    authenticator.close()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"urls": []}, "urls"),
        ({"urls": ["https://a"]}, "is not ldaps://host"),
        ({"urls": ["ldap://directory.example"]}, "would send passwords readable"),
        ({"urls": ["ldap://[::2]:389"]}, "would send passwords readable"),
        ({"bind_name": "uid=ann"}, "does not have {user} in it"),
        ({"bind_name": None}, "neither bind_name nor search_base"),
        ({"bind_name": None, "search_base": "dc=a", "search_filter": "(uid=ann)"}, "neither bind_name"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes, says):
    with pytest.raises(SettingsError, match=says):
        load_settings(ldap={"urls": ["ldaps://directory.example"], "bind_name": "uid={user}", **changes})
