"""Whether a controller may answer: a deposed one that does not know it yet must not.

The session with the store is a lease on the office. While it lasts, no other controller is elected, unless somebody
deletes `/controller`. It may have ended without our knowledge in two cases:

    the connection is lost      known at once; the store ends the session after its timeout
    this process did not run    a stopped or starved process sends no heartbeats, and learns of the end of its session
                                when it runs again: perhaps only after it has taken the next request

The store's client sends a heartbeat when it has been silent for a third of the timeout, and gives a connection up that
has been silent for two thirds. So a session survives any pause of up to two thirds of the timeout, and one third if
the connection broke just before. After a pause of more than one third, and once a lost connection is back, a commit
that changes nothing checks the epoch before anything else is done: it passes through the leader of the store, which
knows each session and each epoch. In the normal case an answer needs no request to the store.

Pauses are those of trio's clock: a task that should have run looks at how much later it does. A clock that stands still
together with the process, as in a virtual machine that is suspended, hides a pause.
"""

from __future__ import annotations

from math import inf
from typing import Final

import trio
from attrs import define, field

from controller.model.election_results import Won
from transport.log import get_logger
from transport.store import paths
from transport.store.commit import commit_chunk
from transport.store.protocol import Check, MetadataStore, SessionState

log = get_logger(__name__)

LONGEST_PAUSE: Final = 1 / 3
"""The longest pause, as a share of the session timeout, after which the session has certainly not ended."""

LOOKS_PER_SESSION: Final = 12
"""The number of times per session timeout that the process looks for pauses of its own."""


@define(eq=False)
class Contact:
    """The contact of this process with the store, whose sessions last `session_seconds` without a heartbeat."""

    store: MetadataStore
    session_seconds: float
    _connected: trio.Event = field(factory=trio.Event, init=False)
    """Not set while the connection to the store is lost but the session may not have expired."""

    _ran_at: float = field(default=inf, init=False)
    """The time of trio's clock at which this process was last known to run."""

    _doubts: int = field(default=0, init=False)
    """The number of lost connections, and of pauses that a session may not have survived."""

    _confirmed: int = field(default=0, init=False)
    """The number of those after which the office was confirmed."""

    _turn: trio.Lock = field(factory=trio.Lock, init=False)
    """Held by the task that asks the store, so that the others need not."""

    def __attrs_post_init__(self) -> None:
        self._connected.set()

    def lost(self) -> None:
        """Take note that the connection is lost."""
        self._connected = trio.Event()
        self._doubts += 1

    def decided(self) -> None:
        """Take note that the connection is back, or that the session has ended: nothing is to be waited for."""
        self._connected.set()

    async def until_decided(self) -> None:
        """Wait while there is no connection, until it is back or the session has ended."""
        await self._connected.wait()

    async def look_for_pauses(self) -> None:
        """Look at the clock now and then, forever."""
        while True:
            self._look()
            await trio.sleep(self.session_seconds / LOOKS_PER_SESSION)

    def _look(self) -> None:
        now = trio.current_time()
        if now - self._ran_at > self.session_seconds * LONGEST_PAUSE:
            self._doubts += 1
            log.warning("this process did not run for a while", seconds=round(now - self._ran_at, 3))
        self._ran_at = now

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to the store, as far as is known."""
        return self.store.state is SessionState.CONNECTED

    @property
    def is_certain(self) -> bool:
        """Whether the session certainly lasts, and with it the office."""
        self._look()
        return self.is_connected and self._confirmed == self._doubts

    async def confirm(self, office: Won) -> None:
        """Return once it is certain that the office has been held since the call; at once in the normal case.

        Raises Fenced, or another StoreError, if it is lost.
        """
        while not self.is_certain:
            await self.until_decided()
            async with self._turn:
                if not self.is_certain:
                    doubts = self._doubts
                    await commit_chunk(self.store, [()], Check(paths.CONTROLLER_EPOCH, office.version))
                    self._confirmed = doubts
