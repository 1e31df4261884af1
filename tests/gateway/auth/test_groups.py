"""Groups from the operator's file: for every login, read again on open connections, a broken file changes nothing."""

import os
import threading
import time

import httpx
import pytest

from hms_gateway.gateway.auth import users
from hms_gateway.gateway.auth.tokens import create_token
from hms_gateway.gateway.auth.users import READ_AT_ONCE_BYTES, GroupsFile, GroupsFileError, add_user, read_groups
from hms_gateway.gateway.logins import build_authenticator, build_proxies
from hms_gateway.runtime.settings import SettingsError
from hms_gateway.runtime.settings_reading import load_settings
from tests.gateway.serving import CALL, CannedProcessor, running
from tests.support.patience import until
from tests.support.server import basic


class Moments:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def rewritten(path, text: str) -> None:
    """As programs replace a file, so that a reader never sees half of it."""
    path.with_suffix(".new").write_text(text)
    os.replace(path.with_suffix(".new"), path)


def test_a_change_counts_within_a_second_and_a_broken_file_changes_nothing(tmp_path):
    path, moments = tmp_path / "groups", Moments()
    path.write_text("# teams\n\nsales: ann bob\nstaff: ann\nstaff: eve\n")
    groups = GroupsFile(path, moments)
    assert (groups.of("ann"), groups.of("eve"), groups.of("dan")) == ({"sales", "staff"}, {"staff"}, frozenset())
    moments.now += 2
    rewritten(path, "sales: ann\n")
    assert (groups.of("ann"), groups.of("bob")) == ({"sales"}, frozenset())
    moments.now += 2
    rewritten(path, "sales ann\n")
    assert groups.of("ann") == {"sales"}
    moments.now += 2
    path.unlink()
    assert groups.of("ann") == {"sales"}


def test_a_large_file_is_read_beside_the_event_loop(tmp_path, monkeypatch):
    path, moments = tmp_path / "groups", Moments()
    path.write_text("sales: ann\n")
    groups_file = GroupsFile(path, moments)
    readers = []

    def noted(path):
        readers.append(threading.current_thread())
        return read_groups(path)

    monkeypatch.setattr(users, "read_groups", noted)
    moments.now += 2
    rewritten(path, "staff: ann\n" + "# more\n" * READ_AT_ONCE_BYTES)
    groups_file.of("ann")
    until(lambda: groups_file.of("ann") == {"staff"})
    assert threading.current_thread() not in readers


@pytest.mark.parametrize(
    ("text", "says"), [("sales: ann\n: bob\n", "line 2"), ("sales ann", "line 1"), (None, "cannot be read")]
)
def test_a_start_with_a_file_that_cannot_be_used_names_it(tmp_path, text, says):
    path = tmp_path / "groups"
    if text is not None:
        path.write_text(text)
    with pytest.raises(GroupsFileError, match=says):
        GroupsFile(path)
    with pytest.raises(SettingsError, match="groups_file"):
        build_authenticator(load_settings(data_dir=tmp_path, groups_file=path))


@pytest.mark.slow
def test_every_login_has_them_also_on_an_open_connection(tmp_path):
    path = tmp_path / "groups"
    path.write_text("sales: ann bob cid\n")
    settings = load_settings(
        data_dir=tmp_path,
        groups_file=path,
        trusted_proxy={"addresses": ["127.0.0.1"], "user_header": "X-User"},
        proxy_users={"ann": {"users": ["bob"]}},
    )
    add_user(settings.users_path, "ann", "ann's password")
    secret, _ = create_token(settings.tokens_path, "bob", now=int(time.time()), seconds=600)
    logins = {
        "ann": (basic("ann", "ann's password"), ""),
        "bob": ({"Authorization": f"Bearer {secret}"}, ""),
        "cid": ({"X-User": "cid"}, ""),
        "bob for whom ann acts": (basic("ann", "ann's password"), "?doAs=bob"),
    }
    processor = CannedProcessor()
    with (
        running(processor, authenticator=build_authenticator(settings), proxies=build_proxies(settings)) as server,
        httpx.Client() as client,
    ):

        def groups(login: str) -> frozenset[str]:
            headers, query = logins[login]
            assert client.post(server.url + query, content=CALL, headers=headers).status_code == 200
            call = processor.calls[-1][1]
            assert call.principal == login.partition(" ")[0]
            return call.groups

        assert [groups(login) for login in logins] == [{"sales"}] * 4
        rewritten(path, "other: ann bob cid\n")
        for login in logins:
            until(lambda login=login: groups(login) == {"other"})
