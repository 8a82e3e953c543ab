"""Draws requests that change nothing or must be refused, and requests for many things at once."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import define

from simulator.actions.processes import Crash, Start
from simulator.actions.proposals import Flaw, ProposeIsr
from simulator.actions.requests import (
    AddPartitions,
    AlterTopic,
    CreateTopic,
    DeleteTopic,
    Elect,
    Reassign,
    ValidatePartitions,
    ValidateTopics,
)
from simulator.actions.scene import SAME, Action
from simulator.random_run import topology
from simulator.random_run.happenings import AtStep, Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment
from transport.dynamic_configs import (
    LEADER_THROTTLED_REPLICAS,
    MAX_MESSAGE_BYTES,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
from transport.messages import ElectionType

_CHANCE_AT_STEP: Final = 0.4
_CHANCE_OF_DEAD_TARGET: Final = 0.5
_CHANCE_OF_PLACED: Final = 0.5
_CHANCE_OF_ALIKE: Final = 0.2
_ROUNDS: Final = ("U1", "B4", "B6", "topics", "grow", "mark", "delete", "remove", "order", "configs", "loaded")


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw some such requests for the time until `seconds`, some at steps of something else."""
    asker = _Asker(rng, settings, partitions)
    happenings = [asker.request(rng.uniform(0.5, seconds - 1)) for _ in range(rng.randint(1, 6))]
    if rng.random() < _CHANCE_OF_PLACED:
        happenings += asker.placed(rng.uniform(0.5, seconds / 2))
    if rng.random() < _CHANCE_OF_ALIKE:
        happenings += asker.alike(rng.uniform(0.5, seconds / 2))
    if rng.random() < _CHANCE_OF_DEAD_TARGET:
        happenings += asker.dead_target(rng.uniform(0.5, seconds / 2))
    return happenings


