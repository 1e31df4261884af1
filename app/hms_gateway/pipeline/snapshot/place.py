"""Where a snapshot is written: beside its folder until it is whole, then under its name."""

import os
from dataclasses import dataclass

from hms_gateway.pipeline.jobs.failures import StateFailed, UsageRefused
from hms_gateway.pipeline.jobs.state import State
from hms_gateway.pipeline.snapshot.manifest import Manifest
from hms_gateway.pipeline.storage import StorageOptions


@dataclass(frozen=True)
class Place:
    """`target` is the snapshot, `partial` what is written; elsewhere than on a local disk both are one folder, and the
    manifest makes it a snapshot.
    """

    target: State
    partial: State

    @classmethod
    def of(cls, path: str, storage: StorageOptions) -> "Place":
        target = State.of(path, storage)
        if not target.is_local:
            return cls(target, target)
        parent, _, name = target.location.rpartition("/")
        return cls(target, State(f"{parent}/.{name}.partial"))

    def completed(self, run: str) -> Manifest | None:
        """The snapshot, if this run has taken it. Raises StateFailed, UsageRefused."""
        manifest = Manifest.find(self.target)
        return manifest if manifest is not None and manifest.run == run else None

    def check_free(self, run: str) -> None:
        """Raises UsageRefused where something else is."""
        if self.completed(run) is not None:
            return
        path = self.target.location
        if (manifest := Manifest.find(self.target)) is not None:
            raise UsageRefused(f"{path} is the snapshot of event {manifest.event}", "give the path of a new folder")
        # What a run that was killed has left in a store without renaming.
        own = [] if self.target.is_local else [name for name in self.target.names("") if name.startswith("kind=")]
        if set(self.target.names("")) - set(own):
            raise UsageRefused(f"{path} is not empty", "give the path of a new folder")

    def clear(self) -> None:
        """Remove what a run that was killed has written. Raises StateFailed."""
        for name in self.partial.names(""):
            self.partial.remove(name)

    def publish(self, manifest: Manifest) -> None:
        """From now on it is there, whole. Raises StateFailed, UsageRefused."""
        manifest.write(self.partial)
        Manifest.of(self.partial)
        if self.partial is self.target:
            return
        try:
            os.rename(self.partial.location, self.target.location)
        except OSError as error:
            raise StateFailed(f"snapshot {self.target.location} cannot be named: {error.strerror}") from error
