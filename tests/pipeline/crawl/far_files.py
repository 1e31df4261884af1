"""A file system of fsspec's kind that Spark's workers are given: this machine's disks under another scheme."""

from fsspec.implementations.local import LocalFileSystem


class FarFiles(LocalFileSystem):
    protocol = ("far",)

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("far://"))
