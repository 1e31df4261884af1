"""Errors of the pipeline: those of the data source, as Spark shows them, and the reasons for which a job ends early."""


class OptionError(ValueError):
    """An option or a column that was asked for does not fit; the text names it and says what does."""


class EventsExpired(Exception):
    """The metastore no longer has events that a stream has still to read."""


class NotRegistered(Exception):
    """Rows cannot be registered as partitions; the text names table, column or value."""


# Reasons for which a job ends early. All of them can be resumed when what they name is put right.


class JobFailed(Exception):
    """The job cannot go on; the text names the object and what is wrong, `hint` what to do."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


class UsageRefused(JobFailed):
    """Options or arguments do not fit, or do not fit the run that is resumed."""


class StateFailed(JobFailed):
    """The state folder cannot be read or written."""


class TablesHeld(JobFailed):
    """Another run, or another holder of a lease, has a table."""


class LeaseLost(JobFailed):
    """The lease on the tables ended while the job worked on them."""


class GatewayAway(JobFailed):
    """The metastore did not answer for as long as the job is patient."""


class CallsRefused(JobFailed):
    """The metastore does not let the job in, or does not know what it asks for."""
