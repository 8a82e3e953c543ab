"""Draws records that belong to somebody else for a while: ids of producers, strays, markers and notifications.

An ACL forbids controllers to write them, and what depends on such a write happens meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import define

from simulator.actions.placements import PlaceTopic
from simulator.actions.processes import Crash, Start
from simulator.actions.producer_ids import AskForProducerIds
from simulator.actions.requests import CreateTopic, Reassign
from simulator.actions.scene import CONTROLLER, SAME, Strike
from simulator.actions.znodes import Allow, AssignStrays, MarkForDeletion, NotifyIsrChange, NotifyLogDir
from simulator.random_run.happenings import Happening, InTurn, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport.store import paths
from transport.store.tree import Access

_WEIGHTS: Final = (3, 3, 2, 2)

_CATCHES_UP: Final = 4.0
"""Seconds in which a replica that starts from nothing is usually in the ISR."""

_CHANCE_OF_TAKEOVER: Final = 0.5
_CHANCE_OF_NO_ACCESS: Final = 0.3


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw some of them for the time until `seconds`, and requests for ids of producers throughout."""
    drawer = _Drawer(rng, settings, partitions, seconds)
    happenings = [drawer.asks(rng.uniform(0.3, seconds - 1)) for _ in range(rng.randint(1, 3))]
    subjects = drawer.ids, drawer.markers, drawer.strays, drawer.notifications
    for subject in rng.choices(subjects, _WEIGHTS, k=rng.randint(1, 3)):
        happenings += subject()
    return happenings


@define
class _Drawer:
    rng: random.Random
    settings: Settings
    partitions: Mapping[str, Replicas]
    seconds: float

    def asks(self, at: float) -> Happening:
        """Return the request of a broker for ids."""
        return Happening(at, None, AskForProducerIds(self.rng.choice(self.settings.broker_ids)))

    def ids(self) -> Iterator[Happening]:
        """Yield requests for ids while they cannot be recorded."""
        at, lasts = self._interval(0.5)
        access = Access.NONE if self.rng.random() < _CHANCE_OF_NO_ACCESS else Access.READ
        yield Happening(at, None, _closed(paths.PRODUCER_IDS, access, lasts))
        for _ in range(self.rng.randint(2, 4)):
            yield self.asks(at + self.rng.uniform(0.0, lasts + 0.5))
        yield from self._takeover(at, lasts)

    def markers(self) -> Iterator[Happening]:
        """Yield a marker that cannot be removed, and a topic of its name that somebody creates later."""
        at, lasts = self._interval(1.5)
        closed = _closed(paths.DELETE_TOPICS, Access.READ, lasts)
        yield Happening(at, None, InTurn((MarkForDeletion("late"), closed)))
        replicas = tuple(self.rng.sample(self.settings.broker_ids, 2))
        created = at + self.rng.uniform(0.2, 1.0)
        yield Happening(created, None, PlaceTopic((CreateTopic("late", (replicas,)),)))
        yield from self._takeover(created, lasts)

    def strays(self) -> Iterator[Happening]:
        """Yield a removed replica that somebody assigns again, while its record cannot be removed.

        Its broker is away meanwhile. The second controller after that finds it in the ISR.
        """
        able = [name for name, replicas in sorted(self.partitions.items()) if len(replicas) > 1]
        at, lasts = self._interval(_CATCHES_UP + 3)
        if not able:
            return
        name = self.rng.choice(able)
        *kept, removed = self.partitions[name]
        away = self.rng.uniform(1.5, 2.5)
        yield Happening(at, None, Lasting(Crash(removed, noticed=True), away, (Start(SAME),)))
        yield Happening(at + self.rng.uniform(0.1, 0.3), None, Reassign({name: tuple(kept)}))
        yield Happening(at + 0.9, None, _closed(paths.STRAYS, Access.READ, lasts))
        yield Happening(at + 1.0, None, AssignStrays(name.rpartition("-")[0]))
        # The first controller must not have had the time to write back what it knew.
        for later in (1.001, away + self.rng.uniform(1.0, _CATCHES_UP)):
            yield Happening(at + later, None, _takeover(self.rng.uniform(0.5, 1.0)))

    def notifications(self) -> Iterator[Happening]:
        """Yield notifications that cannot be removed."""
        at, lasts = self._interval(0.5)
        # Brokers of old releases write below the same parents, and do not expect to be refused.
        if self.settings.releases:
            return
        notice: Strike = NotifyIsrChange((self.rng.choice(sorted(self.partitions)),))
        parent = paths.ISR_CHANGE_NOTIFICATION
        if self.rng.random() < 0.5:  # noqa: PLR2004  as often
            notice, parent = NotifyLogDir(self.rng.choice(self.settings.broker_ids)), paths.LOG_DIR_EVENT_NOTIFICATION
        yield Happening(at, None, InTurn((notice, _closed(parent, Access.READ, lasts))))
        yield from self._takeover(at, lasts)

    def _interval(self, least: float) -> tuple[float, float]:
        """Return when something begins and how long it lasts, within the time of the run if possible."""
        at = self.rng.uniform(0.3, max(self.seconds - least - 1, 0.5))
        return at, least + self.rng.choice((0.5, 2.0, 6.0)) * self.rng.random()

    def _takeover(self, at: float, lasts: float) -> Iterator[Happening]:
        if self.rng.random() < _CHANCE_OF_TAKEOVER:
            yield Happening(at + self.rng.uniform(0.1, lasts), None, _takeover(self.rng.uniform(0.5, 4.0)))


def _closed(path: str, access: Access, seconds: float) -> Lasting:
    return Lasting(Allow(path, access), seconds, (Allow(path, Access.ALL),))


def _takeover(seconds: float) -> Lasting:
    return Lasting(Crash(CONTROLLER, noticed=True), seconds, (Start(SAME),))
