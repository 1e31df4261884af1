"""Passwords: hashed once, refused slowly, forgotten when the file changes."""

import asyncio
import base64
import os

import pytest
from structlog.testing import capture_logs

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth.credentials import LoginStack, basic_challenge
from hms_gateway.gateway.auth.passwords import PasswordLogin, UserFile
from hms_gateway.gateway.auth.users import hash_password
from hms_gateway.runtime.file_versions import file_version


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.slept = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Counting:
    """A verifier that compares with the text behind the hash's prefix and counts."""

    def __init__(self) -> None:
        self.checked = []

    def __call__(self, stored_hash: str, password: str) -> bool:
        self.checked.append((stored_hash, password))
        return stored_hash == f"$2b${password}"


class Bench:
    """An authenticator whose file, clock, sleeping and hashing the test holds in its hands."""

    def __init__(self, path, users: dict[str, str], seconds=300.0) -> None:
        self.path = path
        self.clock = Clock()
        self.verify = Counting()
        self.write(users)
        self.file = UserFile(path, self.clock)
        self.authenticator = self.stack(self.file, remembered_seconds=seconds)

    def stack(self, file: UserFile, *others, remembered_seconds=300.0, **options) -> LoginStack:
        """The passwords of the file behind other logins."""
        challenges = (basic_challenge("test"),)
        self.passwords = PasswordLogin(
            file,
            challenges=challenges,
            remembered_seconds=remembered_seconds,
            **{"verify": self.verify, "monotonic": self.clock, "sleep": self.clock.sleep, **options},
        )
        return LoginStack([*others, self.passwords], challenges=challenges)

    def write(self, users: dict[str, str]) -> None:
        self.path.write_text("".join(f"{name}:$2b${password}\n" for name, password in users.items()), "utf-8")
        # Two writes within the clock tick of a file system would look the same.
        stamp = int(self.clock.now * 1e9) + len(users)
        os.utime(self.path, ns=(stamp, stamp))

    def ask(self, header: bytes | None, peer="10.0.0.1"):
        """The user, or the status of the refusal."""
        return asyncio.run(self.ask_many([header], peer))[0]

    async def ask_many(self, headers, peer="10.0.0.1"):
        return await asyncio.gather(*(self._ask(header, peer) for header in headers))

    async def _ask(self, header, peer):
        fields = [] if header is None else [(b"authorization", header)]
        head = RequestHead(dict(fields), fields, b"", peer)
        try:
            return (self.authenticator.remembered(head) or await self.authenticator.authenticate(head)).user
        except Refused as refused:
            return refused.status


def basic(user: str, password: str, encoding="utf-8") -> bytes:
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode(encoding))


@pytest.fixture
def bench(tmp_path):
    it = Bench(tmp_path / "users", {"ann": "right", "bob": "secret"})
    yield it
    it.authenticator.close()


def test_a_right_password_is_hashed_once(bench):
    assert [bench.ask(basic("ann", "right")) for _ in range(5)] == ["ann"] * 5
    assert len(bench.verify.checked) == 1


def test_many_connections_with_the_same_header_hash_once(bench):
    assert asyncio.run(bench.ask_many([basic("ann", "right")] * 50)) == ["ann"] * 50
    assert len(bench.verify.checked) == 1


def test_a_wrong_password_is_hashed_every_time_and_never_remembered(bench):
    assert [bench.ask(basic("ann", "wrong")) for _ in range(2)] == [401, 401]
    assert len(bench.verify.checked) == 2


def test_an_unknown_user_costs_one_hash_of_a_known_kind_and_does_not_get_in(bench):
    assert bench.ask(basic("eve", "right")) == 401
    assert bench.ask(basic("eve", "secret")) == 401
    assert len(bench.verify.checked) == 2
    assert {stored_hash for stored_hash, _ in bench.verify.checked} <= {"$2b$right", "$2b$secret"}


def test_the_decoy_of_an_unknown_user_is_always_the_same(bench):
    assert bench.file.hash_of("eve") == bench.file.hash_of("eve")
    assert bench.file.hash_of("eve")[1] is False


def test_without_users_nobody_gets_in_at_the_usual_cost(tmp_path):
    bench = Bench(tmp_path / "users", {})
    assert bench.ask(basic("ann", "right")) == 401
    assert bench.verify.checked[0][0].startswith("$argon2id$")
    bench.authenticator.close()


def test_what_was_remembered_is_checked_again_after_its_time(bench):
    bench.ask(basic("ann", "right"))
    bench.clock.now += 301
    bench.ask(basic("ann", "right"))
    assert len(bench.verify.checked) == 2


def test_a_changed_file_is_noticed_and_what_was_remembered_dropped(bench):
    assert bench.ask(basic("ann", "right")) == "ann"
    bench.clock.now += 2
    bench.write({"ann": "new"})
    assert bench.ask(basic("ann", "right")) == 401
    assert bench.ask(basic("ann", "new")) == "ann"


def test_a_new_user_and_a_new_password_are_let_in_at_once(bench):
    assert bench.ask(basic("cid", "new")) == 401
    bench.write({"ann": "new", "bob": "secret", "cid": "new"})
    assert [bench.ask(basic(name, "new")) for name in ("cid", "ann")] == ["cid", "ann"]
    assert bench.ask(basic("ann", "right")) == 401


def test_an_empty_file_lets_nobody_in(bench):
    assert bench.ask(basic("ann", "right")) == "ann"
    bench.clock.now += 2
    bench.write({})
    assert bench.ask(basic("ann", "right")) == 401


