"""Hosts of the simulation as the ZooKeeper ensemble sees them: they freeze, thaw and are cut off."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from attrs import Factory, define, frozen

from simulator.store.agenda import Call
from transport.store.protocol import Op

Moment = Literal["before", "after"]


@frozen
class Interruption:
    """What happens once, as a host's next multi arrives: before or right after it is done."""

    what: Callable[[], object]
    when: Moment
    path: str = ""
    """The multi changes this znode or one below it; any multi without."""

    def concerns(self, ops: Sequence[Op]) -> bool:
        """Return whether a multi is the one that is waited for."""
        return not self.path or any(f"{op.path}/".startswith(f"{self.path}/") for op in ops)


@define(eq=False)
class Host:
    """Where a session's holder lives. `latency` is what a message takes each way, in seconds, on average."""

    name: str
    latency: float
    reachable: bool = True
    frozen: bool = False
    beats: bool = False
    """Whether its sessions are heard of while it is frozen."""

    interruption: Interruption | None = None
    _arrived: deque[Call] = Factory(deque)
    _leaving: deque[Call] = Factory(deque)

    def take(self, call: Call) -> None:
        """Let something happen in the host's process: now, or when it thaws."""
        if self.frozen:
            self._arrived.append(call)
        else:
            call()

    def leave(self, call: Call) -> None:
        """Let something leave the host's process: now, or when it thaws."""
        if self.frozen:
            self._leaving.append(call)
        else:
            call()

    def thaw(self) -> None:
        """Go on after a pause. What was sent meanwhile leaves before the process learns what came meanwhile."""
        self.frozen = self.beats = False
        for waiting in (self._leaving, self._arrived):
            while waiting and not self.frozen:
                waiting.popleft()()

    def renew(self) -> None:
        """Forget the process that was here."""
        self.frozen = self.beats = False
        self.interruption = None
        self._arrived.clear()
        self._leaving.clear()
