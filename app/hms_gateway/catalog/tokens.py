"""Delegation tokens and master keys: logins of this catalog, and what Hive's token managers keep (semantics §2.19)."""

import base64
import hmac
import logging
import secrets
from collections.abc import Callable, Collection
from typing import Final

import msgspec
from sqlalchemy import delete, insert, select, update

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Snapshot, Store, StoreError, Transaction
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import MetaException
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
from hms_gateway.runtime.sealing import Seal, SealingError, is_sealed
from hms_gateway.storage.schema.catalog import DELEGATION_TOKENS, MASTER_KEYS
from hms_gateway.storage.sql.fragments import decode_texts, encode_texts, text_hash
from hms_gateway.storage.sql.repository import AggregateRows

_MASTER_KEY = "master key"
# How the names of tokens begin that are logins here; base64 has no colon.
LOGIN: Final = "login:"

_PASSWORD_BYTES: Final = 32
_NUMBERS: Final = 2**31

_log = logging.getLogger(__name__)


class TokenRows(AggregateRows):
    """Delegation tokens by identifier, and master keys by number: opaque texts of any length."""

    def token(self, identifier: str) -> str | None:
        statement = select(DELEGATION_TOKENS.c.content).where(
            DELEGATION_TOKENS.c.identifier_hash == text_hash(identifier)
        )
        content = self._connection.execute(statement).scalar()
        return None if content is None else decode_texts(content)[1]

    def identifiers(self) -> list[str]:
        return sorted(self.tokens())

    def tokens(self) -> dict[str, str]:
        """By identifier."""
        rows = map(decode_texts, self._connection.execute(select(DELEGATION_TOKENS.c.content)).scalars())
        return {row[0]: row[1] for row in rows}

    def master_keys(self) -> dict[int, str]:
        """By number, in the order of their numbers."""
        rows = self._connection.execute(
            select(MASTER_KEYS.c.key_id, MASTER_KEYS.c.content).order_by(MASTER_KEYS.c.key_id)
        )
        return {number: decode_texts(content)[0] for number, content in rows}

    def leave_no_traces(self) -> None:
        """Keep what is overwritten from now on unreadable in the database's file, as far as that is in our hands."""
        self._dialect.leave_no_traces(self._connection)

    def insert_token(self, identifier: str, token: str) -> bool:
        """False when the identifier is there already; then nothing changes."""
        if self.token(identifier) is not None:
            return False
        values = {"identifier_hash": text_hash(identifier), "content": encode_texts([identifier, token])}
        self._connection.execute(insert(DELEGATION_TOKENS).values(values))
        return True

    def update_token(self, identifier: str, token: str) -> bool:
        """Update the token; tells whether it was there."""
        condition = DELEGATION_TOKENS.c.identifier_hash == text_hash(identifier)
        values = {"content": encode_texts([identifier, token])}
        return self._connection.execute(update(DELEGATION_TOKENS).where(condition).values(values)).rowcount > 0

    def delete_token(self, identifier: str) -> bool:
        """Delete the token; tells whether it was there."""
        condition = DELEGATION_TOKENS.c.identifier_hash == text_hash(identifier)
        return self._connection.execute(delete(DELEGATION_TOKENS).where(condition)).rowcount > 0

    def insert_master_key(self, key: str) -> int:
        """The new number; numbers are never given twice."""
        return self._inserted_id(insert(MASTER_KEYS).values(content=encode_texts([key])))

    def update_master_key(self, number: int, key: str) -> bool:
        """Update the key; tells whether it was there."""
        statement = update(MASTER_KEYS).where(MASTER_KEYS.c.key_id == number).values(content=encode_texts([key]))
        return self._connection.execute(statement).rowcount > 0

    def delete_master_key(self, number: int) -> bool:
        """Delete the key; tells whether it was there."""
        return self._connection.execute(delete(MASTER_KEYS).where(MASTER_KEYS.c.key_id == number)).rowcount > 0


