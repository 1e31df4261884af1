"""Methods on delegation tokens and master keys (semantics §2.19)."""

from app.metastore.tokens import TokenService
from app.rpc.call import Call
from app.structs import MetaException


class Tokens:
    """The store of Hive's token managers is open to callers; making tokens ourselves needs Kerberos behind Thrift."""

    def __init__(self, tokens: TokenService) -> None:
        self._tokens = tokens

    def get_delegation_token(self, call: Call, token_owner: str, renewer_kerberos_principal_name: str) -> str:
        raise _no_token_manager()

    def renew_delegation_token(self, call: Call, token_str_form: str) -> int:
        raise _no_token_manager()

    def cancel_delegation_token(self, call: Call, token_str_form: str) -> None:
        raise _no_token_manager()

    def add_token(self, call: Call, token_identifier: str, delegation_token: str) -> bool:
        return self._tokens.add(token_identifier, delegation_token)

    def remove_token(self, call: Call, token_identifier: str) -> bool:
        return self._tokens.remove(token_identifier)

    def get_token(self, call: Call, token_identifier: str) -> str | None:
        """None for an unknown identifier, which clients see as a missing result."""
        return self._tokens.get(token_identifier)

    def get_all_token_identifiers(self, call: Call) -> list[str]:
        return self._tokens.identifiers()

    def add_master_key(self, call: Call, key: str) -> int:
        return self._tokens.add_master_key(key)

    def update_master_key(self, call: Call, seq_number: int, key: str) -> None:
        """Hive declares NoSuchObjectException for a missing key and wraps it into a MetaException."""
        if not self._tokens.update_master_key(seq_number or 0, key):
            raise MetaException(f"NoSuchObjectException(message:No key found with keyId: {seq_number or 0})")

    def remove_master_key(self, call: Call, key_seq: int) -> bool:
        return self._tokens.remove_master_key(key_seq or 0)

    def get_master_keys(self, call: Call) -> list[str]:
        return self._tokens.master_keys()


def _no_token_manager() -> MetaException:
    return MetaException("delegation tokens need Kerberos, and callers of this server authenticate over HTTP")
