"""Tokens of OAuth2 issuers: who gets in with which, what is refused, and what holds while an issuer is away."""

import asyncio
import base64
import hmac
import json
import math
import threading
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc.jwk import KeySet

from hms_gateway.gateway.admission.identity import Refused, RequestHead
from hms_gateway.gateway.auth import issuers as signed_tokens
from hms_gateway.gateway.auth.credentials import LoginStack, wrong_token_challenges
from hms_gateway.gateway.auth.issuers import REFETCH_EVERY_SECONDS, TOKEN_BYTES_MAX, SignedTokenLogin, make_issuer
from hms_gateway.gateway.auth.tokens import TokenFile, TokenLogin, TokenUses, create_token
from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.settings_reading import load_settings
from tests.gateway.auth.test_authentication import Clock
from tests.support.patience import until
from tests.support.token_issuer import AUDIENCE, new_key, public, signed, token_issuer

FIRST, SECOND, OTHER = new_key("first"), new_key("second"), new_key("first")
CURVE, EDWARDS = new_key("curve", "EC"), new_key("edwards", "OKP")
# 1024 bits.
SHORT = json.dumps({"keys": [{"kty": "RSA", "kid": "first", "e": "AQAB", "n": "x" * 171}]}).encode()


class IssuerBench:
    """An authenticator for tokens whose clock the test holds; `now` begins at the time of day."""

    def __init__(self, folder, issuers) -> None:
        self.clock = Clock()
        self.clock.now = time.time()
        self.tokens = folder / "tokens"
        challenges = wrong_token_challenges("test")
        clock = {"challenges": challenges, "now": self.clock, "monotonic": self.clock, "sleep": self.clock.sleep}
        self.issuers = [
            make_issuer(one, self.clock) for one in load_settings(token_issuers=issuers).token_issuers.values()
        ]
        personal = TokenLogin(TokenFile(WatchedFile(self.tokens, self.clock)), TokenUses(folder / "uses"), **clock)
        logins = [SignedTokenLogin(self.issuers, **clock), personal]
        self.authenticator = LoginStack(logins, challenges=challenges)

    def head(self, token: str) -> RequestHead:
        fields = [(b"authorization", b"Bearer " + token.encode())]
        return RequestHead(dict(fields), fields, b"", "10.0.0.1")

    def identity(self, token: str):
        """Raises Refused."""
        head = self.head(token)
        return self.authenticator.remembered(head) or asyncio.run(self.authenticator.authenticate(head))

    def ask(self, token: str):
        """The user, or the status of the refusal."""
        try:
            return self.identity(token).user
        except Refused as refused:
            return refused.status

    def refusal(self, token: str) -> Refused:
        with pytest.raises(Refused) as refused:
            self.identity(token)
        return refused.value

    def remembers(self, token: str) -> bool:
        return self.authenticator.remembered(self.head(token)) is not None


@pytest.fixture(scope="module")
def shared():
    with token_issuer(FIRST, CURVE, EDWARDS) as it:
        yield it


@pytest.fixture
def issuer(shared):
    shared.keys, shared.answers = [FIRST, CURVE, EDWARDS], {}
    shared.asked.clear()
    return shared


@pytest.fixture
def bench(issuer, tmp_path):
    return IssuerBench(tmp_path, {"corp": settings_of(issuer)})


def settings_of(issuer, **others):
    return {
        "issuer": issuer.url,
        "audience": ["other", AUDIENCE],
        "algorithms": ["RS256", "ES256", "EdDSA"],
        "groups_claim": "groups",
        **others,
    }


def encoded(part: dict | bytes) -> str:
    content = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def unsigned(claims: dict, **header) -> str:
    return f"{encoded({'alg': 'none', **header})}.{encoded(claims)}."


def signed_text(claims: dict | bytes) -> str:
    """Libraries do not sign every text. Infinity is written as a number that is too large."""
    content = claims if isinstance(claims, bytes) else json.dumps(claims).replace("Infinity", "1e999").encode()
    text = f"{encoded({'alg': 'RS256', 'kid': 'first'})}.{encoded(content)}"
    return f"{text}.{encoded(FIRST.private_key.sign(text.encode(), PKCS1v15(), SHA256()))}"


def shared_secret(secret: bytes, issuer) -> str:
    """Libraries refuse to make it."""
    text = f"{encoded({'alg': 'HS256', 'kid': 'first'})}.{encoded(issuer.claims())}"
    return f"{text}.{encoded(hmac.digest(secret, text.encode(), 'sha256'))}"