def draw_proposals(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw some proposals of ISRs that must be refused, for the time until `seconds`."""
    del settings
    names = sorted(partitions)
    happenings = []
    for _ in range(rng.randint(2, 8)):
        proposal = ProposeIsr(rng.choice(names), rng.choice(list(Flaw)))
        step = None
        if rng.random() < _CHANCE_AT_STEP:
            moment = rng.choice((Moment.COMMITTED, Moment.PUBLISHED))
            step = AtStep(rng.choice(("U1", "ISR", "B3", "B4", "elect", "expel")), moment, rng.choice((0.0, 0.001)))
        happenings.append(Happening(rng.uniform(0.5, seconds - 1), step, proposal))
    return happenings


@define
class _Asker:
    rng: random.Random
    settings: Settings
    partitions: Mapping[str, Replicas]

    def request(self, at: float) -> Happening:
        """Return a request at that time, or at a step from then on."""
        makers = (
            self._validate,
            self._validate_growth,
            self._exists,
            self._nowhere,
            self._many,
            self._alter,
        )
        step = None
        if self.rng.random() < _CHANCE_AT_STEP:
            step = AtStep(self.rng.choice(_ROUNDS), Moment.COMMITTED, self.rng.choice((0.0, 0.001, 0.01)))
        return Happening(at, step, self.rng.choice(makers)())

    def placed(self, at: float) -> list[Happening]:
        """Return a topic that the controller places, perhaps while brokers are dead, and its growth."""
        topic = CreateTopic("placed", (), self.rng.randint(1, 6), self.rng.randint(1, 4))
        later = at + self.rng.uniform(0.0, 5.0)
        grown = AddPartitions({topic.name: topic.partitions + self.rng.randint(1, 4)})
        happenings = [Happening(at, None, topic), Happening(later, None, grown)]
        if self.rng.random() < 0.5:  # noqa: PLR2004  as often
            crash = Lasting(Crash(self.rng.choice(self.settings.broker_ids), noticed=True), 5.0, (Start(SAME),))
            happenings.append(Happening(at - self.rng.uniform(0.0, 0.5), None, crash))
        return happenings

    def alike(self, at: float) -> list[Happening]:
        """Return two topics whose names metrics cannot tell apart, one after the other."""
        first, second = self.rng.sample(("a.b", "a_b"), 2)
        later = at + self.rng.choice((0.0, 0.01, 2.0))
        topics = (topology.draw_topic(self.rng, self.settings, name) for name in (first, second))
        return [Happening(when, None, topic) for when, topic in zip((at, later), topics, strict=True)]

    def dead_target(self, at: float) -> list[Happening]:
        """Return a move, a crash, and an override that adds the dead broker."""
        name, now = self.rng.choice(sorted(self.partitions.items()))
        others = [id_ for id_ in self.settings.broker_ids if id_ not in now]
        if not others:
            return []
        dead, other = self.rng.choice(others), self.rng.choice(others)
        later = at + self.settings.session_timeout + 1.0
        crash = Lasting(Crash(dead, noticed=self.rng.random() < 0.5), 10.0, (Start(SAME),))  # noqa: PLR2004  as often
        override = Reassign({name: (dead, *now[1:])})
        move = Happening(later - self.rng.choice((0.01, 0.1, 0.5)), None, Reassign({name: (*now, other)}))
        return [Happening(at, None, crash), move, Happening(later, None, override)]

    def _validate(self) -> Action:
        name = self.rng.choice((self._topic(), "checked"))
        return ValidateTopics((topology.draw_topic(self.rng, self.settings, name),))

    def _validate_growth(self) -> Action:
        return ValidatePartitions({self._topic(): self.rng.randint(1, 8)})

    def _exists(self) -> Action:
        return topology.draw_topic(self.rng, self.settings, self._topic())

    def _nowhere(self) -> Action:
        makers = (
            lambda: AddPartitions({"nowhere": 3}),
            lambda: AddPartitions({self._topic(): 1}),
            lambda: DeleteTopic(("nowhere",)),
            lambda: Elect(ElectionType.UNCLEAN, ("nowhere-0", self._partition())),
            lambda: Reassign({"nowhere-0": None, self._partition(): None}),
            lambda: AlterTopic({"nowhere": {MIN_INSYNC_REPLICAS: "1"}}),
            lambda: CreateTopic("uneven", ((1, 2), (3,))),
            lambda: CreateTopic("placed", (), self.rng.randint(1, 4), 99),
        )
        return self.rng.choice(makers)()

    def _many(self) -> Action:
        names = sorted(self.partitions)
        some = self.rng.sample(names, min(3, len(names)))
        targets = {name: self._target(name) for name in some}
        targets[self.rng.choice(some)] = self.rng.choice(((), (99,)))
        topics = tuple(dict.fromkeys(name.rpartition("-")[0] for name in some))
        makers = (lambda: Reassign(targets), lambda: Reassign(targets), lambda: DeleteTopic((*topics, "nowhere")))
        return self.rng.choice(makers)()

    def _alter(self) -> Action:
        values = (
            {MIN_INSYNC_REPLICAS: self.rng.choice(("0", "-1", "many"))},
            {UNCLEAN_LEADER_ELECTION_ENABLE: "perhaps", MIN_INSYNC_REPLICAS: "1"},
            {MAX_MESSAGE_BYTES: self.rng.choice(("100000", None)), MIN_INSYNC_REPLICAS: None},
            {LEADER_THROTTLED_REPLICAS: self.rng.choice(("*", "0:1,1:2", "x"))},
        )
        return AlterTopic({self._topic(): self.rng.choice(values)})

    def _target(self, name: str) -> Replicas:
        return topology.draw_replicas(self.rng, self.settings.broker_ids, len(self.partitions[name]))

    def _topic(self) -> str:
        return self._partition().rpartition("-")[0]

    def _partition(self) -> str:
        return self.rng.choice(sorted(self.partitions))
