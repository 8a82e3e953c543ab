"""Draws an administrator's other tasks in a random run, through the api and by hand in the store."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import define

from simulator.actions.requests import AlterTopic
from simulator.actions.scene import Action
from simulator.actions.znodes import NotifyIsrChange, NotifyLogDir, WriteElection
from simulator.random_run import topology
from simulator.random_run.happenings import AtStep, Happening, Replace
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment
from transport.dynamic_configs import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE

_CHANCE_AT_STEP: Final = 0.3
_ROUNDS: Final = ("elect", "leave", "U1", "B3", "B4", "mark", "delete", "stop", "remove")


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a handful of requests and notifications for the time until `seconds`."""
    keeper = _Keeper(rng, settings, sorted(partitions))
    return [keeper.happening(rng.uniform(0.5, seconds - 1)) for _ in range(rng.randint(0, 3))]


@define
class _Keeper:
    rng: random.Random
    settings: Settings
    partitions: list[str]

    def happening(self, at: float) -> Happening:
        """Return a request or notification at that time, or at a step from then on."""
        draws = (
            (3, self._delete),
            (1, lambda: WriteElection(self._some())),
            (3, self._alter),
            (2, self._notify),
        )
        make = self.rng.choices([make for _, make in draws], [weight for weight, _ in draws])[0]
        step = None
        if self.rng.random() < _CHANCE_AT_STEP:
            step = AtStep(self.rng.choice(_ROUNDS), Moment.DECIDED, self.rng.choice((0.0, 0.001, 0.1)))
        return Happening(at, step, make())

    def _delete(self) -> Action:
        name = self._topic()
        again = topology.draw_topic(self.rng, self.settings, name)
        return Replace(again, by_hand=self.rng.random() < 0.5)  # noqa: PLR2004  as often

    def _alter(self) -> Action:
        # Mostly of one topic: where all topics may lose records, few checks remain.
        topic = "" if self.rng.random() < 0.1 else self._topic()  # noqa: PLR2004
        if self.rng.random() < 0.7:  # noqa: PLR2004
            value = self.rng.choice(("true", "true", "false", None))
            return AlterTopic({topic: {UNCLEAN_LEADER_ELECTION_ENABLE: value}})
        return AlterTopic({topic: {MIN_INSYNC_REPLICAS: self.rng.choice(("1", "2", None))}})

    def _notify(self) -> Action:
        if self.rng.random() < 0.5:  # noqa: PLR2004
            return NotifyIsrChange(self._some())
        return NotifyLogDir(self.rng.choice(self.settings.broker_ids))

    def _some(self) -> tuple[str, ...]:
        return tuple(sorted(self.rng.sample(self.partitions, min(2, len(self.partitions)))))

    def _topic(self) -> str:
        return self.rng.choice(self.partitions).rpartition("-")[0]
