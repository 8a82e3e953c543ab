"""The commit traces of all controllers, followed over the network from one controller to the next."""

from __future__ import annotations

from collections.abc import Callable

import trio
from attrs import define, field

from controller.admin.client import AdminClient
from klamm.cli.demo.trace_rows import Seen
from transport.errors import ApiError
from transport.messages import BrokerEndpoint, TracedCommit
from transport.wire import WireError

WAIT_MS = 500


@define
class TraceFollower:
    """Subscribes to controllers and keeps their commits, with the number of acknowledged records at that time."""

    admin: AdminClient
    acknowledged: Callable[[], int]
    seen: list[Seen] = field(factory=list, init=False)
    _grown: trio.Event = field(factory=trio.Event, init=False)

    async def follow(self, controller: BrokerEndpoint) -> None:
        """Follow one controller until it is gone."""
        sequence = 0
        while True:
            try:
                response = await self.admin.read_trace(controller, sequence, WAIT_MS)
            except (ApiError, WireError):
                return
            sequence = response.next_sequence
            if response.commits:
                count = self.acknowledged()
                self.seen += [Seen(commit, count) for commit in response.commits]
                self._grown.set()
                self._grown = trio.Event()

    async def wait_for(self, matches: Callable[[TracedCommit], bool]) -> TracedCommit:
        """Return the first commit that matches, waiting for it."""
        looked_at = 0
        while True:
            for item in self.seen[looked_at:]:
                if matches(item.commit):
                    return item.commit
            looked_at = len(self.seen)
            await self._grown.wait()
