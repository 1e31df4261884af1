"""Delegation tokens that the catalog gives out as logins: made, renewed, cancelled, and looked up by the doors.

They are beside those that Hive's token managers keep here (`registry.tokens`), in names that no method reads or writes,
so that an administrator's `get_token` and `add_token` neither show nor make a login. A password is random: with a
master key, as Hive has it, that key would be every token.
"""

import base64
import hmac
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from hms_gateway.catalog.registry.tokens import LOGIN, TokenService
from hms_gateway.metastore.ports.store import Store, StoreError, Transaction
from hms_gateway.runtime.clock import Clock
from hms_gateway.runtime.limits import Limits
from hms_gateway.runtime.logins.delegation_token import (
    NAME_CHARACTERS_MAX,
    TokenName,
    TokenRefused,
    TokensAway,
    UnreadableToken,
    read_token_text,
    token_text,
)
from hms_gateway.runtime.sealing import SealingError
from hms_gateway.structs import MetaException

_PASSWORD_BYTES: Final = 32
_NUMBERS: Final = 2**31


class TokenTimes(msgspec.Struct, frozen=True):
    """How long tokens live at most, and without being renewed."""

    lifetime_seconds: float
    renewal_seconds: float


class DelegationTokens:
    """Decides about a token by what is stored at the moment; nothing is remembered.

    `entry_of` is `UserFile.entry_of`: a token counts as long as its owner, and who asked for it, are the users that
    they were then, or still none of the password file.
    """

    def __init__(
        self,
        store: Store,
        tokens: TokenService,
        clock: Clock,
        times: TokenTimes,
        limits: Limits,
        entry_of: Callable[[str], str] = lambda user: "",
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._clock = clock
        self._times = times
        self._limits = limits
        self._entry_of = entry_of

    def issue(self, owner: str, renewer: str, real_user: str = "") -> str:
        """A new token of the owner's as text, which `renewer` may renew. Raises MetaException, SealingError."""
        for user in (owner, renewer, real_user):
            if len(user) > NAME_CHARACTERS_MAX or not user.isprintable():
                raise MetaException(
                    f"owner and renewer of a delegation token have at most {NAME_CHARACTERS_MAX} characters, "
                    "and no control characters"
                )
        now = self._clock.milliseconds()
        ends = now + round(self._times.lifetime_seconds * 1000)
        name = TokenName(owner, renewer, real_user, now, ends, secrets.randbelow(_NUMBERS))
        key = _key(name.encode())
        until = min(ends, now + round(self._times.renewal_seconds * 1000))
        sealed = self._tokens.sealed(key, _kept(until, secrets.token_bytes(_PASSWORD_BYTES), self._entries(name)))

        # Before the catalog is locked, since all tokens are read for it: those who ask at the same time may get a few
        # more. A repeated call gets what it got, and so is not refused here.
        counts = self._count(owner, real_user)

        def insert(transaction: Transaction) -> list[str]:
            self._check_number(counts, owner, real_user)
            transaction.tokens.insert_token(key, sealed)
            # Kept with the call's key, for a repetition: so it is sealed.
            return [key, sealed]

        key, sealed = self._store.write(insert)
        password = _read_kept(self._tokens.opened(key, sealed))[1]
        return token_text(base64.b64decode(key.removeprefix(LOGIN)), password)

    def renew(self, text: str, user: str) -> int:
        """Until when the token is good now, in milliseconds since 1970. Raises MetaException, SealingError."""
        encoded, password = self._read(text)
        name = TokenName.decode(encoded)
        if not name.renewer or user != name.renewer:
            raise MetaException(f"user {user} may not renew the delegation token; its renewer may")
        try:
            right, entries = self._good(encoded)
            if not hmac.compare_digest(right, password):
                raise TokenRefused("its password is wrong")
        except TokenRefused as error:
            raise MetaException(f"the delegation token cannot be renewed: {error}") from None
        until = min(name.ends_ms, self._clock.milliseconds() + round(self._times.renewal_seconds * 1000))
        key = _key(encoded)
        sealed = self._tokens.sealed(key, _kept(until, password, entries))

        def update(transaction: Transaction) -> int:
            if not transaction.tokens.update_token(key, sealed):
                raise MetaException("the delegation token cannot be renewed: it was cancelled")
            return until

        return self._store.write(update)

    def cancel(self, text: str, user: str, *, is_administrator: bool) -> None:
        """Raises MetaException."""
        encoded, _ = self._read(text)
        name = TokenName.decode(encoded)
        if not is_administrator and user not in {name.owner, name.renewer}:
            raise MetaException(f"user {user} may not cancel the delegation token; its owner or renewer may")
        if not self._store.write(lambda transaction: transaction.tokens.delete_token(_key(encoded))):
            raise MetaException("the delegation token is not known; it was cancelled, or has ended")

    def password(self, name: bytes) -> bytes:
        """Of the token with this name, when it is good now. Raises TokenRefused, TokensAway."""
        return self._good(name)[0]

    def _good(self, name: bytes) -> tuple[bytes, str]:
        """Password and users of a token that is good now. Raises TokenRefused, TokensAway."""
        key = _key(name)
        try:
            stored = self._store.read(lambda snapshot: snapshot.tokens.token(key))
            if stored is None:
                raise TokenRefused("it is not known; it was cancelled, or has ended")
            until, password, entries = _read_kept(self._tokens.opened(key, stored))
        except (StoreError, SealingError) as error:
            raise TokensAway(str(error)) from error
        if until <= self._clock.milliseconds():
            raise TokenRefused("it has ended; get another one, or let its renewer renew it in time")
        if entries != self._entries(TokenName.decode(name)):
            raise TokenRefused("its user is another one since, or has another password; get another one")
        return password, entries

    def expire(self) -> int:
        """Remove those that have ended; how many. Raises StoreError."""
        now = self._clock.milliseconds()
        kept = self._store.read(lambda snapshot: snapshot.tokens.tokens())
        ended = [key for key, stored in kept.items() if key.startswith(LOGIN) and self._until(key, stored) <= now]
        if not ended:
            return 0
        return self._store.write(lambda transaction: sum(map(transaction.tokens.delete_token, ended)))

    def _entries(self, name: TokenName) -> str:
        return f"{self._entry_of(name.owner)}/{self._entry_of(name.real_user)}"

    def _until(self, key: str, stored: str) -> int:
        """When a token ends, in milliseconds. Of one that is sealed with a lost key only the latest end is known."""
        try:
            return _read_kept(self._tokens.opened(key, stored))[0]
        except SealingError:
            return _name(key).ends_ms

    def _count(self, owner: str, real_user: str) -> tuple[int, int]:
        """Tokens of the owner, and those that the real user got for others."""
        keys = self._store.read(lambda snapshot: snapshot.tokens.tokens())
        names = [_name(key) for key in keys if key.startswith(LOGIN)]
        return sum(name.owner == owner for name in names), sum(name.real_user == real_user for name in names)

    def _check_number(self, counts: tuple[int, int], owner: str, real_user: str) -> None:
        own, for_others = counts
        most = self._limits.delegation_tokens_per_user_max
        most_for_others = self._limits.delegation_tokens_per_proxy_max
        if own >= most:
            raise MetaException(
                f"user {owner} has {own} delegation tokens (limit delegation_tokens_per_user_max: {most}); "
                "cancel those that are not needed"
            )
        if real_user and for_others >= most_for_others:
            raise MetaException(
                f"user {real_user} has got {for_others} delegation tokens for others "
                f"(limit delegation_tokens_per_proxy_max: {most_for_others}); cancel those that are not needed"
            )

    def _read(self, text: str) -> tuple[bytes, bytes]:
        try:
            name, password = read_token_text(text)
            TokenName.decode(name)
            return name, password
        except UnreadableToken as error:
            raise MetaException(f"token_str_form is not a delegation token: {error}") from None


def cancel_all(store: Store, user: str) -> int:
    """Those of a user, and those that it got for others; how many. For an operator. Raises StoreError."""
    kept = store.read(lambda snapshot: snapshot.tokens.tokens())
    keys = [key for key in kept if key.startswith(LOGIN) and user in (_name(key).owner, _name(key).real_user)]
    return store.write(lambda transaction: sum(map(transaction.tokens.delete_token, keys))) if keys else 0


def _key(name: bytes) -> str:
    return LOGIN + base64.b64encode(name).decode()


def _name(key: str) -> TokenName:
    return TokenName.decode(base64.b64decode(key.removeprefix(LOGIN)))


def _kept(until_ms: int, password: bytes, entries: str) -> str:
    return f"{until_ms} {base64.b64encode(password).decode()} {entries}"


def _read_kept(kept: str) -> tuple[int, bytes, str]:
    until_ms, password, *entries = kept.split(" ")
    return int(until_ms), base64.b64decode(password), "".join(entries)
