"""Errors of the data source, as they reach the user of Spark."""


class OptionError(ValueError):
    """An option or a column that was asked for does not fit; the text names it and says what does."""


class EventsExpired(Exception):
    """The metastore no longer has events that a stream has still to read."""


class NotRegistered(Exception):
    """Rows cannot be registered as partitions; the text names table, column or value."""
