"""The Thrift methods on types, tokens, marks of partitions, properties and file metadata."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hms_gateway.catalog.properties import Properties
from hms_gateway.catalog.tokens import SealedTokens, Tokens
from hms_gateway.catalog.types import Types
from hms_gateway.handlers.service import FileMetadata
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    CacheFileMetadataRequest,
    CacheFileMetadataResult,
    ClearFileMetadataRequest,
    ClearFileMetadataResult,
    GetFileMetadataByExprRequest,
    GetFileMetadataByExprResult,
    GetFileMetadataRequest,
    GetFileMetadataResult,
    MetaException,
    PartitionEventType,
    PropertyGetRequest,
    PropertySetRequest,
    PutFileMetadataRequest,
    PutFileMetadataResult,
    ThriftException,
    Type,
)
from hms_gateway.runtime.sealing import Seal
from tests.support.catalog import Catalog, columns, new_table

CALL = Call("tester")


def refusal(action: Callable[[], object]) -> ThriftException:
    with pytest.raises(ThriftException) as raised:
        action()
    return raised.value


def test_types(catalog: Catalog) -> None:
    types = Types(catalog.store)
    assert types.create_type(CALL, Type("t")) is True
    assert types.get_type(CALL, "t") == Type("t", fields=[])
    assert [types.drop_type(CALL, "t") for _ in range(2)] == [True, True]
    assert refusal(lambda: types.get_type_all(CALL, "t")) == MetaException("Not yet implemented")
    for action in (
        lambda: types.create_type(CALL, None),
        lambda: types.create_type(CALL, Type()),
        lambda: types.get_type(CALL, None),
        lambda: types.drop_type(CALL, None),
    ):
        assert isinstance(refusal(action), MetaException)


def test_tokens_are_kept_as_they_come(catalog: Catalog, tmp_path: Path) -> None:
    tokens = Tokens(catalog.store, SealedTokens(catalog.store, Seal(tmp_path / "secrets.key")), {"tester"})
    assert [tokens.add_token(CALL, "id", value) for value in ("AQ==", "other")] == [True, False]
    assert tokens.get_token(CALL, "id") == "AQ=="
    assert tokens.get_token(CALL, "missing") is None
    assert tokens.get_all_token_identifiers(CALL) == ["id"]
    assert [tokens.remove_token(CALL, "id") for _ in range(2)] == [True, False]
    assert (tokens.add_token(CALL, "id", None), tokens.get_token(CALL, "id")) == (True, "")
    assert (tokens.get_token(CALL, None), tokens.remove_token(CALL, None)) == (None, False)
    for action in (
        lambda: tokens.add_token(CALL, None, "t"),
        lambda: tokens.add_master_key(CALL, None),
        lambda: tokens.update_master_key(CALL, 1, None),
    ):
        assert isinstance(refusal(action), MetaException)


def test_master_keys_have_numbers(catalog: Catalog, tmp_path: Path) -> None:
    tokens = Tokens(catalog.store, SealedTokens(catalog.store, Seal(tmp_path / "secrets.key")), {"tester"})
    assert [tokens.add_master_key(CALL, key) for key in ("a", "b")] == [1, 2]
    tokens.update_master_key(CALL, 1, "c")
    assert tokens.get_master_keys(CALL) == ["c", "b"]
    assert refusal(lambda: tokens.update_master_key(CALL, 3, "d")) == MetaException(
        "NoSuchObjectException(message:No key found with keyId: 3)"
    )
    assert [tokens.remove_master_key(CALL, number) for number in (2, 2, -1, None)] == [True, False, False, False]


def test_no_token_without_kerberos(catalog: Catalog, tmp_path: Path) -> None:
    tokens = Tokens(catalog.store, SealedTokens(catalog.store, Seal(tmp_path / "secrets.key")), {"tester"})
    for action in (
        lambda: tokens.get_delegation_token(CALL, "o", "r"),
        lambda: tokens.renew_delegation_token(CALL, "t"),
        lambda: tokens.cancel_delegation_token(CALL, "t"),
    ):
        assert isinstance(refusal(action), MetaException)


def test_marks_of_partitions(catalog: Catalog) -> None:
    catalog.tables.create(new_table(keys=columns("ds string")))
    marks = catalog.partition_marks
    arguments = ("@hive#default", "T", {"ds": "1"}, PartitionEventType.LOAD_DONE)
    assert marks.isPartitionMarkedForEvent(CALL, *arguments) is False
    marks.markPartitionForEvent(CALL, *arguments)
    assert marks.isPartitionMarkedForEvent(CALL, *arguments) is True


def test_properties(catalog: Catalog) -> None:
    properties = Properties(catalog.store)
    assert properties.get_metastore_db_uuid(CALL) == properties.get_metastore_db_uuid(CALL)
    assert properties.set_properties(CALL, PropertySetRequest("hms", {"db.t.a": "1"})) is True
    assert properties.get_properties(CALL, PropertyGetRequest("hms", "db")).properties == {"db.t": {"a": "1"}}
    for action in (
        lambda: properties.get_properties(CALL, None),
        lambda: properties.set_properties(CALL, None),
        lambda: properties.set_properties(CALL, PropertySetRequest("hms", None)),
        lambda: properties.get_properties(CALL, PropertyGetRequest("hms", "", "a == 1")),
    ):
        assert isinstance(refusal(action), MetaException)


def test_file_metadata_is_not_supported() -> None:
    metadata = FileMetadata()
    request = GetFileMetadataByExprRequest([1], b"")
    assert metadata.get_file_metadata_by_expr(CALL, request) == GetFileMetadataByExprResult({}, False)
    assert metadata.get_file_metadata(CALL, GetFileMetadataRequest([1])) == GetFileMetadataResult({}, False)
    assert metadata.put_file_metadata(CALL, PutFileMetadataRequest([1], [b""])) == PutFileMetadataResult()
    assert metadata.clear_file_metadata(CALL, ClearFileMetadataRequest([1])) == ClearFileMetadataResult()
    cached = metadata.cache_file_metadata(CALL, CacheFileMetadataRequest("d", "t"))
    assert cached == CacheFileMetadataResult(False)
