"""Methods on delegation tokens and master keys (semantics §2.19)."""

from collections.abc import Callable, Collection

from hms_gateway.catalog.registry.delegation_tokens import DelegationTokens
from hms_gateway.catalog.registry.tokens import TokenService
from hms_gateway.rpc.call import Call
from hms_gateway.structs import MetaException


class Tokens:
    """Tokens that let in here; and the store of Hive's token managers, for administrators, where a token is a login
    and a master key makes any.

    `objection` says why a user may not act for another one from an address, None where it may.
    """

    def __init__(
        self,
        tokens: TokenService,
        administrators: Collection[str],
        logins: DelegationTokens | None = None,
        objection: Callable[[str, str, str], str | None] = lambda user, other, address: "does not exist",
    ) -> None:
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
        return self._allowed(call).add(token_identifier, delegation_token)

    def remove_token(self, call: Call, token_identifier: str) -> bool:
        return self._allowed(call).remove(token_identifier)

    def get_token(self, call: Call, token_identifier: str) -> str | None:
        """None for an unknown identifier, which clients see as a missing result."""
        return self._allowed(call).get(token_identifier)

    def get_all_token_identifiers(self, call: Call) -> list[str]:
        return self._allowed(call).identifiers()

    def add_master_key(self, call: Call, key: str) -> int:
        return self._allowed(call).add_master_key(key)

    def update_master_key(self, call: Call, seq_number: int, key: str) -> None:
        """Hive declares NoSuchObjectException for a missing key and wraps it into a MetaException."""
        if not self._allowed(call).update_master_key(seq_number or 0, key):
            raise MetaException(f"NoSuchObjectException(message:No key found with keyId: {seq_number or 0})")

    def remove_master_key(self, call: Call, key_seq: int) -> bool:
        return self._allowed(call).remove_master_key(key_seq or 0)

    def get_master_keys(self, call: Call) -> list[str]:
        return self._allowed(call).master_keys()

    def _switched_on(self) -> DelegationTokens:
        """Raises MetaException."""
        if self._logins is None:
            raise MetaException("delegation tokens are not switched on; the setting delegation_tokens does it")
        return self._logins

    def _allowed(self, call: Call) -> TokenService:
        """Raises MetaException for callers who are not administrators."""
        if call.principal not in self._administrators:
            raise MetaException(
                f"user {call.principal} is not an administrator; delegation tokens and master keys are for the users "
                "of the setting administrators"
            )
        return self._tokens


def _short(principal: str) -> str:
    """`spark` of spark/host.example@LAKE.EXAMPLE, as the doors name users of Kerberos."""
    return principal.partition("@")[0].partition("/")[0]