def test_a_token_of_the_issuer_lets_in_with_its_groups_and_is_verified_once(bench, issuer):
    token = issuer.token("etl")
    identity = bench.identity(token)
    assert (identity.user, identity.groups) == ("etl", {"engineers", "auditors"})
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]
    assert all(bench.remembers(token) for _ in range(3))
    assert len(issuer.asked) == 2


@pytest.mark.parametrize("begin", [b"bearer ", b"Bearer  ", b" BEARER "])
def test_a_token_is_remembered_however_its_header_is_written(bench, issuer, begin):
    fields = {b"authorization": begin + issuer.token("etl").encode()}
    head = RequestHead(fields, [], b"", "10.0.0.1")
    assert asyncio.run(bench.authenticator.authenticate(head)).user == "etl"
    assert bench.authenticator.remembered(head).user == "etl"


@pytest.mark.parametrize(("key", "algorithm"), [(FIRST, "RS256"), (CURVE, "ES256"), (EDWARDS, "EdDSA")])
def test_algorithms_that_the_operator_named(bench, issuer, key, algorithm):
    assert bench.ask(signed(key, issuer.claims(), algorithm=algorithm)) == "ann"


def test_personal_tokens_are_right_as_before(bench):
    secret, _ = create_token(bench.tokens, "bob", now=int(bench.clock.now), seconds=60)
    assert bench.ask(secret) == "bob"
    assert bench.ask("hmsgw_wrong") == 401


WRONG = {
    "another audience": lambda issuer: signed(FIRST, issuer.claims(aud="another")),
    "no audience": lambda issuer: signed(FIRST, issuer.claims(aud=None)),
    "expired": lambda issuer: signed(FIRST, issuer.claims(exp=int(time.time()) - 61)),
    "never expires": lambda issuer: signed(FIRST, issuer.claims(exp=None)),
    "expires at no time": lambda issuer: signed(FIRST, issuer.claims(exp="tomorrow")),
    "expires after all time": lambda issuer: signed(FIRST, issuer.claims(exp=10**300)),
    "not yet": lambda issuer: signed(FIRST, issuer.claims(nbf=int(time.time()) + 120)),
    "another issuer": lambda issuer: signed(FIRST, issuer.claims(iss="https://other.example")),
    "no issuer": lambda issuer: signed(FIRST, issuer.claims(iss=None)),
    "no user": lambda issuer: signed(FIRST, issuer.claims(sub=None)),
    "a user with a line end": lambda issuer: signed(FIRST, issuer.claims(sub="ann\nbob")),
    "a user of many characters": lambda issuer: signed(FIRST, issuer.claims(sub="a" * 257)),
    "alg none": lambda issuer: unsigned(issuer.claims()),
    "alg none with a kid": lambda issuer: unsigned(issuer.claims(), kid="first"),
    "alg None": lambda issuer: unsigned(issuer.claims(), alg="None"),
    "HS256 with the public key as the secret": lambda issuer: shared_secret(FIRST.as_pem(private=False), issuer),
    "HS256 with the key's DER form as the secret": lambda issuer: shared_secret(FIRST.as_der(private=False), issuer),
    "HS256 with the JWK set as the secret": lambda issuer: shared_secret(public(FIRST), issuer),
    "an algorithm that is not named": lambda issuer: signed(FIRST, issuer.claims(), algorithm="PS256"),
    "another key under a known name": lambda issuer: signed(OTHER, issuer.claims()),
    "the name of another kind of key": lambda issuer: signed(FIRST, issuer.claims(), kid="curve"),
    "another algorithm under a known name": lambda issuer: signed(
        CURVE, issuer.claims(), algorithm="ES256", kid="first"
    ),
    "no name where several fit": lambda issuer: signed(FIRST, issuer.claims(), kid=None),
    "its own key inside": lambda issuer: signed(
        OTHER, issuer.claims(), kid=None, jwk=KeySet([OTHER]).as_dict(private=False)["keys"][0]
    ),
    "claims that cannot be read": lambda issuer: signed(FIRST, issuer.claims()).replace(".", ".x", 1),
    "a signature that was cut": lambda issuer: signed(FIRST, issuer.claims())[:-8],
    "a signature of nothing": lambda issuer: signed(FIRST, issuer.claims()).rpartition(".")[0] + ".",
    "claims that were changed": lambda issuer: ".".join(
        [
            signed(FIRST, issuer.claims()).split(".")[0],
            signed(FIRST, issuer.claims(sub="admin")).split(".")[1],
            signed(FIRST, issuer.claims()).split(".")[2],
        ]
    ),
    "nothing": lambda issuer: "..",
    "no base64": lambda issuer: "a!.b!.c!",
    "no UTF-8": lambda issuer: ".".join([encoded(b"\xff\xfe")] * 3),
    "a nest of lists": lambda issuer: ".".join([encoded(b"[" * 3_000)] * 3),
    "a megabyte of claims": lambda issuer: signed(FIRST, issuer.claims(more="x" * 1_000_000)),
}


