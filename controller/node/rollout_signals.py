"""The signals by which operators hold the controller's rollouts up.

They are asked outside the event queue, which is told what they say when that has changed.
"""

from __future__ import annotations

from collections.abc import Callable

import trio
from attrs import define, field

from controller.events import RolloutSignalled
from controller.model.context import ControllerContext
from controller.model.rollout import Rollout
from transport.host import Host
from transport.log import get_logger
from transport.signals import signal_of

_log = get_logger(__name__)


@define
class RolloutSignals:
    """Asks the signals of the current rollout. `tell` queues an event."""

    tell: Callable[[RolloutSignalled], object]
    host: Host
    _is_asking: bool = field(default=False, init=False)

    def look(self, nursery: trio.Nursery, context: ControllerContext) -> None:
        """Ask the signals of the rollout that is carried out, if it has some and they are not being asked."""
        rollout = context.rollouts.current
        if rollout is None or self._is_asking:
            return
        if rollout.stored.settings.pause_file or rollout.stored.settings.go_url:
            self._is_asking = True
            nursery.start_soon(self._ask, rollout)

    async def _ask(self, rollout: Rollout) -> None:
        settings = rollout.stored.settings
        try:
            text = await signal_of(settings.pause_file, settings.go_url, self.host)
        except Exception as fault:  # noqa: BLE001  the rollout waits, and the controller lives
            text = f"its signal cannot be asked: {type(fault).__name__}"
            if text != rollout.signal:
                _log.exception("a rollout is held up: its signal could not be asked", rollout=rollout.name)
        finally:
            self._is_asking = False
        if text != rollout.signal:
            self.tell(RolloutSignalled(rollout.name, text))
