"""The password file and its operations."""

import os

import bcrypt
import pytest

from hms_gateway.gateway.auth.users import (
    UserFileError,
    add_user,
    hash_password,
    list_users,
    read_users,
    remove_user,
    verify_password,
    verify_user,
)


def test_users_are_added_changed_listed_and_removed(tmp_path):
    path = tmp_path / "folder" / "users"
    assert add_user(path, "ann", "one") is True
    assert add_user(path, "bob", "two") is True
    assert add_user(path, "ann", "three") is False
    assert list_users(path) == ["ann", "bob"]
    assert verify_user(path, "ann", "three")
    assert not verify_user(path, "ann", "one")
    assert not verify_user(path, "cid", "one")
    assert remove_user(path, "ann") is True
    assert remove_user(path, "ann") is False
    assert list_users(path) == ["bob"]


def test_the_file_is_private_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "users"
    path.write_text("")
    path.chmod(0o644)
    add_user(path, "ann", "one")
    assert path.stat().st_mode & 0o607 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["users"]
    assert "one" not in path.read_text()


def test_a_file_keeps_its_owner_and_what_the_group_may(tmp_path):
    path = tmp_path / "users"
    add_user(path, "alice", "secret")
    path.chmod(0o640)
    owner = (12345, 12345) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(path, *owner)
    add_user(path, "bob", "secret")
    status = path.stat()
    assert (status.st_mode & 0o777, (status.st_uid, status.st_gid)) == (0o640, owner)


@pytest.mark.slow
def test_new_hashes_are_argon2id():
    assert hash_password("x").startswith("$argon2id$")
    assert hash_password("x") != hash_password("x")


@pytest.mark.parametrize("prefix", [b"2b", b"2y"])
def test_bcrypt_hashes_of_htpasswd_are_accepted(prefix):
    stored = bcrypt.hashpw(b"secret", bcrypt.gensalt(rounds=4)).replace(b"$2b$", b"$" + prefix + b"$").decode()
    assert verify_password(stored, "secret")
    assert not verify_password(stored, "Secret")


def test_bcrypt_cuts_long_passwords_as_htpasswd_does():
    stored = bcrypt.hashpw(b"a" * 72, bcrypt.gensalt(rounds=4)).decode()
    assert verify_password(stored, "a" * 100)


@pytest.mark.parametrize("stored", ["", "plain", "$1$md5", "$argon2id$broken", "$2b$broken", "$2b$04$short"])
def test_other_and_broken_hashes_match_nothing(stored):
    assert not verify_password(stored, "plain")


def test_comments_and_empty_lines_are_skipped(tmp_path):
    path = tmp_path / "users"
    path.write_text("# people\n\nann:$2b$x\r\n")
    assert read_users(path) == {"ann": "$2b$x"}


@pytest.mark.parametrize("line", ["ann", ":$2b$x", "ann:plain", "ann:{SHA}abc"])
def test_a_wrong_line_is_named(tmp_path, line):
    path = tmp_path / "users"
    path.write_text(f"# first\n{line}\n")
    with pytest.raises(UserFileError, match="line 2"):
        read_users(path)


@pytest.mark.parametrize("name", ["", "a:b", "#a", " a", "a\n", "a\tb", "a" * 256])
def test_names_that_the_file_cannot_hold_are_refused(tmp_path, name):
    with pytest.raises(UserFileError):
        add_user(tmp_path / "users", name, "x")


def test_an_empty_password_is_refused(tmp_path):
    with pytest.raises(UserFileError):
        add_user(tmp_path / "users", "ann", "")


def test_a_missing_file_has_no_users(tmp_path):
    assert list_users(tmp_path / "none") == []
