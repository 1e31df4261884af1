"""A Hive Metastore called over HTTPS, and a client of every metastore that speaks MS-HMSHTTP.

What programs may import is here: `MetastoreClient` and what it raises, locks by HiveQL statement, the text forms of
write id lists, and the structs, enumerations and exceptions of `schema/hive_metastore.thrift` by their IDL names.
Each is loaded when it is first used. `hms_gateway.testing` has metastores for tests. Other modules may change with any
version.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hms_gateway.cli.hiveql.lock_commands import parse_command, parse_partition
    from hms_gateway.client.acquiring import (
        ConcurrencySettings,
        LockAcquirer,
        LockHolder,
        LocksDenied,
        PartitionKeys,
        SettingError,
    )
    from hms_gateway.client.concurrency import Command, NeededLock, in_key_order, lock_components, needed_locks
    from hms_gateway.client.metastore_client import (
        ClientError,
        MetastoreClient,
        NotAMetastore,
        NotAuthorized,
        NotReached,
        NotTrusted,
        TicketAuth,
    )
    from hms_gateway.client.transaction import MetastoreTransaction
    from hms_gateway.metastore.vocabulary.hiveql_tokens import CommandError
    from hms_gateway.metastore.vocabulary.partition_names import make_name
    from hms_gateway.rpc.structs import *  # noqa: F403
    from hms_gateway.txn.rules.write_ids import (
        InvalidList,
        ValidIds,
        ValidWriteIds,
        are_equivalent,
        compare,
        covers,
        ids_with_bits,
        parse_valid_txn_write_ids,
        parse_valid_txns,
        parse_valid_write_ids,
        valid_txn_write_ids_text,
        valid_txns_text,
        valid_txns_text_2_3,
        valid_write_ids_text,
    )

__all__ = [
    "ClientError",
    "Command",
    "CommandError",
    "ConcurrencySettings",
    "InvalidList",
    "LockAcquirer",
    "LockHolder",
    "LocksDenied",
    "MetastoreClient",
    "MetastoreTransaction",
    "NeededLock",
    "NotAMetastore",
    "NotAuthorized",
    "NotReached",
    "NotTrusted",
    "PartitionKeys",
    "SettingError",
    "TicketAuth",
    "ValidIds",
    "ValidWriteIds",
    "are_equivalent",
    "compare",
    "covers",
    "ids_with_bits",
    "in_key_order",
    "lock_components",
    "make_name",
    "needed_locks",
    "parse_command",
    "parse_partition",
    "parse_valid_txn_write_ids",
    "parse_valid_txns",
    "parse_valid_write_ids",
    "valid_txn_write_ids_text",
    "valid_txns_text",
    "valid_txns_text_2_3",
    "valid_write_ids_text",
]

# Where each name is, without loading it.
_PUBLIC = {
    "client.metastore_client": """
        ClientError MetastoreClient NotAMetastore NotAuthorized NotReached NotTrusted TicketAuth
    """,
    "client.acquiring": "ConcurrencySettings LockAcquirer LockHolder LocksDenied PartitionKeys SettingError",
    "client.transaction": "MetastoreTransaction",
    "client.concurrency": "Command NeededLock in_key_order lock_components needed_locks",
    "metastore.vocabulary.partition_names": "make_name",
    "cli.hiveql.lock_commands": "parse_command parse_partition",
    "metastore.vocabulary.hiveql_tokens": "CommandError",
    "txn.rules.write_ids": """
        InvalidList ValidIds ValidWriteIds are_equivalent compare covers ids_with_bits
        parse_valid_txn_write_ids parse_valid_txns parse_valid_write_ids valid_txn_write_ids_text
        valid_txns_text valid_txns_text_2_3 valid_write_ids_text
    """,
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """A public name, or a class of the IDL. Raises AttributeError."""
    if not name.startswith("_"):
        value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'rpc.structs')}"), name, None)
        if value is not None:
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
