"""Restarts of tasks that fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import trio

from actors.backoff import Backoff

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

HEALTHY_AFTER_SECONDS: Final = 60.0

Faults = type[Exception] | tuple[type[Exception], ...]


async def supervise(
    run: Callable[[], Awaitable[None]],
    *,
    name: str,
    backoff: Backoff,
    restart_on: Faults = Exception,
    log: FilteringBoundLogger | None = None,
    healthy_after: float = HEALTHY_AFTER_SECONDS,
) -> None:
    """Run `run` until it returns, restarting it with back-off after each exception of a type in `restart_on`.

    Any other exception propagates. An exception group leads to a restart if all its members do. A run that lasted
    `healthy_after` seconds resets the back-off. Each restart is logged to `log`, with the exception.
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
            if log is not None:
                log.warning("restarting after a fault", task=name, delay_seconds=delay, exc_info=fault)
        else:
            return
        await trio.sleep(delay)


def _is_all(fault: Exception, kinds: Faults) -> bool:
    if isinstance(fault, ExceptionGroup):
        return fault.split(kinds)[1] is None
    return isinstance(fault, kinds)
