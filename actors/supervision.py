"""Running a task again when it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio

from actors.backoff import Backoff

HEALTHY_AFTER_SECONDS: Final = 60.0

Faults = type[Exception] | tuple[type[Exception], ...]

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def supervise(
    run: Callable[[], Awaitable[None]],
    *,
    name: str,
    backoff: Backoff,
    restart_on: Faults = Exception,
    on_restart: Callable[[Exception], None] | None = None,
    healthy_after: float = HEALTHY_AFTER_SECONDS,
) -> None:
    """Run `run` to its end, and again after each fault of the kinds `restart_on`, once a back-off has passed.

    Every other fault passes through, and so takes the parent down; an exception group counts as a fault to restart on
    if all in it do. The back-off begins again after a run that lasted `healthy_after` seconds. Each restart is logged
    once, and `on_restart` gets its fault before the wait.
    """
    while True:
        began = trio.current_time()
        try:
            await run()
        except Exception as fault:
            if not _is_all(fault, restart_on):
                raise
            if trio.current_time() - began >= healthy_after:
                backoff.reset()
            delay = backoff.next()
            _log.warning("restarting after a fault", task=name, delay_seconds=delay, exc_info=fault)
            if on_restart is not None:
                on_restart(fault)
        else:
            return
        await trio.sleep(delay)


def _is_all(fault: Exception, kinds: Faults) -> bool:
    if isinstance(fault, ExceptionGroup):
        return fault.split(kinds)[1] is None
    return isinstance(fault, kinds)
