"""The signals by which operators hold rollouts up: a file that exists, or a URL that does not answer 2xx.

They are asked outside the event queue, which is told what they say when that has changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import trio
from attrs import define, field

from controller.events import RolloutSignalled
from controller.model.context import ControllerContext
from controller.model.rollouts import Rollout
from transport.messages import RolloutSettings

URL_SECONDS: Final = 5.0

HasFile = Callable[[str], Awaitable[bool]]


@define
class RolloutSignals:
    """Asks the signals of the current rollout. `tell` queues an event, `has_file` tells whether a file exists."""

    tell: Callable[[RolloutSignalled], object]
    has_file: HasFile
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
        try:
            text = await signal_of(rollout.stored.settings, self.has_file)
        finally:
            self._is_asking = False
        if text != rollout.signal:
            self.tell(RolloutSignalled(rollout.name, text))


async def signal_of(settings: RolloutSettings, has_file: HasFile) -> str:
    """Return why the signals say no, empty if they say yes."""
    if settings.pause_file and await has_file(settings.pause_file):
        return f"{settings.pause_file} exists"
    if not settings.go_url:
        return ""
    fault = await trio.to_thread.run_sync(fault_of, settings.go_url, abandon_on_cancel=True)
    return "" if fault is None else f"{settings.go_url} {fault}"


def fault_of(url: str) -> str | None:
    """Return why a URL says no, None for an answer of 2xx."""
    if not url.startswith(("http://", "https://")):
        return "is not the URL of a page"
    try:
        with urlopen(Request(url), timeout=URL_SECONDS) as answer:  # noqa: S310  its scheme was checked
            status = answer.status
    except HTTPError as error:
        with error:
            status = error.code
    except URLError as error:
        return f"does not answer: {error.reason}"
    except (OSError, ValueError) as error:
        return f"does not answer: {error}"
    return None if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES else f"answers {status}"
