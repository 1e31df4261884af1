"""Directories in a bucket: keys of every kind, many of them, and requests that fail."""

import socket
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from hms_gateway.metastore.ports.store import FileSystemError
from hms_gateway.storage.files import buckets
from hms_gateway.storage.files.directories import Directories
from hms_gateway.storage.files.places import FilePolicy
from tests.support.bucket_server import BUCKET
from tests.support.private_bucket import PrivateBucket, options

pytestmark = pytest.mark.s3
MANAGED = {"s3": FilePolicy.MANAGE, "s3a": FilePolicy.MANAGE}
STRANGE = ["a?b", "x*", "y[1]", "ü %2F+", "q?versionId=3", "c\x01d", "a//b", "&<>'\"", "m/", "line\rbreak", "~/..x"]


@pytest.fixture
def top() -> str:
    """The beginning of the keys of one test."""
    return uuid.uuid4().hex


@pytest.fixture
def files(bucket: PrivateBucket) -> Directories:
    return opened(bucket.options)


def opened(storage_options: dict[str, Any], bucket: str = BUCKET) -> Directories:
    return Directories(MANAGED, [f"s3a://{bucket}"], {"s3": storage_options})


def put_many(bucket: PrivateBucket, keys: list[str]) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(bucket.put, keys))


def test_strange_keys_are_moved_and_deleted_as_they_are(bucket: PrivateBucket, files: Directories, top: str) -> None:
    for key in STRANGE:
        bucket.put(f"{top}/t/{key}")
    bucket.put(f"{top}/t-other/x")
    copied = files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u[1]")
    assert bucket.keys(f"{top}/u[1]/") == bucket.keys(f"{top}/t/") == sorted(STRANGE)
    copied.finish()
    assert bucket.keys(f"{top}/t/") == []
    files.delete_directory(f"s3a://{BUCKET}/{top}/u[1]")
    assert bucket.keys(f"{top}/") == ["t-other/x"]


