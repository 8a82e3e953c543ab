"""Check that the end of a controller's session interrupts everything: it processes no other event and takes no step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio
from attrs import define, field

from controller.embedding import OpenStore
from controller.events import Elect, SessionEnded
from simulator.settings import host_of
from simulator.steps import ControllerStep
from transport.store.protocol import MetadataStore, SessionChanged, SessionState, StoreEvent

_INTERRUPTING: Final = (SessionEnded.__name__, Elect.__name__)
"""The events that may come next: a controller whose commit fails because its session has ended stands again."""


@define
class Sessions:
    """The controllers that have been told that their session has ended, and have not processed that."""

    _serving: dict[str, None] = field(factory=dict, init=False)
    """The controllers that have processed an event since they were started."""

    _ended: dict[str, float] = field(factory=dict, init=False)
    on_event: Callable[[str, StoreEvent], object] = field(default=lambda _host, _event: None, kw_only=True)
    """Called with each event of a controller's store before the controller has it, and with the controller's host."""

    @asynccontextmanager
    async def watched(self, host: str, open_store: OpenStore) -> AsyncIterator[MetadataStore]:
        """Hold the session of a controller that is being started; its end is recorded before the controller hears."""
        self._serving.pop(host, None)
        self._ended.pop(host, None)
        async with open_store() as store:
            store.subscribe(partial(self.changed, host))
            yield store

    def changed(self, host: str, event: StoreEvent) -> None:
        """Record what a controller is told about its session."""
        self.on_event(host, event)
        if event == SessionChanged(SessionState.EXPIRED) and host in self._serving:
            self._ended.setdefault(host, trio.current_time())

    def began_event(self, controller_id: int, event: str) -> Iterator[str]:
        """Check which event a controller processes next."""
        host = host_of(controller_id)
        self._serving[host] = None
        if host in self._ended and event not in _INTERRUPTING:
            yield f"{host} processed {event}, although its session had ended at {self._ended[host]:.3f} s"
        self._ended.pop(host, None)

    def stepped(self, step: ControllerStep) -> Iterator[str]:
        """Check a step; one whose awaited answer had arrived may come at the same moment as the end."""
        host = host_of(step.controller_id)
        ended_at = self._ended.get(host)
        if ended_at is not None and trio.current_time() > ended_at:
            yield f"{host} {step.moment.value} round {step.round}, although its session had ended at {ended_at:.3f} s"
