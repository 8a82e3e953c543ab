"""Draws reads that a controller must not answer from what it knows: it was stopped, is cut off, or has more to read."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import define

from simulator.actions.processes import Crash, Start, Suspend, Wake
from simulator.actions.requests import Elect, ReadFrom
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME
from simulator.actions.sessions import Disconnect, Reconnect, SlowCommits, lose_answer
from simulator.random_run import topology
from simulator.random_run.happenings import CreateAndRead, Happening, InTurn, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport.messages import ElectionType
from transport.store import paths

_TIME_NEEDED: Final = 4.0
"""The seconds that the story of a creation takes."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few stories for the time until `seconds`."""
    stories = _Stories(rng, settings, sorted(partitions))
    happenings: list[Happening] = []
    for _ in range(rng.randint(1, 3)):
        (story,) = rng.choices((stories.stopped, stories.cut_off, stories.creation), (2, 2, 2))
        happenings += story(rng.uniform(0.5, max(seconds - _TIME_NEEDED, 1.0)))
    return happenings


@define
class _Stories:
    rng: random.Random
    settings: Settings
    partitions: list[str]

    def stopped(self, at: float) -> list[Happening]:
        """Return a stop of the controller, about as long as a session lasts, and a read that waits for its end."""
        seconds = self.settings.session_timeout * self.rng.uniform(0.5, 2.0)
        stop = Suspend(CONTROLLER, loses_session=True)
        return [Happening(at, None, Lasting(stop, seconds, (ReadFrom(SAME), Wake(SAME))))]

    def cut_off(self, at: float) -> list[Happening]:
        """Return reads from a controller that cannot reach the store, right after an event that others need not await.

        An election that is not needed changes nothing, so that no other event follows it.
        """
        timeout = self.settings.session_timeout
        reads = ReadFrom(SAME, times=10, every=timeout / 8)
        away = InTurn((Disconnect(CONTROLLER), reads))
        seconds = timeout * self.rng.uniform(0.6, 1.6)
        return [
            Happening(at, None, Elect(ElectionType.PREFERRED, None)),
            Happening(at + self.rng.uniform(0.02, 0.2), None, Lasting(away, seconds, (Reconnect(SAME),))),
        ]

    def creation(self, at: float) -> list[Happening]:
        """Return a creation with a lost answer, while the loss of a leader takes the controller long, and reads."""
        name = f"late{self.rng.randrange(1000)}"
        new = topology.draw_topic(self.rng, self.settings, name)
        lost = InTurn((SlowCommits(self.rng.uniform(0.2, 0.6)), lose_answer(CONTROLLER, path=paths.topic(name))))
        crash = Crash(LEADER_OF + self.rng.choice(self.partitions), noticed=True)
        crash_at = at + self.rng.uniform(0.05, 0.3)
        gone = Lasting(crash, self.rng.uniform(2.0, 6.0), (Start(SAME),))
        return [
            Happening(at, None, Lasting(lost, _TIME_NEEDED, (SlowCommits(0),))),
            Happening(at + 0.01, None, CreateAndRead(new)),
            Happening(crash_at, None, gone),
        ]