@pytest.mark.parametrize("case", WRONG)
def test_refused(bench, issuer, case):
    issuer.keys = [FIRST, CURVE, SECOND]
    token = WRONG[case](issuer)
    refused = bench.refusal(token)
    assert (refused.status, refused.reason) == (401, "wrong_token"), refused.text
    assert refused.text.startswith("The token is not accepted: ")
    assert [value.split()[0] for name, value in refused.headers if name == b"www-authenticate"] == [b"Basic", b"Bearer"]
    assert not bench.remembers(token)


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize("value", ["tomorrow", True, 10**13, -(10**13), [1], math.inf])
def test_a_claim_that_is_not_a_time_is_named(bench, issuer, claim, value):
    text = bench.refusal(signed_text({**issuer.claims(), claim: value})).text
    assert text == f"The token is not accepted: its claim {claim} is not a time"


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"nbf": 10**11}, "it is not valid yet (nbf)"),
        ({"exp": 1}, "it has expired"),
        ({"exp": None}, "it does not say when it expires (exp)"),
        ({"aud": "another"}, "it is for another audience (aud)"),
    ],
)
def test_the_refusal_names_the_claim(bench, issuer, claims, says):
    assert bench.refusal(signed_text({**issuer.claims(), **claims})).text == f"The token is not accepted: {says}"


@pytest.mark.parametrize("end", [b',"x":"\xff"}', b',"nbf":' + b"1" * 5000 + b"}", b',"nbf":NaN}', b',"nbf":-1e999}'])
def test_claims_that_only_some_readers_take_are_refused(bench, issuer, end):
    assert bench.refusal(signed_text(json.dumps(issuer.claims()).encode()[:-1] + end)).status == 401


@pytest.mark.parametrize(
    "extension",
    [
        {"crit": ["pay"], "pay": "now"},
        # RFC 7797: the payload is signed as it is, and what is read as the claims is their base64.
        {"crit": ["b64"], "b64": False},
        {"crit": [], "b64": True},
        {"crit": None},
        {"b64": False},
    ],
)
def test_a_header_that_asks_for_an_extension_is_refused(bench, issuer, extension):
    text = f"{encoded({'alg': 'RS256', 'kid': 'first', **extension})}.{encoded(issuer.claims())}"
    signature = FIRST.private_key.sign(text.encode(), PKCS1v15(), SHA256())
    refused = bench.refusal(f"{text}.{encoded(signature)}")
    assert (refused.status, "asks for an extension" in refused.text) == (401, True)


def test_a_token_without_a_name_of_a_key_means_the_only_one_that_fits(bench, issuer):
    assert bench.ask(signed(FIRST, issuer.claims(), kid=None)) == "ann"


