"""A bucket of the test run's own on loopback: moto's server, a process beside the tests."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.support.bucket_server import BUCKET, KEY, SECRET

_PACKAGES = ("s3fs", "moto", "flask", "flask_cors")


class BucketUnavailable(Exception):
    """No bucket can be had here; the message says why."""


class PrivateBucket:
    """A running server of S3 with the bucket `lake`."""

    def __init__(self) -> None:
        missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
        if missing:
            raise BucketUnavailable(f"{', '.join(missing)} not installed (requirements/bucket.txt)")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.bucket_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        if not port:
            raise BucketUnavailable("moto's server does not start")
        self.endpoint = f"http://127.0.0.1:{port}"
        self.options = options(self.endpoint)
        import s3fs

        self.s3 = s3fs.S3FileSystem(**self.options, use_listings_cache=False, skip_instance_cache=True)
        self.s3.call_s3("create_bucket", Bucket=BUCKET)

    def fail(self, *holds: str, code: str = "SlowDown", status: int = 503, after: int = 0, times: int = 10**6) -> None:
        """Let requests fail whose method, path and query contain all these texts: `times` of them `after` some.

        With status 0 they get no answer until the next call.
        """
        self._order({"holds": holds, "code": code, "status": status, "after": after, "times": times})

    def keep(self, key: str) -> None:
        """Do not delete this object with others."""
        self._order({"keeps": key})

    def let_pass(self, seconds: int) -> None:
        """Set the clock of the bucket, which is right after each `fail`."""
        self._order({"ahead_seconds": seconds})

    def _order(self, orders: dict[str, Any]) -> None:
        httpx.post(f"{self.endpoint}/-/orders", json=orders).raise_for_status()

    def requests(self) -> list[str]:
        """The requests since the last `fail`."""
        found: list[str] = httpx.get(f"{self.endpoint}/-/requests").json()
        return found

    def put(self, key: str, content: bytes = b"x") -> None:
        self.s3.call_s3("put_object", Bucket=BUCKET, Key=key, Body=content)

    def keys(self, beginning: str = "") -> list[str]:
        """The keys that begin so, without it."""
        found: list[str] = []
        token: dict[str, str] = {}
        while True:
            page: dict[str, Any] = self.s3.call_s3("list_objects_v2", Bucket=BUCKET, Prefix=beginning, **token)
            found += [one["Key"][len(beginning) :] for one in page.get("Contents", ())]
            if not page["IsTruncated"]:
                return found
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def write_options(self, file: Path) -> Path:
        """A file for `storage_file` and `--storage`."""
        region = 'client_kwargs = { region_name = "us-east-1" }'
        lines = [f'{name} = "{self.options[name]}"' for name in ("endpoint_url", "key", "secret")]
        file.write_text("\n".join(["[s3]", *lines, region, ""]))
        return file

    def delete(self) -> None:
        with self._process:  # closes its standard input, which ends it
            pass


def options(endpoint: str) -> dict[str, Any]:
    return {"endpoint_url": endpoint, "key": KEY, "secret": SECRET, "client_kwargs": {"region_name": "us-east-1"}}
