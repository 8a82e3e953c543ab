"""Hosts of the simulation as the ZooKeeper ensemble sees them: they can be frozen, thawed and cut off."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from attrs import Factory, define, frozen

from simulator.store.agenda import Call
from transport.store.protocol import Check, Op

Moment = Literal["before", "after"]


@frozen
class Interruption:
    """A call made once, when a host's next multi arrives: before it is applied, or right after."""

    what: Callable[[], object]
    when: Moment
    path: str = ""
    """The multi must change this znode or one below it, not only check its version; if empty, any multi matches."""

    def concerns(self, ops: Sequence[Op]) -> bool:
        """Return whether a multi is the one that this waits for."""
        changed = [op.path for op in ops if not isinstance(op, Check)]
        return not self.path or any(f"{path}/".startswith(f"{self.path}/") for path in changed)


@define(eq=False)
class StoreHost:
    """The host of a session's holder. `latency` is the average time of a message each way, in seconds."""

    name: str
    latency: float
    reachable: bool = True
    frozen: bool = False
    beats: bool = False
    """Whether its sessions send heartbeats while it is frozen."""

    interruption: Interruption | None = None
    changes: int = 0
    """How often the host was frozen, thawed or renewed."""

    _arrived: deque[Call] = Factory(deque)
    _leaving: deque[Call] = Factory(deque)

    def take(self, call: Call) -> None:
        """Make a call in the host's process: now, or when it thaws."""
        if self.frozen:
            self._arrived.append(call)
        else:
            call()

    def leave(self, call: Call) -> None:
        """Make a call that sends something from the host's process: now, or when it thaws."""
        if self.frozen:
            self._leaving.append(call)
        else:
            call()

    def freeze(self, *, beats: bool) -> None:
        """Pause; with `beats`, heartbeats are still sent."""
        self.frozen, self.beats = True, beats
        self.changes += 1

    def thaw(self) -> None:
        """Continue after a pause. Pending messages leave before the process sees those that arrived meanwhile."""
        self.frozen = self.beats = False
        self.changes += 1
        for waiting in (self._leaving, self._arrived):
            while waiting and not self.frozen:
                waiting.popleft()()

    def renew(self) -> None:
        """Discard the state of the previous process on this host."""
        self.frozen = self.beats = False
        self.changes += 1
        self.interruption = None
        self._arrived.clear()
        self._leaving.clear()