def test_an_object_of_many_parts_is_copied_whole(
    bucket: PrivateBucket, files: Directories, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_PART_BYTES_MAX", 3)
    metadata = {"ContentType": "text/csv", "ContentEncoding": "identity", "Metadata": {"writer": "etl"}}
    bucket.s3.call_s3("put_object", Bucket=BUCKET, Key=f"{top}/t/f?", Body=b"12345678", **metadata)
    bucket.fail()
    files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u").finish()
    assert sum("partNumber" in asked for asked in bucket.requests()) == 3
    assert bucket.keys(f"{top}/") == ["u/f?"]
    assert bucket.s3.call_s3("get_object", Bucket=BUCKET, Key=f"{top}/u/f?").items() >= metadata.items()
    assert bucket.s3.cat_file(f"{BUCKET}/{top}/u/f?") == b"12345678"


def test_many_parts_are_larger(
    bucket: PrivateBucket, files: Directories, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_PART_BYTES_MAX", 1)
    monkeypatch.setattr(buckets, "_PARTS_MAX", 2)
    bucket.put(f"{top}/t/f", b"12345")
    bucket.fail()
    files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    assert sum("partNumber" in asked for asked in bucket.requests()) == 2
    assert bucket.s3.cat_file(f"{BUCKET}/{top}/u/f") == b"12345"


def test_a_copy_in_parts_that_fails_leaves_no_upload(
    bucket: PrivateBucket, files: Directories, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_PART_BYTES_MAX", 3)
    bucket.put(f"{top}/t/f", b"12345")
    bucket.fail("partNumber=2", code="AccessDenied", status=403)
    with pytest.raises(FileSystemError, match="AccessDenied"):
        files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    assert "Uploads" not in bucket.s3.call_s3("list_multipart_uploads", Bucket=BUCKET, Prefix=top)
    assert bucket.keys(f"{top}/") == ["t/f"]


@pytest.mark.parametrize("part_bytes", [3, 5])
def test_a_copy_without_an_answer_fails_in_a_bounded_time(
    part_bytes: int, bucket: PrivateBucket, files: Directories, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_PART_BYTES_MAX", part_bytes)
    monkeypatch.setattr(buckets, "_REQUEST_SECONDS", 0.3)
    bucket.put(f"{top}/t/f", b"12345")
    bucket.fail(" from ", status=0)
    try:
        with pytest.raises(FileSystemError, match=r"^bucket lake has not answered within 0 seconds \(bucket_request_"):
            files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    finally:
        bucket.fail()


def test_a_rename_stops_at_the_first_copy_that_fails(
    bucket: PrivateBucket, files: Directories, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_KEYS_PER_REQUEST", 20)
    put_many(bucket, [f"{top}/t/{number:02}" for number in range(60)])
    bucket.fail(" from ", "/t/00", code="AccessDenied", status=403)
    with pytest.raises(FileSystemError, match="AccessDenied"):
        files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    asked = bucket.requests()
    # Neither a copy of the second batch was begun, nor its objects listed.
    assert sum(" from " in one for one in asked) <= 20
    assert not any("continuation-token" in one for one in asked)


def test_a_directory_is_not_moved_into_itself(bucket: PrivateBucket, files: Directories, top: str) -> None:
    bucket.put(f"{top}/t/f")
    with pytest.raises(FileSystemError, match="cannot be moved into itself"):
        files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/t/u")
    files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/t2")
    assert bucket.keys(f"{top}/") == ["t/f", "t2/f"]


@pytest.mark.parametrize("per_request", [10, pytest.param(1_000, marks=pytest.mark.whole)])
def test_many_objects_are_deleted_in_few_requests(
    per_request: int, bucket: PrivateBucket, files: Directories, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_KEYS_PER_REQUEST", per_request)
    put_many(bucket, [f"{top}/t/{number:04}" for number in range(2 * per_request)])
    bucket.fail()
    files.delete_directory(f"s3a://{BUCKET}/{top}/t")
    # The last one is for an object of the directory's own name.
    assert [asked.split(" ")[0] for asked in bucket.requests()] == ["GET", "POST", "GET", "POST", "POST"]
    assert bucket.keys(f"{top}/t") == []


def test_what_the_bucket_keeps_is_an_error_that_names_an_object(
    bucket: PrivateBucket, files: Directories, top: str
) -> None:
    put_many(bucket, [f"{top}/t/{number}" for number in range(3)])
    bucket.keep(f"{top}/t/1")
    with pytest.raises(FileSystemError, match=rf"^bucket lake keeps 1 objects, such as {top}/t/1: AccessDenied$"):
        files.delete_directory(f"s3a://{BUCKET}/{top}/t")
    assert bucket.keys(f"{top}/t/") == ["1"]


@pytest.mark.parametrize("count", [40, pytest.param(1_000, marks=pytest.mark.whole)])
def test_a_move_that_fails_half_way_leaves_nothing_behind(
    count: int, bucket: PrivateBucket, files: Directories, top: str
) -> None:
    keys = [f"{top}/t/{number:03}" for number in range(count)]
    put_many(bucket, keys)
    bucket.fail(" from ", code="AccessDenied", status=403, after=count // 2)
    with pytest.raises(
        FileSystemError, match=r"^bucket lake refuses the gateway: AccessDenied; the log has the message$"
    ):
        files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    assert bucket.keys(f"{top}/") == [key.removeprefix(f"{top}/") for key in keys]


def test_a_move_keeps_what_others_write_to_the_old_place(bucket: PrivateBucket, files: Directories, top: str) -> None:
    put_many(bucket, [f"{top}/t/{name}" for name in "abc"])
    copied = files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    bucket.put(f"{top}/t/b", b"another")
    bucket.put(f"{top}/t/d")
    copied.finish()
    assert bucket.keys(f"{top}/") == ["t/b", "t/d", "u/a", "u/b", "u/c"]


@pytest.mark.parametrize("part_bytes", [3, 20])
def test_an_undone_move_keeps_what_others_write_to_the_new_place(
    part_bytes: int, bucket: PrivateBucket, files: Directories, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_PART_BYTES_MAX", part_bytes)
    monkeypatch.setattr(buckets, "_KEYS_PER_REQUEST", 3)
    for name in "abcdef":
        bucket.put(f"{top}/t/{name}", b"12345")
    copied = files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    assert bucket.keys(f"{top}/u/") == list("abcdef")
    bucket.put(f"{top}/u/b", b"54321")
    bucket.put(f"{top}/u/g", b"12345")
    bucket.put(f"{top}/u2/a", b"12345")
    copied.undo()
    assert bucket.keys(f"{top}/u") == ["/b", "/g", "2/a"]
    assert bucket.s3.cat_file(f"{BUCKET}/{top}/u/b") == b"54321"


def test_a_bucket_with_versions_shows_the_newest_only(bucket: PrivateBucket, top: str) -> None:
    """What was deleted leaves a mark there, which is no object; what others wrote over a copy stays the newest."""
    call = partial(bucket.s3.call_s3, Bucket="versions")
    call("create_bucket")
    call("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})
    files = opened(bucket.options, "versions")
    old, new = (f"s3a://versions/{top}/{name}" for name in "tu")
    for key in ("t/a", "t/b", "t2/a"):
        call("put_object", Key=f"{top}/{key}", Body=b"1")
    files.move_directory(old, new).finish()
    assert not files.exists(old)
    copied = files.move_directory(new, old)
    call("put_object", Key=f"{top}/t/a", Body=b"2")
    copied.undo()
    listed = call("list_objects_v2", Prefix=top)["Contents"]
    assert [one["Key"].removeprefix(f"{top}/") for one in listed] == ["t/a", "t2/a", "u/a", "u/b"]
    assert call("get_object", Key=f"{top}/t/a")["ContentLength"] == 1
    for place in (old, new):
        files.delete_directory(place)
        assert not files.is_directory(place)


def test_an_undone_move_keeps_a_later_object_of_the_same_content(
    bucket: PrivateBucket, files: Directories, top: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty `_SUCCESS` is like another one; only its time tells that another writer made it."""
    put_many(bucket, [f"{top}/t/{name}" for name in ("_SUCCESS", "f")])
    copied = files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    bucket.let_pass(seconds=5)
    bucket.put(f"{top}/u/_SUCCESS")
    copied.undo()
    assert bucket.keys(f"{top}/") == ["t/_SUCCESS", "t/f", "u/_SUCCESS"]
    assert f"Objects stay at {top}/u/ in bucket lake" in caplog.text


def test_an_end_of_a_move_after_a_crash_deletes_only_older_objects(
    bucket: PrivateBucket, files: Directories, top: str
) -> None:
    old, new = f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u"
    put_many(bucket, [f"{top}/t/{name}" for name in "ab"])
    bucket.let_pass(seconds=5)
    files.move_directory(old, new)
    assert files.put_back(old, new) is True
    assert bucket.keys(f"{top}/") == ["t/a", "t/b", "u/a", "u/b"]
    bucket.put(f"{top}/t/c")
    assert files.put_back(new, old) is True
    assert bucket.keys(f"{top}/") == ["t/c", "u/a", "u/b"]


def test_throttled_requests_are_tried_again(bucket: PrivateBucket, files: Directories, top: str) -> None:
    bucket.put(f"{top}/t/f")
    bucket.fail("GET", code="SlowDown", status=503, times=1)
    assert files.exists(f"s3a://{BUCKET}/{top}/t")


def test_a_bucket_is_neither_made_nor_deleted(bucket: PrivateBucket) -> None:
    files = opened(bucket.options, "missing")
    calls: list[Callable[[], object]] = [
        lambda: files.make_directory("s3a://missing/t"),
        lambda: files.exists("s3a://missing/t"),
        lambda: files.quick_statistics("s3a://missing/t"),
        lambda: files.delete_directory("s3a://missing/t"),
        lambda: files.delete_empty_parents("s3a://missing/t/a", 2),
        lambda: files.move_directory("s3a://missing/t", "s3a://missing/u"),
    ]
    for call in calls:
        with pytest.raises(FileSystemError, match=r"^bucket missing does not exist; make it, or name another one in "):
            call()
    assert not bucket.s3.exists("missing")
    with pytest.raises(FileSystemError, match="is not deleted"):
        opened(bucket.options).delete_directory(f"s3a://{BUCKET}")


def test_credentials_that_expire_in_the_middle_of_a_move_lose_nothing(
    bucket: PrivateBucket, files: Directories, top: str, caplog: pytest.LogCaptureFixture
) -> None:
    put_many(bucket, [f"{top}/t/{number:02}" for number in range(20)])
    bucket.fail("", code="ExpiredToken", status=403, after=8)
    with pytest.raises(FileSystemError, match=r"^bucket lake refuses the gateway: ExpiredToken; the log has the mess"):
        files.move_directory(f"s3a://{BUCKET}/{top}/t", f"s3a://{BUCKET}/{top}/u")
    bucket.fail()
    assert len(bucket.keys(f"{top}/t/")) == 20
    assert f"Copies stay at {top}/u/ in bucket lake; remove them: bucket lake refuses the gateway" in caplog.text


def test_wrong_credentials_are_said_and_the_log_has_the_words_of_the_bucket(
    bucket: PrivateBucket, caplog: pytest.LogCaptureFixture
) -> None:
    files = opened({**bucket.options, "key": "unknown"})
    with pytest.raises(FileSystemError) as refused:
        files.make_directory(f"s3a://{BUCKET}/t")
    assert str(refused.value) == "bucket lake refuses the gateway: InvalidAccessKeyId; the log has the message"
    assert "The key you gave is not known." in caplog.text


def test_another_region_is_said(bucket: PrivateBucket, files: Directories) -> None:
    bucket.fail("GET", code="AuthorizationHeaderMalformed", status=400)
    with pytest.raises(FileSystemError, match=r"is in another region .* set client_kwargs\.region_name"):
        files.make_directory(f"s3a://{BUCKET}/t")


def test_an_option_that_s3fs_does_not_know_is_said(bucket: PrivateBucket, caplog: pytest.LogCaptureFixture) -> None:
    files = opened({**bucket.options, "endpoint": "x"})
    with pytest.raises(FileSystemError, match=r"^bucket lake cannot be used: TypeError; the log has the message$"):
        files.exists(f"s3a://{BUCKET}/t")
    assert "'endpoint'" in caplog.text


def test_missing_credentials_are_said(bucket: PrivateBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    files = opened({"endpoint_url": bucket.endpoint})
    with pytest.raises(FileSystemError, match=r"^bucket lake needs credentials; set key and secret in storage_file"):
        files.exists(f"s3a://{BUCKET}/t")


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_an_endpoint_that_is_away_is_said(closed_port: int, bucket: PrivateBucket) -> None:
    once = {"retries": {"mode": "standard", "total_max_attempts": 1}}
    files = opened({**options(f"http://127.0.0.1:{closed_port}"), "config_kwargs": once})
    with pytest.raises(FileSystemError, match=r"^bucket lake cannot be reached \(.*\); see endpoint_url"):
        files.exists(f"s3a://{BUCKET}/t")


def test_an_endpoint_that_does_not_answer_holds_a_call_for_a_bounded_time(
    bucket: PrivateBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_REQUEST_SECONDS", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        files = opened(options(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        with pytest.raises(FileSystemError, match=r"^bucket lake has not answered within 0 seconds \(bucket_request_"):
            files.exists(f"s3a://{BUCKET}/t")


def test_both_schemes_name_one_bucket(bucket: PrivateBucket, top: str) -> None:
    files = Directories(MANAGED, [f"s3://{BUCKET}/{top}"], {"s3": bucket.options})
    assert files.make_directory(f"s3a://{BUCKET}/{top}/t") is True
    assert files.is_directory(f"s3://{BUCKET}/{top}/t")
    with pytest.raises(FileSystemError, match="is not deleted"):
        files.delete_directory(f"s3a://{BUCKET}/{top}")


def test_statistics_pass_over_signs_of_directories(bucket: PrivateBucket, files: Directories, top: str) -> None:
    for key in ("", "f", "p=1/", "p=1/f", "p=1_$folder$", "_SUCCESS"):
        bucket.put(f"{top}/t/{key}", b"12")
    assert files.quick_statistics(f"s3a://{BUCKET}/{top}/t") == (2, 4)