def test_a_file_that_is_gone_keeps_the_users_known_before_and_says_so(bench):
    assert bench.ask(basic("ann", "right")) == "ann"
    bench.clock.now += 2
    bench.path.unlink()
    with capture_logs() as lines:
        for name, password in (("ann", "right"), ("bob", "secret"), ("bob", "secret")):
            assert bench.ask(basic(name, password)) == name
            bench.clock.now += 2
        assert bench.ask(basic("ann", "wrong")) == 401
    [line] = lines
    assert (line["log_level"], f"{bench.path} is gone" in line["problem"]) == ("error", True)
    bench.clock.now += 2
    bench.write({"bob": "secret"})
    assert [bench.ask(basic(name, "right")) for name in ("ann", "bob")] == [401, 401]


def test_a_file_that_could_not_be_read_is_tried_again_though_it_looks_the_same(bench):
    """As one whose mode is corrected."""
    good, before = bench.path.read_text(), bench.path.stat().st_mtime_ns
    bench.clock.now += 2
    bench.path.write_text("x" * len(good))
    with capture_logs() as lines:
        for _ in range(3):
            assert bench.ask(basic("ann", "right")) == "ann"
            bench.clock.now += 2
    assert len(lines) == 1
    broken = bench.path.stat().st_mtime_ns
    bench.path.write_text(good)
    os.utime(bench.path, ns=(broken, broken))
    assert before != broken
    with capture_logs() as lines:
        assert bench.ask(basic("ann", "right")) == "ann"
    assert [line["event"] for line in lines] == ["password file read again"]


def test_a_file_that_is_not_there_yet_has_no_users(tmp_path):
    with capture_logs() as lines:
        assert not UserFile(tmp_path / "users", Clock()).has("ann")
    assert lines == []


def test_a_broken_file_keeps_the_users_known_before(bench):
    bench.clock.now += 2
    bench.path.write_text("no colon here\n")
    assert bench.ask(basic("ann", "right")) == "ann"


def test_a_password_changed_while_its_hash_is_computed_is_not_remembered(bench):
    checked = bench.verify.checked

    def change_meanwhile(stored_hash, password):
        checked.append((stored_hash, password))
        bench.file.generation += 1
        return True

    bench.passwords._verify = change_meanwhile
    bench.ask(basic("ann", "right"))
    bench.ask(basic("ann", "right"))
    assert len(checked) == 2


def test_calls_with_a_remembered_password_look_once_a_second_at_most(bench, monkeypatch):
    bench.ask(basic("ann", "right"))
    looks, version = [], file_version(bench.path)
    monkeypatch.setattr("hms_gateway.runtime.file_versions.file_version", lambda path: looks.append(path) or version)
    bench.clock.now += 2
    for _ in range(100):
        bench.ask(basic("ann", "right"))
    assert len(looks) == 1


@pytest.mark.parametrize(
    ("header", "word"),
    [
        (None, "required"),
        (b"", "required"),
        (b"Bearer abc.def.ghi", "not accepted"),
        (b"Negotiate YII=", "not accepted"),
        (b"Basic", "not readable"),
        (b"Basic !!!", "not readable"),
        (b"Basic " + base64.b64encode(b"nocolon"), "not readable"),
        (b"Basic " + base64.b64encode(b":nouser"), "not readable"),
        (b"Basic " + base64.b64encode(b"a\nb:c"), "not readable"),
        (b"Basic " + base64.b64encode(b"a:" + b"b" * 10_000), "not readable"),
    ],
)
def test_what_is_no_password_is_refused_with_a_reason_and_no_hash(bench, header, word):
    fields = [] if header is None else [(b"authorization", header)]
    with pytest.raises(Refused, match=word) as refusal:
        asyncio.run(bench.authenticator.authenticate(RequestHead(dict(fields), fields, b"", "10.0.0.1")))
    assert refusal.value.status == 401
    assert refusal.value.headers[0][1].startswith(b'Basic realm="test"')
    assert bench.verify.checked == []


def test_guessing_gets_slower_and_only_for_that_user_from_that_address(bench):
    for _ in range(8):
        bench.ask(basic("ann", "wrong"))
    delays = list(bench.clock.slept)
    assert delays == sorted(delays)
    assert delays[-1] >= 8 * delays[0] > 0
    bench.clock.slept.clear()
    assert bench.ask(basic("bob", "secret")) == "bob"
    assert bench.ask(basic("ann", "right"), peer="10.0.0.2") == "ann"
    assert bench.clock.slept == []


def test_who_is_remembered_is_not_slowed_down_by_others_guessing(bench):
    bench.ask(basic("ann", "right"))
    for _ in range(8):
        bench.ask(basic("ann", "wrong"))
    bench.clock.slept.clear()
    assert bench.ask(basic("ann", "right")) == "ann"
    assert bench.clock.slept == []


def test_a_right_password_ends_the_delay(bench):
    for _ in range(6):
        bench.ask(basic("ann", "wrong"))
    assert bench.ask(basic("ann", "right")) == "ann"
    bench.clock.slept.clear()
    bench.ask(basic("ann", "wrong"))
    assert bench.clock.slept == []


@pytest.mark.slow
def test_real_hashes_let_in(tmp_path):
    path = tmp_path / "users"
    path.write_text(f"ann:{hash_password('pä:ss')}\n", "utf-8")
    clock = Clock()
    passwords = PasswordLogin(UserFile(path, clock), challenges=(), remembered_seconds=1)
    authenticator = LoginStack([passwords], challenges=())
    for header in (basic("ann", "pä:ss"), basic("ann", "pä:ss", "latin-1"), basic("ann", "pä:ss").rstrip(b"=")):
        head = RequestHead({b"authorization": header}, [(b"authorization", header)], b"", "10.0.0.1")
        assert asyncio.run(authenticator.authenticate(head)).user == "ann"
    authenticator.close()
