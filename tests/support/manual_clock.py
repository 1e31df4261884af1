"""The time of day as a test moves it."""


class ManualClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, seconds: int = 1_700_000_000) -> None:
        self._seconds = seconds

    def seconds(self) -> int:
        return self._seconds

    def milliseconds(self) -> int:
        return self._seconds * 1000

    def advance(self, seconds: int) -> None:
        self._seconds += seconds
