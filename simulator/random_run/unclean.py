"""Draws topics whose ISRs shrink and die, and the unclean elections that are asked for or allowed meanwhile.

In most of them, some partitions keep a live member of the ISR, which an unclean election of the others must not pass
over.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import define

from simulator.actions.processes import Crash, KeepOutOfIsr, Start
from simulator.actions.requests import AlterTopic, CreateTopic, Elect
from simulator.actions.scene import LEADER_OF, SAME, Node
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.skews import pick
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport.dynamic_configs import UNCLEAN_LEADER_ELECTION_ENABLE
from transport.messages import ElectionType

_CHANCE_OF_ONE_OF_ITS_OWN: Final = 0.75
_MOST_REPLICAS: Final = 4
_CHANCE_OF_ALL: Final = 0.2
_CHANCE_ALLOWED: Final = 0.7
_CHANCE_NOTICED: Final = 0.6

_DEATHS: Final = ((6, "the leader of all"), (3, "the ISR of one"), (2, "all but one"), (1, "nobody"))


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw the disaster of a topic and the unclean elections for it, for the time until `seconds`."""
    lag = settings.replica_lag_time
    begins = rng.uniform(0.0, max(seconds - lag - 4, 0.5))
    disaster = _Disaster(rng, partitions, begins, dies=begins + lag * rng.uniform(0.5, 1.2), ends=seconds - 0.5)
    topic = rng.choice(sorted(partitions)).rpartition("-")[0]
    happenings = []
    if rng.random() < _CHANCE_OF_ONE_OF_ITS_OWN:
        topic = f"fragile{rng.randrange(1000)}"
        created = _fragile(rng, settings, topic)
        happenings.append(Happening(begins, None, created))
        rows = {f"{topic}-{number}": row for number, row in enumerate(created.assignment)}
    else:
        rows = {name: row for name, row in partitions.items() if name.rpartition("-")[0] == topic and len(row) > 1}
    return [*happenings, *disaster.of(topic, rows)] if rows else []


def _fragile(rng: random.Random, settings: Settings, topic: str) -> CreateTopic:
    """Return a topic whose partitions all have the same preferred leader."""
    leader, *others = rng.sample(settings.broker_ids, settings.brokers)
    factors = [rng.randint(1, min(_MOST_REPLICAS, settings.brokers) - 1) for _ in range(rng.randint(2, 4))]
    return CreateTopic(topic, tuple((leader, *rng.sample(others, factor)) for factor in factors))


@define
class _Disaster:
    rng: random.Random
    partitions: Mapping[str, Replicas]
    begins: float
    dies: float
    ends: float

    def of(self, topic: str, rows: Mapping[str, Replicas]) -> list[Happening]:
        """Return what happens to some partitions of a topic."""
        deaths = [happening for node in self._dying(rows) for happening in self._death(node)]
        return [*self._permissions(topic), *map(self._shrink, rows, rows.values()), *deaths, *self._requests(rows)]

    def _shrink(self, name: str, replicas: Replicas) -> Happening:
        """Return what keeps some of the followers out of the ISR for a while: all, all except the last, or any."""
        followers = replicas[1:]
        some = tuple(sorted(self.rng.sample(followers, self.rng.randint(0, len(followers)))))
        outside = pick(self.rng, ((3, followers), (3, followers[:-1]), (2, some)))
        seconds = self.rng.uniform(6.0, 25.0)
        kept_out = Lasting(KeepOutOfIsr({name: outside}), seconds, (KeepOutOfIsr({name: ()}),))
        return Happening(self.begins, None, kept_out)

    def _death(self, node: Node) -> list[Happening]:
        crash = Crash(node, noticed=self.rng.random() < _CHANCE_NOTICED)
        lasting = Lasting(crash, self.rng.choice((1.0, 4.0, 12.0)) * self.rng.uniform(0.5, 1.5), (Start(SAME),))
        return [Happening(self.dies + self.rng.choice((0.0, 0.01, 0.5)), None, lasting)]

    def _dying(self, rows: Mapping[str, Replicas]) -> tuple[Node, ...]:
        name = self.rng.choice(sorted(rows))
        match pick(self.rng, _DEATHS):
            case "the leader of all":
                return (LEADER_OF + name,)
            case "the ISR of one":
                # Each next leader comes from the ISR, until it has no live member.
                return (LEADER_OF + name,) * len(rows[name])
            case "all but one":
                return tuple(self.rng.sample(rows[name], len(rows[name]) - 1))
            case _:
                return ()

    def _permissions(self, topic: str) -> list[Happening]:
        if self.rng.random() > _CHANCE_ALLOWED:
            return []
        allow = AlterTopic({self.rng.choice((topic, topic, "")): {UNCLEAN_LEADER_ELECTION_ENABLE: "true"}})
        return [Happening(self.rng.uniform(self.begins + 0.1, self.dies + 1.0), None, allow)]

    def _requests(self, rows: Mapping[str, Replicas]) -> list[Happening]:
        happenings = []
        for _ in range(self.rng.choice((0, 1, 1, 2, 3))):
            at = self.dies + self.rng.choice((0.0, 0.02, 0.5, 3.0, 8.0)) * self.rng.uniform(0.5, 1.5)
            happenings.append(Happening(min(at, self.ends), None, self._election(rows)))
        return happenings

    def _election(self, rows: Mapping[str, Replicas]) -> Elect:
        if self.rng.random() < _CHANCE_OF_ALL:
            return Elect(ElectionType.UNCLEAN, None)
        # Others among them have no need of an election.
        count = min(len(self.partitions), self.rng.choice((0, 0, 1, 2)))
        others = self.rng.sample(sorted(self.partitions), count)
        return Elect(ElectionType.UNCLEAN, tuple(sorted({*rows, *others})))
