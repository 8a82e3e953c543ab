"""The controllers' steps as they happen, for simulations to trace, to wait for, and to strike at."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import trio
from attrs import define, field, frozen

from controller.events import SessionEnded
from controller.observation.observer import CommittedRound, DecidedRound, Observer, PublishedRound
from simulator.trace import Trace
from transport.messages import PartitionState
from transport.metadata import TopicPartition


class Moment(Enum):
    """The moments of a controller's round."""

    DECIDED = "decided"
    COMMITTED = "committed"
    PUBLISHED = "published"


@frozen
class ControllerStep:
    """A round of a controller at one of its moments; `partitions` are the states after a commit."""

    controller_id: int
    event: str
    round: str
    moment: Moment
    subjects: tuple[TopicPartition, ...]
    partitions: tuple[PartitionState, ...] = ()

    def text(self) -> str:
        """Return the step as the trace shows it."""
        return f"{self.event} {self.round} {self.moment.value} {' '.join(map(str, self.subjects))}"


Arrival = Callable[[int, int], bool]
"""Called with the ids of controller and broker when a request arrives; returns True to stop watching."""


class OnEvent(Protocol):
    """Called when a controller begins to process an event."""

    def __call__(self, controller_id: int, event: str, *, is_in_office: bool) -> None:
        """Observe the event; `is_in_office` is whether the controller believes itself to be the active one."""


Watcher = Callable[[ControllerStep], bool]
"""Called with a step, synchronously and in the controller's own task; returns True to stop watching."""


def _ignore(controller_id: int, event: str, *, is_in_office: bool) -> None:
    """Do nothing."""
    del controller_id, event, is_in_office


@define
class Steps:
    """Passes each step to its watchers."""

    trace: Trace
    _watchers: dict[Watcher, None] = field(factory=dict)
    _arrivals: dict[Arrival, None] = field(factory=dict)
    on_event: OnEvent = field(default=_ignore, kw_only=True)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with every step from now on, until it returns True."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """Stop calling `watcher`."""
        self._watchers.pop(watcher, None)

    def watch_arrivals(self, watcher: Arrival) -> None:
        """Call `watcher` for every controller request that arrives at a broker, until it returns True."""
        self._arrivals[watcher] = None

    def arrived(self, controller_id: int, broker_id: int) -> None:
        """Report the arrival of a request."""
        for watcher in list(self._arrivals):
            if watcher(controller_id, broker_id):
                self._arrivals.pop(watcher, None)

    async def wait_for(self, matches: Callable[[ControllerStep], bool]) -> ControllerStep:
        """Wait for the next step that matches."""
        found: list[ControllerStep] = []
        seen = trio.Event()

        def watcher(step: ControllerStep) -> bool:
            if not found and matches(step):
                found.append(step)
                seen.set()
            return bool(found)

        self.watch(watcher)
        try:
            await seen.wait()
        finally:
            self.unwatch(watcher)
        return found[0]

    def happened(self, step: ControllerStep) -> None:
        """Report a step."""
        self.trace.add("round", f"controller-{step.controller_id}", step.text())
        for watcher in list(self._watchers):
            if watcher(step):
                self.unwatch(watcher)


@frozen
class StepObserver(Observer):
    """One controller's observer."""

    controller_id: int
    steps: Steps
    is_in_office: Callable[[], bool]

    def processing(self, event: str) -> None:
        """Trace an event that the controller processes."""
        self.steps.trace.add("event", f"controller-{self.controller_id}", event)
        # The end of the session interrupts the event before it.
        is_in_office = self.is_in_office() and event != SessionEnded.__name__
        self.steps.on_event(self.controller_id, event, is_in_office=is_in_office)

    def decided(self, decision: DecidedRound) -> None:
        """Report a decision."""
        self._show(decision, Moment.DECIDED)

    def committed(self, commit: CommittedRound) -> None:
        """Report a commit."""
        subjects = tuple(state.tp for state in commit.partitions)
        step = ControllerStep(
            self.controller_id, commit.event, commit.round, Moment.COMMITTED, subjects, commit.partitions
        )
        self.steps.happened(step)

    def published(self, publication: PublishedRound) -> None:
        """Report a publication."""
        self._show(publication, Moment.PUBLISHED)

    def _show(self, of: DecidedRound | PublishedRound, moment: Moment) -> None:
        self.steps.happened(ControllerStep(self.controller_id, of.event, of.round, moment, of.subjects))
