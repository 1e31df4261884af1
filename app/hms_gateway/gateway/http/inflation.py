"""A compressed body is inflated piece by piece, so that each piece can be counted before there is the next one."""

import zlib

GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
# What is handed to zlib at once: it copies what it has not used after each piece.
FED_BYTES = 64 * 1024
# bgzip begins a member every 64 KiB.
MEMBERS_MAX = 10_000


class DamagedBody(Exception):
    """The body is not what its Content-Encoding says; the text says why."""


class Inflation:
    """The members of a gzip body, or a zlib body. `piece` is called until `is_complete`, in any thread."""

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self._fed = 0
        self._rest = b""
        self._inflater = zlib.decompressobj(GZIP_OR_ZLIB)
        self._members = 1
        self.is_complete = False

    def piece(self, bytes_max: int) -> bytes:
        """`bytes_max` more bytes, fewer only at the end, however small the members are. Raises DamagedBody."""
        pieces = []
        missing = bytes_max
        while missing and not self.is_complete:
            piece = self._step(missing)
            missing -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def _step(self, bytes_max: int) -> bytes:
        self._feed()
        try:
            piece = self._inflater.decompress(self._rest, bytes_max)
        except zlib.error as error:
            raise DamagedBody(f"The compressed body is damaged: {error}") from error
        if self._inflater.eof:
            self._rest = self._inflater.unused_data
            self._next_member()
        else:
            self._rest = self._inflater.unconsumed_tail
            if not piece and not self._rest and self._fed == len(self._body):
                raise DamagedBody("The compressed body is cut off")
        return piece

    def _feed(self) -> None:
        if not self._rest and self._fed < len(self._body):
            self._rest = bytes(self._body[self._fed : self._fed + FED_BYTES])
            self._fed += len(self._rest)

    def _next_member(self) -> None:
        self.is_complete = not self._rest and self._fed == len(self._body)
        if self.is_complete:
            return
        self._members += 1
        if self._members > MEMBERS_MAX:
            raise DamagedBody(f"The compressed body has more than {MEMBERS_MAX} members")
        self._inflater = zlib.decompressobj(GZIP_OR_ZLIB)
