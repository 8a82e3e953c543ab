"""Running a controller inside any asyncio program: trio as a guest of the program's event loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import trio

from actors.guest_run import run_in_trio
from controller.config import ControllerConfig
from controller.embedding import run
from controller.node.service import ControllerService


async def run_asyncio(
    config: ControllerConfig, *, on_started: Callable[[ControllerService], None] | None = None, **options: Any
) -> None:
    """Run a controller until the awaiting task is cancelled; the cancellation completes after it has resigned.

    `on_started` is called in the event loop's thread once the controller listens. `options` and the exceptions raised
    are those of `klamm.run`.
    """
    await run_in_trio(partial(_run, config, on_started, options))


async def _run(
    config: ControllerConfig, on_started: Callable[[ControllerService], None] | None, options: dict[str, Any]
) -> None:
    async with trio.open_nursery() as nursery:
        service: ControllerService = await nursery.start(partial(run, config, **options))
        if on_started is not None:
            on_started(service)
