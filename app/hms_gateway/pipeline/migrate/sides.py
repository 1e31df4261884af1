"""Both metastores, and how objects are taken from one to the other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hms_gateway.pipeline.connection import Connection
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.failures import JobFailed
from hms_gateway.pipeline.migrate.objects import Plain, plain, without
from hms_gateway.pipeline.migrate.writing import RecordingClient
from hms_gateway.rpc.structs import Struct

CONFLICT: Final = "it is in the target and differs from the source"


@dataclass(frozen=True)
class Sides:
    """Where from and how; pickled to executors.

    on_conflict  what to do with an object that was in the target before and differs: skip, replace or fail
    kinds        which kinds of objects are migrated
    recorded_at  the time of what has none
    declared     fields that the target cannot hold, by kind
    """

    source: Connection
    is_gateway: bool
    on_conflict: str
    kinds: frozenset[str]
    recorded_at: int
    patience_seconds: float
    declared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def reading(self) -> PatientClient:
        """A client of the source."""
        return PatientClient(self.source, self.patience_seconds)

    def writing(self, client: PatientClient) -> PatientClient:
        """A client of the target, with the keys and the lease of the run's."""
        return RecordingClient.like(client, self.recorded_at) if self.is_gateway else client

    def compared(self, kind: str, value: Struct) -> Plain:
        """As it is compared: without what the target cannot hold."""
        return without(plain(value), self.declared.get(kind, {}))

    def conflict(self, item: str) -> str:
        """Why an object is left as it is. Raises JobFailed when conflicts end the run."""
        if self.on_conflict == "fail":
            hint = "compare them; --on-conflict skip leaves what is in the target, replace makes it the source's"
            raise JobFailed(f"{item}: {CONFLICT}", hint)
        return f"{CONFLICT}; left as it is (--on-conflict skip)"

    def wants(self, kind: str) -> bool:
        return kind in self.kinds
