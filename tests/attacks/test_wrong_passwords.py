"""M2, M3: who guessed passwords held up everybody who logged in at the same time."""

import asyncio
import threading

import pytest

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth.passwords import UserFile
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.gateway.logins import build_authenticator
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.settings import Settings
from tests.gateway.auth.test_authentication import Bench, basic
from tests.support.patience import PATIENCE_SECONDS

NAT, ELSEWHERE = "192.0.2.1", "198.51.100.7"


class Guesses(Bench):
    """Attempts that come together; the checks wait until all of them have come."""

    def __init__(self, path, users: dict[str, str], limits: Limits | None = None) -> None:
        super().__init__(path, users)
        self.all_have_come = threading.Event()
        self.order: list[str] = []
        self.answered: list[str] = []
        self.refused: list[Refused] = []
        self.authenticator.close()
        self.authenticator = self.stack(UserFile(path, self.clock), verify=self.check, limits=limits)
        self.take_next = self.passwords._queue.next
        self.passwords._queue.next = self.next

    def next(self, *, suspects_too: bool):
        """Notes whose turn it is; the threads may begin in another order."""
        check = self.take_next(suspects_too=suspects_too)
        if check is not None:
            self.order.append(check.job.credentials.password)
        return check

    def check(self, stored_hash: str, password: str) -> bool:
        assert self.all_have_come.wait(PATIENCE_SECONDS)
        return stored_hash == f"$2b${password}"

    async def attempt(self, user: str, password: str, peer: str) -> bool:
        field = (b"authorization", basic(user, password))
        try:
            await self.authenticator.authenticate(RequestHead(dict([field]), [field], b"", peer))
        except Refused as refused:
            self.refused.append(refused)
        self.answered.append(password)
        return not self.refused or self.refused[-1].status != 401

    def together(self, *attempts: tuple[str, str, str]) -> None:
        async def scenario() -> None:
            asked = [asyncio.create_task(self.attempt(*attempt)) for attempt in attempts]
            for _ in range(5):
                await asyncio.sleep(0)
            self.all_have_come.set()
            await asyncio.gather(*asked)

        self.all_have_come.clear()
        asyncio.run(scenario())


@pytest.fixture
def guesses(tmp_path):
    it = Guesses(tmp_path / "users", {"ann": "right", "bob": "secret", "cid": "third"})
    yield it
    it.authenticator.close()


def test_wrong_logins_of_other_names_do_not_hold_up_a_right_one_of_the_same_address(guesses):
    wrong = [(f"name{number}", f"guess{number}", NAT) for number in range(99)]
    guesses.together(*wrong, ("ann", "right", NAT))
    assert guesses.order.index("right") <= 2
    assert len(guesses.order) == 100


def test_wrong_logins_of_a_known_name_do_not_hold_up_others_either(guesses):
    wrong = [("bob", f"guess{number}", NAT) for number in range(50)]
    guesses.together(*wrong, ("ann", "right", NAT), ("bob", "secret", ELSEWHERE))
    assert guesses.order.index("right") <= 4
    assert guesses.order.index("secret") <= 4


def test_more_attempts_than_may_wait_cost_the_guesser_a_place(tmp_path):
    limits = Limits(password_checks_max=40, share_per_address=0.5)
    guesses = Guesses(tmp_path / "users", {"ann": "right", "bob": "secret"}, limits)
    wrong = [(f"name{number}", f"guess{number}", NAT) for number in range(260)]
    guesses.together(*wrong, ("ann", "right", NAT), ("bob", "secret", ELSEWHERE))
    assert {"right", "secret"} <= set(guesses.order[:4])
    full = [refused for refused in guesses.refused if refused.status == 503]
    assert {refused.limit for refused in full} == {"share_per_address of password_checks_max"}
    # One is checked while the others come.
    assert len(full) == 260 - 20 + 1 - 1
    guesses.authenticator.close()


def test_guesses_of_one_name_from_many_addresses_neither_fill_the_queue_nor_take_the_place_of_its_user(tmp_path):
    limits = Limits(password_checks_max=40, share_per_address=0.25)
    guesses = Guesses(tmp_path / "users", {"ann": "right", "bob": "secret"}, limits)
    wrong = [("ann", f"guess{number}", f"192.0.2.{number % 30}") for number in range(60)]
    guesses.together(*wrong, ("ann", "right", ELSEWHERE), ("bob", "secret", NAT), *wrong[:9])
    assert {"right", "secret"} <= set(guesses.order)
    full = [refused for refused in guesses.refused if refused.status == 503]
    assert {refused.limit for refused in full} == {"share_per_user of password_checks_max"}
    assert len(guesses.order) <= 24
    guesses.authenticator.close()


@pytest.mark.slow
def test_a_proxy_that_names_no_client_is_not_limited_as_one_address(tmp_path):
    settings = Settings(
        data_dir=tmp_path, forwarding_proxies=[NAT], limits=Limits(password_checks_max=8, share_per_address=0.125)
    )
    add_user(settings.users_path, "ann", "right")
    authenticator = build_authenticator(settings)

    async def scenario(peer: str) -> set[int]:
        heads = [RequestHead(dict([field]), [field], b"", peer) for field in fields]
        refused = await asyncio.gather(*map(authenticator.authenticate, heads), return_exceptions=True)
        return {one.status for one in refused if isinstance(one, Refused)}

    fields = [(b"authorization", basic(f"name{number}", "wrong")) for number in range(6)]
    assert asyncio.run(scenario(NAT)) == {401}
    assert asyncio.run(scenario(ELSEWHERE)) == {401, 503}
    authenticator.close()


def test_guessing_delays_neither_another_address_nor_what_was_right_before(guesses):
    guesses.all_have_come.set()
    assert guesses.ask(basic("ann", "right"), NAT) == "ann"
    for number in range(8):
        assert guesses.ask(basic("ann", f"guess{number}"), NAT) == 401
    guesses.clock.now += 301
    guesses.clock.slept.clear()
    # Not remembered any more, but known to have been right.
    assert guesses.ask(basic("ann", "right"), NAT) == "ann"
    assert guesses.ask(basic("ann", "right"), ELSEWHERE) == "ann"
    assert guesses.clock.slept == []


def test_what_was_right_before_is_checked_first(guesses):
    guesses.all_have_come.set()
    guesses.ask(basic("ann", "right"), NAT)
    guesses.clock.now += 301
    guesses.order.clear()
    known = [("bob", f"guess{number}", f"192.0.2.{number}") for number in range(50)]
    guesses.together(*known, ("ann", "right", NAT))
    assert guesses.order.index("right") <= 2


def test_a_password_that_is_not_right_any_more_loses_its_privilege(guesses):
    guesses.all_have_come.set()
    assert guesses.ask(basic("ann", "right"), NAT) == "ann"
    guesses.clock.now += 301
    guesses.write({"ann": "new"})
    assert guesses.ask(basic("ann", "right"), NAT) == 401
    assert guesses.passwords.cache.find(basic("ann", "right")) is None


def test_a_wrong_password_of_a_known_name_is_not_answered_before_those_of_unknown_ones(guesses):
    """Otherwise who floods one lane sees by the time of an answer that a name has another."""
    wrong = [(f"name{number}", f"guess{number}", NAT) for number in range(40)]
    guesses.together(*wrong, ("ann", "wrong", NAT), ("bob", "secret", NAT))
    assert guesses.order.index("wrong") <= 4
    assert guesses.answered[-1] == "wrong"
    assert guesses.answered.index("secret") <= 8
