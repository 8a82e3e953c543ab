"""The brakes of a rollout: why it begins nothing for now, by itself and until that is over."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import trio
from attrs import define, field

from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import MoveAdmin
from controller.admin.moves import CANNOT_SEE
from controller.rollout.choosing import Hold
from transport.errors import ApiError
from transport.messages import UNKNOWN

LOOK_SECONDS: Final = 5.0
"""The time between two looks at what may hold a rollout up."""

URL_SECONDS: Final = 5.0
_NAMED: Final = 3


@define
class Brakes:
    """Watches what an operator gives as signals, and the cluster. `at_start` are the brokers that have to be alive."""

    admin: MoveAdmin
    at_start: Collection[int]
    file: Path | None = None
    url: str | None = None
    _hold: Hold | None = None
    _next: float = field(default=float("-inf"))

    async def look(self, live: Collection[int]) -> Hold | None:
        """Return why nothing may begin, None if something may. The answer is that of a few seconds ago at most."""
        if trio.current_time() >= self._next:
            self._hold = await self._signal() or self._dead(live) or await self._under_min_isr()
            self._next = trio.current_time() + LOOK_SECONDS
        return self._hold

    async def _signal(self) -> Hold | None:
        if self.file is not None and await trio.Path(self.file).exists():
            return Hold(f"{self.file} exists")
        if self.url is None:
            return None
        fault = await trio.to_thread.run_sync(fault_of, self.url, abandon_on_cancel=True)
        return None if fault is None else Hold(f"{self.url} {fault}")

    def _dead(self, live: Collection[int]) -> Hold | None:
        died = sorted(set(self.at_start) - set(live))
        if not died:
            return None
        text = f"broker{'s' if len(died) > 1 else ''} {', '.join(map(str, died))} died"
        return Hold(text, spares_urgent=True)

    async def _under_min_isr(self) -> Hold | None:
        if not isinstance(self.admin, ClusterAdmin):
            return None  # ZooKeeper does not tell the settings of brokers
        try:
            count = (await self.admin.describe_cluster()).under_min_isr
        except CANNOT_SEE as error:
            return Hold(f"the cluster cannot be seen: {error}")
        except ApiError:
            return None  # this operator may not see it
        if count in (0, UNKNOWN):
            return None
        text = f"{count:,} partition{' is' if count == 1 else 's are'} under min ISR"
        return Hold(text, spares_urgent=True)


def foreign_hold(names: Collection[object]) -> Hold | None:
    """Return the hold that is due to moves of others, None if there are none."""
    if not names:
        return None
    return Hold(f"{named(names)} {'is' if len(names) == 1 else 'are'} being moved by somebody else")


def named(names: Collection[object]) -> str:
    """Return the first few of names, and how many more there are."""
    first = [str(name) for name in names][:_NAMED]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more else "")


def fault_of(url: str) -> str | None:
    """Return why a URL says no, None for an answer of 2xx."""
    try:
        with urlopen(Request(url), timeout=URL_SECONDS) as answer:  # noqa: S310  its scheme was checked as an option
            status = answer.status
    except HTTPError as error:
        with error:
            status = error.code
    except URLError as error:
        return f"does not answer: {error.reason}"
    except (OSError, ValueError) as error:
        return f"does not answer: {error}"
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    return f"answers {status}"
