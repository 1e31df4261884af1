"""The iterator `encode` gives when a reply is streamed."""

from collections.abc import Iterator, Sequence

from hms_gateway.structs import EncodedList


class Chunks(Iterator[bytes]):
    """Chunks of a reply; closes the lists they come from at the end, after a failure, and on `close()`.

    A generator alone would not do: closing one that was never started runs none of its code.
    """

    def __init__(self, chunks: Iterator[bytes], streams: Sequence[EncodedList]) -> None:
        self._chunks = chunks
        self._streams = streams

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give up reading. Harmless when called again."""
        close_all(self._streams)


def close_all(streams: Sequence[EncodedList]) -> None:
    for stream in streams:
        stream.close()
