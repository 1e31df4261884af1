"""Methods on delegation tokens and master keys (semantics §2.19)."""

from collections.abc import Collection

from hms_gateway.metastore.registry.tokens import TokenService
from hms_gateway.rpc.call import Call
from hms_gateway.structs import MetaException


class Tokens:
    """The store of Hive's token managers, for administrators: a token is a login, a master key makes any.

    Making tokens ourselves needs Kerberos behind Thrift.
    """

    def __init__(self, tokens: TokenService, administrators: Collection[str]) -> None:
        self._tokens = tokens
        self._administrators = administrators

    def get_delegation_token(self, call: Call, token_owner: str, renewer_kerberos_principal_name: str) -> str:
        raise _no_token_manager()

    def renew_delegation_token(self, call: Call, token_str_form: str) -> int:
        raise _no_token_manager()

    def cancel_delegation_token(self, call: Call, token_str_form: str) -> None:
        raise _no_token_manager()

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

    def _allowed(self, call: Call) -> TokenService:
        """Raises MetaException for callers who are not administrators."""
        if call.principal not in self._administrators:
            raise MetaException(
                f"user {call.principal} is not an administrator; delegation tokens and master keys are for the users "
                "of the setting administrators"
            )
        return self._tokens


def _no_token_manager() -> MetaException:
    return MetaException("delegation tokens need Kerberos, and callers of this server authenticate over HTTP")