def test_the_longest_token_has_so_many_bytes(bench, issuer):
    room = TOKEN_BYTES_MAX - len(signed(FIRST, issuer.claims(more="")))
    assert bench.ask(signed(FIRST, issuer.claims(more="x" * (room * 3 // 4)))) == "ann"


def test_many_header_fields_are_no_obstacle(bench, issuer):
    assert bench.ask(signed(FIRST, issuer.claims(), x5t="x" * 600, typ="at+jwt")) == "ann"


def test_a_token_ends_when_it_expires_though_it_is_remembered(bench, issuer):
    token = signed(FIRST, issuer.claims())
    assert bench.ask(token) == "ann"
    bench.clock.now += 659
    assert bench.ask(token) == "ann"
    bench.clock.now += 2
    assert not bench.remembers(token)
    assert bench.ask(token) == 401


@pytest.mark.parametrize(
    ("claim", "value", "groups"),
    [
        ("groups", ["a", "b", "a", 3, ""], {"a", "b"}),
        ("groups", "a b", {"a", "b"}),
        ("groups", None, set()),
        ("groups", 7, set()),
        ("realm_access.roles", {"roles": ["a"]}, {"a"}),
        ("https://corp.example/groups", ["a"], {"a"}),
    ],
)
def test_groups(issuer, tmp_path, claim, value, groups):
    bench = IssuerBench(tmp_path, {"corp": settings_of(issuer, groups_claim=claim)})
    name = claim if claim.startswith("https") else claim.split(".")[0]
    assert bench.identity(signed(FIRST, issuer.claims(**{name: value}))).groups == groups


def test_the_user_comes_from_the_claim_that_is_set(issuer, tmp_path):
    bench = IssuerBench(tmp_path, {"corp": settings_of(issuer, user_claim="email")})
    assert bench.ask(signed(FIRST, issuer.claims(email="ann@corp.example"))) == "ann@corp.example"
    assert bench.ask(signed(FIRST, issuer.claims())) == 401


def test_a_new_key_is_fetched_when_a_token_names_it(bench, issuer):
    assert bench.ask(signed(FIRST, issuer.claims())) == "ann"
    issuer.keys = [SECOND, FIRST]
    bench.clock.now += REFETCH_EVERY_SECONDS
    assert bench.ask(signed(SECOND, issuer.claims(sub="bob"))) == "bob"
    assert issuer.asked.count("/keys") == 2


def test_unknown_names_of_keys_make_one_look_in_a_while(bench, issuer):
    assert bench.ask(signed(FIRST, issuer.claims())) == "ann"
    bench.clock.now += REFETCH_EVERY_SECONDS
    for number in range(4):
        assert bench.ask(signed(OTHER, issuer.claims(), kid=f"unknown {number}")) == 401
    assert issuer.asked.count("/keys") == 2


def test_a_token_of_a_withdrawn_key_is_forgotten_with_it(bench, issuer):
    old, new = signed(FIRST, issuer.claims()), signed(SECOND, issuer.claims(sub="bob"))
    assert bench.ask(old) == "ann"
    issuer.keys = [SECOND, CURVE]
    bench.clock.now += REFETCH_EVERY_SECONDS
    assert bench.ask(new) == "bob"
    assert not bench.remembers(old)
    assert bench.ask(old) == 401
    assert bench.remembers(new)


def test_a_token_of_a_key_that_is_withdrawn_during_its_check_is_not_remembered(bench, issuer, monkeypatch):
    check = signed_tokens._signed_claims

    def check_while_the_issuer_answers(*checked):
        issuer.keys = [SECOND, CURVE]
        bench.clock.now += 301
        bench.issuers[0].keys.current()
        until(lambda: not any(thread.name == "issuer" for thread in threading.enumerate()))
        return check(*checked)

    token = signed(FIRST, issuer.claims())
    monkeypatch.setattr(signed_tokens, "_signed_claims", check_while_the_issuer_answers)
    assert bench.ask(token) == "ann"
    monkeypatch.undo()
    assert not bench.remembers(token)
    assert bench.ask(token) == 401


def test_a_key_without_a_name_is_not_found_by_its_thumbprint(bench, issuer):
    unnamed = {name: value for name, value in FIRST.as_dict(private=False).items() if name != "kid"}
    issuer.answers["/keys"] = (200, json.dumps({"keys": [unnamed]}).encode())
    assert bench.ask(signed(FIRST, issuer.claims(), kid=None)) == "ann"
    assert bench.ask(signed(FIRST, issuer.claims(), kid=FIRST.thumbprint())) == 401


def test_keys_are_looked_at_again_although_every_token_is_remembered(bench, issuer):
    old = signed(FIRST, issuer.claims())
    assert bench.ask(old) == "ann"
    issuer.keys = [SECOND]
    bench.clock.now += 301
    until(lambda: bench.ask(old) == 401)


def test_after_a_long_time_without_calls_a_withdrawn_key_lets_nothing_new_in(bench, issuer):
    assert bench.ask(signed(FIRST, issuer.claims())) == "ann"
    issuer.keys = [SECOND]
    bench.clock.now += 601
    assert bench.ask(signed(FIRST, issuer.claims(sub="late", exp=int(time.time()) + 9_000))) == 401


def test_while_the_issuer_is_away_what_is_known_goes_on_for_a_time(issuer, tmp_path):
    bench = IssuerBench(tmp_path, {"corp": settings_of(issuer, keys_kept_seconds=3_600)})
    later = int(time.time()) + 100_000
    token = signed(FIRST, issuer.claims(exp=later))
    assert bench.ask(token) == "ann"
    issuer.answers["/keys"] = (500, b"")
    bench.clock.now += 3_000
    assert bench.remembers(token)
    assert bench.ask(signed(FIRST, issuer.claims(sub="bob", exp=later))) == "bob"
    refused = bench.refusal(signed(SECOND, issuer.claims(exp=later)))
    assert (refused.status, refused.reason) == (503, "issuer_away")
    assert b"retry-after" in dict(refused.headers)
    bench.clock.now += 601
    assert bench.ask(token) == 503
    issuer.answers.clear()
    bench.clock.now += REFETCH_EVERY_SECONDS
    assert bench.ask(token) == "ann"


@pytest.mark.parametrize(
    ("path", "status", "body", "says"),
    [
        ("/.well-known/openid-configuration", 404, b"", "404"),
        ("/.well-known/openid-configuration", 200, b"<html>", "not an OpenID configuration"),
        ("/.well-known/openid-configuration", 200, b'{"issuer":"https://a","jwks_uri":"https://a/k"}', "of the issuer"),
        ("/keys", 302, b"", "302"),
        ("/keys", 200, b"x" * 1_100_000, "longer than"),
        ("/keys", 200, b'{"keys":[]}', "no public key"),
        ("/keys", 200, b'{"keys":7}', "not a JWK set"),
        ("/keys", 200, b"[" * 100_000, "not JSON"),
        ("/keys", 200, SHORT, "no public key"),
    ],
)
def test_an_issuer_that_publishes_something_else_is_away(bench, issuer, path, status, body, says):
    issuer.answers[path] = (status, body)
    refused = bench.refusal(signed(FIRST, issuer.claims()))
    assert refused.status == 503
    assert says in refused.text
    # Asked once for all that come meanwhile.
    asked = len(issuer.asked)
    assert bench.ask(signed(FIRST, issuer.claims(sub="bob"))) == 503
    assert len(issuer.asked) == asked


def test_an_issuer_that_cannot_be_reached_is_away_at_once(tmp_path):
    with token_issuer(FIRST) as gone:
        claims, settings = gone.claims(), settings_of(gone)
    assert IssuerBench(tmp_path, {"corp": settings}).ask(signed(FIRST, claims)) == 503


def test_many_requests_wait_for_one_look(bench, issuer):
    async def ask_all():
        heads = [bench.head(signed(FIRST, issuer.claims(sub=f"user{number}"))) for number in range(20)]
        return await asyncio.gather(*map(bench.authenticator.authenticate, heads))

    assert [identity.user for identity in asyncio.run(ask_all())] == [f"user{number}" for number in range(20)]
    assert issuer.asked.count("/keys") == 1


def test_a_file_of_keys_is_read_again_and_a_broken_one_changes_nothing(tmp_path):
    file = tmp_path / "keys.json"
    file.write_bytes(public(FIRST))
    settings = {"issuer": "corp", "audience": [AUDIENCE], "keys_file": str(file)}
    bench = IssuerBench(tmp_path, {"corp": settings})
    claims = {"iss": "corp", "aud": [AUDIENCE, "more"], "sub": "ann", "exp": int(time.time()) + 600}
    old = signed(FIRST, claims)
    assert bench.ask(old) == "ann"
    file.write_bytes(b"broken")
    bench.clock.now += 1
    assert bench.ask(old) == "ann"
    file.unlink()
    bench.clock.now += 1
    assert bench.ask(old) == "ann"
    file.write_bytes(public(SECOND, CURVE))
    assert bench.ask(signed(SECOND, {**claims, "sub": "bob"})) == "bob"
    bench.clock.now += 1
    assert bench.ask(old) == 401


def test_two_issuers_may_have_keys_of_one_name(issuer, tmp_path):
    with token_issuer(OTHER) as second:
        bench = IssuerBench(tmp_path, {"one": settings_of(issuer), "two": settings_of(second)})
        assert bench.ask(signed(FIRST, issuer.claims())) == "ann"
        assert bench.ask(signed(OTHER, second.claims(sub="bob"))) == "bob"
        assert bench.ask(signed(OTHER, issuer.claims())) == 401
        assert bench.ask(signed(FIRST, second.claims())) == 401


def test_wrong_tokens_of_an_address_wait_and_right_ones_do_not(bench, issuer):
    for _ in range(8):
        assert bench.ask(signed(OTHER, issuer.claims())) == 401
    assert bench.clock.slept == sorted(bench.clock.slept)
    assert bench.clock.slept[-1] > 0
    waited = len(bench.clock.slept)
    assert bench.ask(signed(FIRST, issuer.claims())) == "ann"
    assert len(bench.clock.slept) == waited
