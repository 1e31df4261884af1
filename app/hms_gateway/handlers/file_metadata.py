"""Methods on cached file footers, which only a store on HBase ever had (semantics §2.21)."""

from hms_gateway.metastore.checks.errors import required
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
    CacheFileMetadataRequest,
    CacheFileMetadataResult,
    ClearFileMetadataRequest,
    ClearFileMetadataResult,
    GetFileMetadataByExprRequest,
    GetFileMetadataByExprResult,
    GetFileMetadataRequest,
    GetFileMetadataResult,
    PutFileMetadataRequest,
    PutFileMetadataResult,
)


class FileMetadata:
    """Nothing is kept; every call is answered that it is not supported."""

    def get_file_metadata_by_expr(self, call: Call, req: GetFileMetadataByExprRequest) -> GetFileMetadataByExprResult:
        required(req, "req")
        return GetFileMetadataByExprResult({}, False)

    def get_file_metadata(self, call: Call, req: GetFileMetadataRequest) -> GetFileMetadataResult:
        required(req, "req")
        return GetFileMetadataResult({}, False)

    def put_file_metadata(self, call: Call, req: PutFileMetadataRequest) -> PutFileMetadataResult:
        required(req, "req")
        return PutFileMetadataResult()

    def clear_file_metadata(self, call: Call, req: ClearFileMetadataRequest) -> ClearFileMetadataResult:
        """Hive fails with an internal error here; there is nothing to clear, so it is done."""
        required(req, "req")
        return ClearFileMetadataResult()

    def cache_file_metadata(self, call: Call, req: CacheFileMetadataRequest) -> CacheFileMetadataResult:
        required(req, "req")
        return CacheFileMetadataResult(False)