class SealedTokens:
    """Tokens and master keys sealed at rest: those of Hive's token managers, and logins."""

    def __init__(self, store: Store, seal: Seal) -> None:
        self._store = store
        self._seal = seal
        self._is_warned = False

    def sealed(self, identifier: str, text: str) -> str:
        """Stored form of a token with this identifier. Raises SealingError."""
        return self._sealed(text, _token(identifier))

    def opened(self, identifier: str, stored: str) -> str:
        """Inverse of `sealed`. Raises SealingError."""
        return self._seal.open(stored, _token(identifier))

    def sealed_key(self, key: str | None) -> str:
        """Stored form of a master key. Raises MetaException, SealingError."""
        return self._sealed(required(key, "key"), _MASTER_KEY)

    def opened_key(self, stored: str) -> str:
        """Inverse of `sealed_key`. Raises SealingError when the key it was sealed with is not there."""
        return self._seal.open(stored, _MASTER_KEY)

    def seal_all(self) -> int:
        """Seal what earlier versions kept readable, or an earlier key sealed; how many."""
        try:
            # All of them are looked at first: where one is sealed, there has to be its key, and none is made.
            if [stored for stored in self._store.read(_all_secrets) if self._is_stale(stored)]:
                return self._store.write(self._seal_again)
        except SealingError as error:
            if not self._is_warned:
                _log.error("delegation tokens and master keys in the database cannot be sealed: %s", error)
            self._is_warned = True
        return 0

    def _seal_again(self, transaction: Transaction) -> int:
        tokens = TokenRows(transaction)
        tokens.leave_no_traces()
        count = 0
        for identifier, stored in tokens.tokens().items():
            if self._is_stale(stored):
                count += tokens.update_token(identifier, self._again(stored, _token(identifier)))
        for number, stored in tokens.master_keys().items():
            if self._is_stale(stored):
                count += tokens.update_master_key(number, self._again(stored, _MASTER_KEY))
        return count

    def _again(self, stored: str, purpose: str) -> str:
        return self._seal.seal(self._seal.open(stored, purpose), purpose)

    def _is_stale(self, stored: str) -> bool:
        """Raises SealingError."""
        return not (is_sealed(stored) and self._seal.is_current(stored))

    def _sealed(self, text: str, purpose: str) -> str:
        """Raises SealingError."""
        # A second key for one database would make two kinds of gateways that cannot read each other's secrets.
        may_make_key = self._seal.has_key or not any(map(is_sealed, self._store.read(_all_secrets)))
        return self._seal.seal(text, purpose, may_make_key=may_make_key)


class TokenTimes(msgspec.Struct, frozen=True):
    """Longest life of tokens, and longest time without a renewal."""

    lifetime_seconds: float
    renewal_seconds: float


