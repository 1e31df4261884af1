"""A Hive Metastore called over HTTPS, and a client of any metastore that speaks MS-HMSHTTP.

What programs may import is here: `MetastoreClient`, what it raises, locks by HiveQL statement, the text forms of write id
lists, and every struct, enumeration and exception of `schema/hive_metastore.thrift` under its name in the IDL. Each name is
loaded when it is first used. All other modules may change with any version.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hms_gateway.client.acquiring import ConcurrencySettings as ConcurrencySettings
    from hms_gateway.client.acquiring import LockAcquirer as LockAcquirer
    from hms_gateway.client.acquiring import LockHolder as LockHolder
    from hms_gateway.client.acquiring import LocksDenied as LocksDenied
    from hms_gateway.client.acquiring import PartitionKeys as PartitionKeys
    from hms_gateway.client.acquiring import SettingError as SettingError
    from hms_gateway.client.commands import CommandError as CommandError
    from hms_gateway.client.commands import parse_command as parse_command
    from hms_gateway.client.commands import parse_partition as parse_partition
    from hms_gateway.client.concurrency import Command as Command
    from hms_gateway.client.concurrency import NeededLock as NeededLock
    from hms_gateway.client.concurrency import in_key_order as in_key_order
    from hms_gateway.client.concurrency import lock_components as lock_components
    from hms_gateway.client.concurrency import needed_locks as needed_locks
    from hms_gateway.client.metastore_client import ClientError as ClientError
    from hms_gateway.client.metastore_client import MetastoreClient as MetastoreClient
    from hms_gateway.client.metastore_client import NotAMetastore as NotAMetastore
    from hms_gateway.client.metastore_client import NotAuthorized as NotAuthorized
    from hms_gateway.client.metastore_client import NotReached as NotReached
    from hms_gateway.client.metastore_client import NotTrusted as NotTrusted
    from hms_gateway.client.metastore_client import TicketAuth as TicketAuth
    from hms_gateway.metastore.vocabulary.partition_names import make_name as make_name
    from hms_gateway.structs import *  # noqa: F403
    from hms_gateway.txn.rules.write_ids import InvalidList as InvalidList
    from hms_gateway.txn.rules.write_ids import ValidIds as ValidIds
    from hms_gateway.txn.rules.write_ids import ValidWriteIds as ValidWriteIds
    from hms_gateway.txn.rules.write_ids import are_equivalent as are_equivalent
    from hms_gateway.txn.rules.write_ids import compare as compare
    from hms_gateway.txn.rules.write_ids import covers as covers
    from hms_gateway.txn.rules.write_ids import ids_with_bits as ids_with_bits
    from hms_gateway.txn.rules.write_ids import parse_valid_txn_write_ids as parse_valid_txn_write_ids
    from hms_gateway.txn.rules.write_ids import parse_valid_txns as parse_valid_txns
    from hms_gateway.txn.rules.write_ids import parse_valid_write_ids as parse_valid_write_ids
    from hms_gateway.txn.rules.write_ids import valid_txn_write_ids_text as valid_txn_write_ids_text
    from hms_gateway.txn.rules.write_ids import valid_txns_text as valid_txns_text
    from hms_gateway.txn.rules.write_ids import valid_txns_text_2_3 as valid_txns_text_2_3
    from hms_gateway.txn.rules.write_ids import valid_write_ids_text as valid_write_ids_text

_PUBLIC = {
    "client.metastore_client": "ClientError MetastoreClient NotAMetastore NotAuthorized NotReached NotTrusted TicketAuth",
    "client.acquiring": "ConcurrencySettings LockAcquirer LockHolder LocksDenied PartitionKeys SettingError",
    "client.commands": "CommandError parse_command parse_partition",
    "client.concurrency": "Command NeededLock in_key_order lock_components needed_locks",
    "metastore.vocabulary.partition_names": "make_name",
    "txn.rules.write_ids": "InvalidList ValidIds ValidWriteIds are_equivalent compare covers ids_with_bits parse_valid_txn_write_ids parse_valid_txns parse_valid_write_ids valid_txn_write_ids_text valid_txns_text valid_txns_text_2_3 valid_write_ids_text",
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names.split()}

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


def __getattr__(name: str) -> Any:
    """A public name, or a class of the IDL. Raises AttributeError."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES.get(name, "structs")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
