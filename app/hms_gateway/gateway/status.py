"""What calls cost, kept up to date once a second and shared with the other workers of the same gateway."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hms_gateway.gateway.observability.figures import Figures, WorkerFigures
from hms_gateway.gateway.observability.metrics import Metrics

LOOK_SECONDS = 1.0


class GatewayStatus:
    """Used from the event loop's thread.

    `newest_event` asks the database for the catalog's newest event; it may take time and raise. `administrators` see
    the names of users and objects. `follow` is called with each look.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        newest_event: Callable[[], int] | None = None,
        administrators: frozenset[str] = frozenset(),
        shows_names: bool = False,
        follow: Callable[[], None] = lambda: None,
    ) -> None:
        self.shows_names = shows_names
        self._metrics = metrics
        self._newest_event = newest_event
        self._follow = follow
        self._administrators = administrators
        self._workers: WorkerFigures | None = None
        self._timer: asyncio.TimerHandle | None = None

    def share(self, folder: Path) -> None:
        """From now on these are the figures of all workers that use the folder."""
        self._workers = WorkerFigures(folder)

    def start(self) -> None:
        self._look()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._workers is not None:
            self._workers.leave(self._metrics.figures())

    async def figures(self) -> Figures | None:
        """Those of all workers; None where this process is the only one."""
        if self._workers is None:
            return None
        return await asyncio.to_thread(self._workers.all, self._metrics.figures())

    async def report(self, user: str) -> dict[str, Any]:
        """What calls cost, as far as the user may know."""
        # Only here, since a gateway that is not asked does not need it.
        from hms_gateway.gateway.observability.costs import cost_report

        figures = await self.figures() or self._metrics.figures()
        sees_all = user in self._administrators
        newest = await asyncio.to_thread(self._find_newest)
        return cost_report(figures, user=user, sees_all=sees_all, newest_event=newest)

    def _find_newest(self) -> int | None:
        try:
            return None if self._newest_event is None else self._newest_event()
        except Exception:
            # The database may be what the caller wants to know about.
            return None

    def _look(self) -> None:
        self._metrics.served.look()
        self._follow()
        loop = asyncio.get_running_loop()
        if self._workers is not None:
            loop.run_in_executor(None, self._workers.leave, self._metrics.figures())
        self._timer = loop.call_later(LOOK_SECONDS, self._look)
