"""Directories in a bucket of S3: keys with a common beginning, and an empty object `a/b/` for a directory `a/b`.

This is how Hadoop's S3A sees a bucket. s3fs is the client: options, credentials, connections, retries. Its functions
for directories are not used, since they take `*` for a pattern, make and delete buckets, and pass over objects that
the bucket does not delete. Requests here name keys as they are, and no bucket is ever made or deleted.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple, Self

import fsspec
import fsspec.asyn

from hms_gateway.metastore.ports.store import FileSystemAway, FileSystemError, ObjectsKept
from hms_gateway.runtime.settings import FixedSettings
from hms_gateway.storage.files.remote import UnknownFileSystem

_log = logging.getLogger(__name__)

_REQUEST_SECONDS: Final = FixedSettings().bucket_request_seconds
_KEYS_PER_REQUEST: Final = 1_000
# Copies at a time; a bucket takes thousands of requests a second, each of some 20 ms.
_AT_ONCE: Final = 16
# S3 copies larger objects in parts only, and takes long over one part of this size.
_PART_BYTES_MAX: Final = 150 * 2**20
_PARTS_MAX: Final = 10_000
# What S3 keeps of an object in a copy of one part, and does not in one of several.
_METADATA: Final = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "Metadata",
)
# A request has the time of `bucket_request_seconds`, however often the library tries within it.
_CLIENT: Final = {"retries": {"mode": "standard", "total_max_attempts": 4}, "max_pool_connections": 64}
# XML has no way to write these, so that lists of keys cannot hold them.
_NOT_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]").search
# An older sign of a directory than `a/`; S3A passes over it.
_OLD_MARKER: Final = "_$folder$"
_REGION_CODES: Final = (
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "301",
)


class _Object(NamedTuple):
    """An object below a directory; `name` is the rest of its key."""

    name: str
    size: int
    etag: str
    modified: datetime


class _Copy(NamedTuple):
    """A copy with its original, as the bucket answered; it does not say when it made one of several parts."""

    original: _Object
    etag: str
    modified: datetime | None = None

    def is_at(self, now: _Object) -> bool:
        """True if the object of this name is still the copy. Some stores keep fractions of a second, some do not."""
        seconds = self.modified and self.modified.replace(microsecond=0)
        return self.etag == now.etag and seconds in (None, now.modified.replace(microsecond=0))


class BucketDirectories:
    """The `Backend` for one root. Raises FileSystemError with a text of its own, and UnknownFileSystem.

    bucket     its name
    root       a path that begins with a slash and ends with none
    options    s3fs's: `endpoint_url`, `key`, `secret`, `client_kwargs`, `config_kwargs`, …
    """

    def __init__(self, bucket: str, root: str, options: Mapping[str, Any]) -> None:
        self._bucket, self._root = bucket, root.strip("/")
        config = {**_CLIENT, **options.get("config_kwargs", {})}
        try:
            self._s3 = fsspec.filesystem("s3", skip_instance_cache=True, **{**options, "config_kwargs": config})
        except (ImportError, ValueError) as error:
            raise UnknownFileSystem(bucket) from error

    def is_directory(self, path: str) -> bool:
        return self._has_below(self._below(path)) or not self._key(path)

    def exists(self, path: str) -> bool:
        return self.is_directory(path) or self._is_object(self._key(path))

    def make(self, path: str) -> bool:
        """Two calls at a time may both be told that they made it."""
        marker = self._below(path)
        if self._has_below(marker) or not marker:
            return False
        if self._is_object(self._key(path)):
            raise FileExistsError(path)
        self._request("put_object", Key=marker, Body=b"", ContentType="application/x-directory")
        return True

    def maker(self) -> Callable[[str], bool]:
        return self.make

    def delete(self, path: str) -> None:
        def keys() -> Iterator[str]:
            yield from (f"{self._below(path)}{one.name}" for one in self._objects(path))
            yield self._key(path)

        self._delete_keys(keys())

    def delete_if_empty(self, path: str) -> bool:
        """A directory without any object is gone already, and counts as deleted."""
        marker = self._below(path)
        found = self._request("list_objects_v2", Prefix=marker, MaxKeys=2).get("Contents", ())
        if any(one["Key"] != marker for one in found):
            return False
        if found:
            self._delete_keys([marker])
        return True

    def move(self, source: str, target_root: Self, target: str) -> "Copied":
        """Copy all objects. None is left behind at the target if this raises."""
        if target_root._below(target).startswith(self._below(source)):
            # A listing of the one would never end while the other fills.
            raise FileSystemError(f"{target} lies in {source}, which cannot be moved into itself")
        if target_root.exists(target):
            raise FileExistsError(f"{target} exists already")
        copied = Copied(self, source, target_root, target)
        try:
            copied.make()
        except BaseException:
            copied.undo()
            raise
        return copied

    def file_sizes(self, path: str) -> Iterator[tuple[str, int]]:
        for one in self._objects(path):
            if one.name and not one.name.endswith(("/", _OLD_MARKER)):
                yield one.name, one.size

    def read(self, path: str, bytes_max: int) -> bytes:
        answer = self._request("get_object", Key=self._key(path), Range=f"bytes=0-{bytes_max}")
        try:
            return bytes(fsspec.asyn.sync(self._s3.loop, answer["Body"].read, timeout=_REQUEST_SECONDS))
        except Exception as error:
            raise FileSystemAway(f"bucket {self._bucket} {_complaint(error)}") from None

    def write(self, path: str, content: bytes) -> None:
        self._request("put_object", Key=self._key(path), Body=content)

    def delete_file(self, path: str) -> None:
        self._delete_keys([self._key(path)])

    def delete_older(self, path: str, other_root: Self, other: str) -> bool:
        """Delete the objects that also lie below the other directory, where they are newer. True if some remain.

        This ends a move after a crash: what another writer has put here since is newer than the copies, and stays.
        """
        remain = False

        def keys() -> Iterator[str]:
            nonlocal remain
            for one, like in _pairs(self._objects(path), other_root._objects(other)):
                if like is not None and one.size == like.size and one.modified < like.modified:
                    yield f"{self._below(path)}{one.name}"
                else:
                    remain = True

        self._delete_keys(keys())
        return remain

    def _key(self, path: str) -> str:
        return "/".join(filter(None, (self._root, path)))

    def _below(self, path: str) -> str:
        """The beginning of the keys below a directory, which is also the key of its marker."""
        key = self._key(path)
        return f"{key}/" if key else ""

    def _has_below(self, beginning: str) -> bool:
        return bool(self._request("list_objects_v2", Prefix=beginning, MaxKeys=1).get("Contents"))

    def _is_object(self, key: str) -> bool:
        """Of the keys that begin like this one, it is the first."""
        found = self._request("list_objects_v2", Prefix=key, MaxKeys=1).get("Contents", ())
        return any(one["Key"] == key for one in found)

    def _objects(self, path: str) -> Iterator[_Object]:
        """All objects below a directory in the order of their names, its marker with an empty one."""
        beginning = self._below(path)
        place: dict[str, str] = {}
        while True:
            page = self._request("list_objects_v2", Prefix=beginning, MaxKeys=_KEYS_PER_REQUEST, **place)
            for one in page.get("Contents", ()):
                yield _Object(one["Key"][len(beginning) :], one["Size"], one["ETag"], one["LastModified"])
            if not page.get("IsTruncated"):
                return
            place = {"ContinuationToken": page["NextContinuationToken"]}

    def _delete_keys(self, keys: Iterable[str]) -> None:
        """Raises ObjectsKept after all others are gone, if the bucket refuses some."""
        remaining = iter(keys)
        refused: list[Mapping[str, str]] = []
        while batch := list(islice(remaining, _KEYS_PER_REQUEST)):
            listed = [{"Key": key} for key in batch if not _NOT_IN_XML(key)]
            for key in filter(_NOT_IN_XML, batch):
                self._request("delete_object", Key=key)
            if listed:
                answer = self._request("delete_objects", Delete={"Objects": listed, "Quiet": True})
                refused += answer.get("Errors", ())
        if refused:
            first = refused[0]
            text = (
                f"bucket {self._bucket} keeps {len(refused)} objects, such as {first.get('Key')}: {first.get('Code')}"
            )
            _log.warning("%s: %s", text, first.get("Message"))
            raise ObjectsKept(text)

    def _copy(self, key: str, one: _Object, target: str) -> _Copy:
        source = {"Bucket": self._bucket, "Key": key}
        if one.size > _PART_BYTES_MAX:
            return _Copy(one, self._copy_in_parts(source, one, target))
        made = self._request("copy_object", Key=target, CopySource=source)["CopyObjectResult"]
        return _Copy(one, made["ETag"], made["LastModified"])

    def _copy_in_parts(self, source: Mapping[str, str], one: _Object, target: str) -> str:
        """The copy is there after the last request, all of one original: a part of another one is refused.

        Returns its ETag.
        """
        found = self._request("head_object", Key=source["Key"])
        metadata = {name: found[name] for name in _METADATA if name in found}
        upload_id = self._request("create_multipart_upload", Key=target, **metadata)["UploadId"]
        upload = {"Key": target, "UploadId": upload_id}
        original = {"CopySource": source, "CopySourceIfMatch": one.etag}
        step = max(_PART_BYTES_MAX, -(-one.size // _PARTS_MAX))
        parts: list[dict[str, Any]] = []
        try:
            for number, begin in enumerate(range(0, one.size, step), 1):
                byte_range = f"bytes={begin}-{min(begin + step, one.size) - 1}"
                part = {"PartNumber": number, "CopySourceRange": byte_range}
                copied = self._request("upload_part_copy", **upload, **original, **part)
                parts.append({"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]})
            made = self._request("complete_multipart_upload", **upload, MultipartUpload={"Parts": parts})
        except BaseException:
            with suppress(FileSystemError):  # which is logged
                self._request("abort_multipart_upload", **upload)
            raise
        etag: str = made["ETag"]
        return etag

    def _request(self, method: str, **arguments: Any) -> Any:
        try:
            return self._s3.call_s3(method, Bucket=self._bucket, timeout=_REQUEST_SECONDS, **arguments)
        except Exception as error:  # botocore's, aiohttp's and s3fs's have no common class.
            _log.warning("bucket %s: %s: %s: %s", self._bucket, method, type(error).__name__, error)
            # The text says it all; a cause of the operating system's would be taken for that of a local disk.
            kind = FileSystemAway if _is_away(error) else FileSystemError
            raise kind(f"bucket {self._bucket} {_complaint(error)}") from None


class Copied:
    """A directory that was copied, while its original is still there."""

    def __init__(
        self, source_root: BucketDirectories, source: str, target_root: BucketDirectories, target: str
    ) -> None:
        self._source_root, self._source = source_root, source
        self._target_root, self._target = target_root, target
        self._copies: list[_Copy] = []

    def make(self) -> None:
        """Copy. Raises FileSystemError, also if there is nothing to copy; the rest is not begun then."""
        source, target = self._source_root._below(self._source), self._target_root._below(self._target)

        def copy(one: _Object) -> None:
            self._copies.append(self._source_root._copy(f"{source}{one.name}", one, f"{target}{one.name}"))

        objects = self._source_root._objects(self._source)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="copies") as threads:
            while batch := list(islice(objects, _KEYS_PER_REQUEST)):
                ended, waiting = wait([threads.submit(copy, one) for one in batch], return_when=FIRST_EXCEPTION)
                for each in waiting:
                    each.cancel()
                for each in ended:
                    each.result()
        if not self._copies:
            raise FileNotFoundError(self._source)

    def undo(self) -> None:
        """Delete the copies, except those that others have replaced. What stays is logged.

        A copy whose request had no answer stays too, since it cannot be told from an object of others.
        """
        root, below = self._target_root, self._target_root._below(self._target)
        copies = {one.original.name: one for one in self._copies}
        stays = False

        def keys() -> Iterator[str]:
            nonlocal stays
            for now in root._objects(self._target):
                copied = copies.get(now.name)
                if copied is not None and copied.is_at(now):
                    yield f"{below}{now.name}"
                else:
                    stays = True

        try:
            root._delete_keys(keys())
        except FileSystemError as error:
            _log.error("Copies stay at %s in bucket %s; remove them: %s", below, root._bucket, error)
        if stays:
            _log.warning("Objects stay at %s in bucket %s, where no table is; see whose they are", below, root._bucket)

    def finish(self) -> None:
        """Delete the originals, except those that others have replaced. Raises FileSystemError, ObjectsKept."""
        now = self._source_root._objects(self._source)
        below = self._source_root._below(self._source)
        pairs = _pairs(now, iter(sorted(copy.original for copy in self._copies)))
        self._source_root._delete_keys(f"{below}{one.name}" for one, copied in pairs if one == copied)


def _pairs(objects: Iterator[_Object], others: Iterator[_Object]) -> Iterator[tuple[_Object, _Object | None]]:
    """Each of the objects with the other one of its name; both come in the order of names."""
    other = next(others, None)
    for one in objects:
        while other is not None and other.name < one.name:
            other = next(others, None)
        yield one, (other if other is not None and other.name == one.name else None)


def _is_away(error: Exception) -> bool:
    """True if the bucket has not answered, or said that it is busy or out of order."""
    from botocore.exceptions import HTTPClientError

    answer = getattr(error.__cause__ or error, "response", None) or {}
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if isinstance(answer, Mapping) else 0
    is_cut_off = isinstance(error, (TimeoutError, HTTPClientError)) or type(error).__name__ == "EndpointConnectionError"
    return is_cut_off or status >= 500


def _complaint(error: Exception) -> str:
    """The reason of a failed request, and the way to mend it, for every client.

    A message of the bucket may name accounts and policies: the log has it.
    """
    from botocore.exceptions import HTTPClientError, NoCredentialsError

    answer = getattr(error.__cause__ or error, "response", None) or {}
    said: Mapping[str, str] = answer.get("Error", {}) if isinstance(answer, Mapping) else {}
    code = said.get("Code") or type(error).__name__
    if isinstance(error, TimeoutError):
        return f"has not answered within {_REQUEST_SECONDS:.0f} seconds (bucket_request_seconds)"
    if isinstance(error, HTTPClientError) or type(error).__name__ == "EndpointConnectionError":
        return f"cannot be reached ({type(error).__name__}); see endpoint_url in storage_file"
    if isinstance(error, NoCredentialsError):
        return "needs credentials; set key and secret in storage_file, or what AWS's libraries read"
    if code == "NoSuchBucket":
        return "does not exist; make it, or name another one in warehouse_dir and file_roots"
    if code in _REGION_CODES:
        return f"is in another region ({code}); set client_kwargs.region_name in storage_file"
    if isinstance(error, PermissionError):
        return f"refuses the gateway: {code}; the log has the message"
    return f"cannot be used: {code}; the log has the message"
