"""Check that a controller that has been deposed answers no read, on either wire.

Its session may have ended while it was cut off from the store or did not run: it must not answer a request that it
takes from then on. Nothing but the store can tell a controller that its session was ended, or `/controller` deleted, by
hand: it may answer until the store's news has arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field

from simulator.frames import correlation_id, is_request, is_success, read_of
from simulator.safety.controllership import Controllership
from simulator.safety.partitions import is_controller
from transport.store import paths
from transport.store.kafka_office import DECISIVE
from transport.store.protocol import Check, Delete, Op, SessionChanged, SessionState, StoreEvent, WatchFired

_OFFICE: Final = (paths.CONTROLLER, paths.OFFICE_LOCK)


@define
class Depositions:
    """The controllers that were in office and no longer are."""

    _controllership: Controllership
    _deposed: dict[str, bool] = field(factory=dict, init=False)
    """The former controllers that have not been elected again, and whether each was deposed by hand."""

    _by_hand: set[str] = field(factory=set, init=False)
    """The controllers whose session was ended, or office deleted, by hand since they took office."""

    _informed: set[str] = field(factory=set, init=False)
    """The controllers that know, or have to expect, that they are deposed."""

    _asked: dict[str, dict[tuple[int, int], str]] = field(factory=dict, init=False)
    """What is wrong with an answer to the reads that deposed controllers have taken, by connection and correlation id.

    A controller that is elected again may answer all of them.
    """

    def may_be_stale(self, host: str) -> bool:
        """Return whether a former controller cannot know yet that it has been deposed."""
        return self._deposed.get(host, False) and host not in self._informed

    # --- what happens to controllers ------------------------------------------------------------------------------

    def committed(self, host: str, ops: Sequence[Op], before: str) -> None:
        """Take note of a commit that has just taken effect; `before` was in office until then."""
        holder = self._controllership.holder
        if holder != before:
            self._deposed[before] = before in self._by_hand
            for known in (self._by_hand, self._informed):
                known.discard(holder)
            self._deposed.pop(holder, None)
            self._asked.pop(holder, None)
        elif is_controller(host) and any(op.path == paths.CONTROLLER_EPOCH for op in ops if not isinstance(op, Check)):
            # It takes office again, under a new epoch.
            self._by_hand.discard(holder)
            self._informed.discard(holder)
        if host and not is_controller(host) and any(isinstance(op, Delete) and op.path in _OFFICE for op in ops):
            self.ended_by_hand(holder)

    def ended_by_hand(self, host: str) -> None:
        """Take note that the session of a controller was ended, or its office deleted, by hand."""
        self._by_hand.add(host)

    def changed(self, host: str, event: StoreEvent) -> None:
        """Take note of what the store's client in a controller's process has just learnt."""
        is_deposed = host in self._by_hand or host in self._deposed
        match event:
            case SessionChanged(state=SessionState.CONNECTED):
                if not is_deposed:
                    self._informed.discard(host)
            case SessionChanged():
                self._informed.add(host)
            case WatchFired(path=path) if path in DECISIVE and is_deposed:
                self._informed.add(host)

    # --- requests and answers -------------------------------------------------------------------------------------

    def delivered(self, source: str, destination: str, connection_id: int, chunk: bytes) -> Iterator[str]:
        """Yield what is wrong with a frame that its receiver takes from the network."""
        if destination in self._deposed and not self.may_be_stale(destination) and is_request(chunk):
            read = read_of(chunk)
            if read is not None:
                text = f"{destination} answered {read}, although {self._controllership.holder} was in office by then"
                self._asked.setdefault(destination, {})[connection_id, correlation_id(chunk)] = text
        elif source in self._asked and not is_request(chunk):
            fault = self._asked[source].pop((connection_id, correlation_id(chunk)), None)
            if fault is not None and is_success(chunk):
                yield fault
