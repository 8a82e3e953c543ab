"""The brakes of a rollout: why it begins nothing for now, by itself and until that is over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import MoveAdmin
from controller.rollout.choosing import Hold
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.errors import ApiError
from transport.host import Host
from transport.messages import ConfigResource, ConfigResourceType, MetadataResponse, PartitionState
from transport.signals import signal_of

LOOK_SECONDS: Final = 5.0
"""The time between two looks at what may hold a rollout up."""

_NAMED: Final = 3


@define
class Brakes:
    """Watches what an operator gives as signals, and the cluster. `at_start` are the brokers that have to be alive."""

    admin: MoveAdmin
    at_start: Collection[int]
    file: Path | None = None
    url: str | None = None
    ignores_min_isr: bool = False
    _hold: Hold | None = None
    _next: float = field(default=float("-inf"))

    async def look(self, found: MetadataResponse) -> Hold | None:
        """Return why nothing may begin, None if something may. The answer is that of a few seconds ago at most."""
        if trio.current_time() >= self._next:
            live = {broker.id for broker in found.brokers}
            lacking = [state for state in found.partitions if state.is_under_replicated]
            self._hold = await self._signal() or self._dead(live) or await self._under_min_isr(lacking)
            self._next = trio.current_time() + LOOK_SECONDS
        return self._hold

    async def _signal(self) -> Hold | None:
        file = "" if self.file is None else str(self.file)
        said = await signal_of(file, self.url or "", Host())
        return Hold(said) if said else None

    def _dead(self, live: Collection[int]) -> Hold | None:
        died = sorted(set(self.at_start) - set(live))
        if not died:
            return None
        text = f"broker{'s' if len(died) > 1 else ''} {', '.join(map(str, died))} died"
        return Hold(text, spares_urgent=True)

    async def _under_min_isr(self, lacking: Sequence[PartitionState]) -> Hold | None:
        """Judge partitions that lack replicas: one that has all it can have does not get better by waiting."""
        if self.ignores_min_isr or not lacking or not isinstance(self.admin, ClusterAdmin):
            return None  # ZooKeeper does not tell the settings of brokers
        try:
            least = await self._least_isrs({state.topic for state in lacking})
        except ApiError:
            return None  # this operator may not see them
        under = [state.tp for state in lacking if len(state.isr) < least.get(state.topic, 0)]
        if not under:
            return None
        return Hold(f"{named(under)} {'is' if len(under) == 1 else 'are'} under min ISR", spares_urgent=True)

    async def _least_isrs(self, topics: Iterable[str]) -> dict[str, int]:
        """Return min.insync.replicas of topics, of those that tell it. Raises ApiError, WireError."""
        assert isinstance(self.admin, ClusterAdmin)
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(topics)]
        told = await self.admin.describe_configs(resources)
        entries = [(one.resource.name, entry) for one in told for entry in one.entries]
        return {name: int(entry.value) for name, entry in entries if entry.name == MIN_INSYNC_REPLICAS}


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
