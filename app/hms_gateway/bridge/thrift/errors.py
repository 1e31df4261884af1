"""What can go wrong between a TCP client and the gateway, and what it means for the client (clients §13)."""


class BridgeError(Exception):
    """Base; the text is for the log and, where there is one, for the answer."""


class Unspeakable(BridgeError):
    """The peer does not speak Thrift in a way we understand: send `last_words` as they are and close.

    `reason` is its word in log and metrics.
    """

    def __init__(self, text: str, last_words: bytes = b"", reason: str = "not_thrift") -> None:
        super().__init__(text)
        self.last_words = last_words
        self.reason = reason


class NotTried(BridgeError):
    """Nothing of the call reached the metastore, so the connection is closed and the client may repeat it."""


class CallFailed(BridgeError):
    """The call may have happened, or trying again cannot help: answered with an exception that no client repeats.

    `outcome` is its word in log and metrics.
    """

    def __init__(self, text: str, outcome: str) -> None:
        super().__init__(text)
        self.outcome = outcome


class ReplyBroken(BridgeError):
    """The far side stopped in the middle of a reply whose beginning the client already has."""