class DelegationTokens:
    """Tokens that the catalog gives out as logins: made, renewed, cancelled, and looked up by the doors.

    They are beside those of Hive's token managers, in names that no method reads or writes, so that an administrator's
    `get_token` and `add_token` neither show nor make a login. A password is random: with a master key, as Hive has it,
    that key would be every token. What is stored at the moment decides about a token; nothing is remembered.

    `entry_of` is `UserFile.entry_of`: a token counts as long as its owner, and who asked for it, are the users that
    they were then, or still none of the password file.
    """

    def __init__(
        self,
        store: Store,
        tokens: SealedTokens,
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
            TokenRows(transaction).insert_token(key, sealed)
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
            if not TokenRows(transaction).update_token(key, sealed):
                raise MetaException("the delegation token cannot be renewed: it was cancelled")
            return until

        return self._store.write(update)

    def cancel(self, text: str, user: str, *, is_administrator: bool) -> None:
        """Raises MetaException."""
        encoded, _ = self._read(text)
        name = TokenName.decode(encoded)
        if not is_administrator and user not in {name.owner, name.renewer}:
            raise MetaException(f"user {user} may not cancel the delegation token; its owner or renewer may")
        if not self._store.write(lambda transaction: TokenRows(transaction).delete_token(_key(encoded))):
            raise MetaException("the delegation token is not known; it was cancelled, or has ended")

    def password(self, name: bytes) -> bytes:
        """Password of the token with this name, when it is good now. Raises TokenRefused, TokensAway."""
        return self._good(name)[0]

    def _good(self, name: bytes) -> tuple[bytes, str]:
        """Password and users of a token that is good now. Raises TokenRefused, TokensAway."""
        key = _key(name)
        try:
            stored = self._store.read(lambda snapshot: TokenRows(snapshot).token(key))
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
        kept = self._store.read(lambda snapshot: TokenRows(snapshot).tokens())
        ended = [key for key, stored in kept.items() if key.startswith(LOGIN) and self._until(key, stored) <= now]
        if not ended:
            return 0
        return self._store.write(lambda transaction: sum(map(TokenRows(transaction).delete_token, ended)))

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
        keys = self._store.read(lambda snapshot: TokenRows(snapshot).tokens())
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


class Tokens:
    """Tokens that let in here; and the store of Hive's token managers, for administrators, where a token is a login
    and a master key makes any.

    `objection` says why a user may not act for another one from an address, None where it may.
    """

    def __init__(
        self,
        store: Store,
        tokens: SealedTokens,
        administrators: Collection[str],
        logins: DelegationTokens | None = None,
        objection: Callable[[str, str, str], str | None] = lambda user, other, address: "does not exist",
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._administrators = administrators
        self._logins = logins
        self._objection = objection

    def get_delegation_token(self, call: Call, token_owner: str, renewer_kerberos_principal_name: str) -> str:
        logins = self._switched_on()
        if not call.may_get_token:
            raise MetaException(
                "a delegation token needs a login of the user's own, not a name or a token; log in with a password, "
                "a Kerberos ticket or a certificate"
            )
        user, owner = call.principal, token_owner or ""
        renewer = _short(renewer_kerberos_principal_name or "")
        if not owner:
            raise MetaException("token_owner must not be empty")
        # Hive's clients send whole principals of themselves. Of another one `ann@a.test` may not be `ann`.
        if user in (owner, _short(owner)):
            return logins.issue(user, renewer, call.real_user)
        objection = self._objection(user, owner, call.client_address)
        if objection is not None:
            raise MetaException(
                f"user {user} may not get a delegation token of user {owner}: the rule proxy_users.{user} {objection}"
            )
        return logins.issue(owner, renewer, user)

    def renew_delegation_token(self, call: Call, token_str_form: str) -> int:
        return self._switched_on().renew(token_str_form or "", call.principal)

    def cancel_delegation_token(self, call: Call, token_str_form: str) -> None:
        is_administrator = call.principal in self._administrators
        self._switched_on().cancel(token_str_form or "", call.principal, is_administrator=is_administrator)

    def add_token(self, call: Call, token_identifier: str, delegation_token: str) -> bool:
        """False when the identifier is taken."""
        self._check_administrator(call)
        key = required(token_identifier, "token identifier")
        if key.startswith(LOGIN):
            raise MetaException(f"token identifier begins with {LOGIN}; choose another one")
        sealed = self._tokens.sealed(key, delegation_token or "")
        return self._store.write(lambda tx: TokenRows(tx).insert_token(key, sealed))

    def remove_token(self, call: Call, token_identifier: str) -> bool:
        """Remove the token; tells whether it was there."""
        self._check_administrator(call)
        return _is_kept(token_identifier) and self._store.write(lambda tx: TokenRows(tx).delete_token(token_identifier))

    def get_token(self, call: Call, token_identifier: str) -> str | None:
        """None for an unknown identifier, which clients see as a missing result."""
        self._check_administrator(call)
        if not _is_kept(token_identifier):
            return None
        stored = self._store.read(lambda snapshot: TokenRows(snapshot).token(token_identifier))
        return None if stored is None else self._tokens.opened(token_identifier, stored)

    def get_all_token_identifiers(self, call: Call) -> list[str]:
        """Sorted."""
        self._check_administrator(call)
        return list(filter(_is_kept, self._store.read(lambda snapshot: TokenRows(snapshot).identifiers())))

    def add_master_key(self, call: Call, key: str) -> int:
        """The new key's number, from 1 on."""
        self._check_administrator(call)
        sealed = self._tokens.sealed_key(key)
        return self._store.write(lambda tx: TokenRows(tx).insert_master_key(sealed))

    def update_master_key(self, call: Call, seq_number: int, key: str) -> None:
        """Hive declares NoSuchObjectException for a missing key and wraps it into a MetaException."""
        self._check_administrator(call)
        number, sealed = seq_number or 0, self._tokens.sealed_key(key)
        if not self._store.write(lambda tx: TokenRows(tx).update_master_key(number, sealed)):
            raise MetaException(f"NoSuchObjectException(message:No key found with keyId: {number})")

    def remove_master_key(self, call: Call, key_seq: int) -> bool:
        """Remove the key; tells whether it was there."""
        self._check_administrator(call)
        return self._store.write(lambda tx: TokenRows(tx).delete_master_key(key_seq or 0))

    def get_master_keys(self, call: Call) -> list[str]:
        """In the order of their numbers."""
        self._check_administrator(call)
        stored = self._store.read(lambda snapshot: TokenRows(snapshot).master_keys())
        return list(map(self._tokens.opened_key, stored.values()))

    def _switched_on(self) -> DelegationTokens:
        """Raises MetaException."""
        if self._logins is None:
            raise MetaException("delegation tokens are not switched on; the setting delegation_tokens does it")
        return self._logins

    def _check_administrator(self, call: Call) -> None:
        if call.principal not in self._administrators:
            raise MetaException(
                f"user {call.principal} is not an administrator; delegation tokens and master keys are for the users "
                "of the setting administrators"
            )


def cancel_all(store: Store, user: str) -> int:
    """Cancel a user's tokens and those that it got for others; their number. For an operator. Raises StoreError."""
    kept = store.read(lambda snapshot: TokenRows(snapshot).tokens())
    keys = [key for key in kept if key.startswith(LOGIN) and user in (_name(key).owner, _name(key).real_user)]
    return store.write(lambda transaction: sum(map(TokenRows(transaction).delete_token, keys))) if keys else 0


def _all_secrets(snapshot: Snapshot) -> list[str]:
    return [*TokenRows(snapshot).tokens().values(), *TokenRows(snapshot).master_keys().values()]


def _is_kept(identifier: str | None) -> bool:
    """Tell whether it may be a token that is kept for others, and not a login."""
    return identifier is not None and not identifier.startswith(LOGIN)


def _token(identifier: str) -> str:
    """Purpose that a token is sealed for: in the place of another one it cannot be opened."""
    return f"delegation token {identifier}"


def _key(name: bytes) -> str:
    return LOGIN + base64.b64encode(name).decode()


def _name(key: str) -> TokenName:
    return TokenName.decode(base64.b64decode(key.removeprefix(LOGIN)))


def _kept(until_ms: int, password: bytes, entries: str) -> str:
    return f"{until_ms} {base64.b64encode(password).decode()} {entries}"


def _read_kept(kept: str) -> tuple[int, bytes, str]:
    until_ms, password, *entries = kept.split(" ")
    return int(until_ms), base64.b64decode(password), "".join(entries)


def _short(principal: str) -> str:
    """`spark` of spark/host.example@LAKE.EXAMPLE, as the doors name users of Kerberos."""
    return principal.partition("@")[0].partition("/")[0]
