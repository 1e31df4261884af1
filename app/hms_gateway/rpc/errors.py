"""How a call can fail besides with the exceptions of the IDL."""


class Unavailable(Exception):
    """The call could not be tried, nothing has happened, and it may be tried again; the text is safe to show.

    `detail` is for the operator's log alone; `limit` is the name of the limit that is in the way, if one is.
    """

    def __init__(self, text: str, detail: str = "", limit: str = "") -> None:
        super().__init__(text)
        self.detail = detail
        self.limit = limit


class Failed(Exception):
    """The server could not do what a caller may well ask for; the text is safe to show."""
