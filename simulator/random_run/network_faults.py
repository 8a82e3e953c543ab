"""Draws faults of single requests and connections: late, repeated, torn, silent in one direction, refused, ignored."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from attrs import define, evolve

from simulator.actions.network import (
    DelayRequest,
    IgnoreConnections,
    RefuseConnections,
    ServeConnections,
    SilenceConnections,
    Slow,
    TearRequest,
)
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME, Node, Strike
from simulator.random_run.faults import draw_kinds
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings

_CHANCE_AT_STEP: Final = 0.5
_ORDERS: Final = (None, "LeaderAndIsr", "LeaderAndIsr", "StopReplica", "UpdateMetadata")
_QUESTIONS: Final = ("AlterPartition", "AlterPartition", "AlterPartition", "ControlledShutdown")


def draw_settings(rng: random.Random, settings: Settings) -> Settings:
    """Draw how soon a broker repeats a request to the controller."""
    return evolve(settings, controller_timeout=rng.choice((0.5, 1.0, 2.0, 5.0, 30.0)))


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few faults for the time until `seconds`."""
    maker = _Maker(rng, settings, sorted(partitions))
    return draw_kinds(rng, maker.kinds(), seconds, (1, 6), _CHANCE_AT_STEP)


@define
class _Maker:
    rng: random.Random
    settings: Settings
    partitions: list[str]

    def kinds(self) -> tuple[tuple[float, Callable[[], Strike]], ...]:
        """Return the kinds of faults, with their weights."""
        return (8, self._late), (2, self._torn), (2, self._silent), (3, self._closed), (2, self._uneven)

    def _late(self) -> Strike:
        seconds, breaks = self.rng.choice((0.3, 1.0, 4.0)) * self.rng.uniform(0.5, 1.5), self.rng.random() < 0.7  # noqa: PLR2004
        if self.rng.random() < 0.5:  # noqa: PLR2004  as often
            api = self.rng.choice(_QUESTIONS)
            return DelayRequest(self._asker(), seconds, breaks, receivers=self.settings.controller_ids, api=api)
        return DelayRequest(CONTROLLER, seconds, breaks, receivers=self._ordered(), api=self.rng.choice(_ORDERS))

    def _torn(self) -> Strike:
        if self.rng.random() < 0.5:  # noqa: PLR2004  as often
            return TearRequest(self._asker(), receivers=self.settings.controller_ids)
        return TearRequest(CONTROLLER, receivers=self._ordered(), api=self.rng.choice(_ORDERS))

    def _silent(self) -> Strike:
        pair: list[Node] = [*self.rng.sample(self._nodes(), 2)]
        if self.rng.random() < 0.6:  # noqa: PLR2004  mostly where orders or their answers are lost
            pair = [self.rng.choice(self._ordered()), CONTROLLER]
            self.rng.shuffle(pair)
        return SilenceConnections(pair, one_way=self.rng.random() < 0.7)  # noqa: PLR2004

    def _closed(self) -> Strike:
        nodes: list[Node] = [CONTROLLER, *self._nodes()]
        node = self.rng.choice(nodes)
        closed = self.rng.choice((RefuseConnections(node), IgnoreConnections(node)))
        seconds = self.rng.choice((0.5, 4.0)) * self.rng.uniform(0.5, 1.5)
        return Lasting(closed, seconds, (ServeConnections(SAME),))

    def _uneven(self) -> Strike:
        jitter = self.rng.choice((0.01, 0.1, 1.0))
        slow = Slow(self.rng.choice(self._nodes()), self.settings.latency, jitter=jitter)
        return Lasting(slow, self.rng.uniform(1.0, 10.0), (evolve(slow, bytes_per_second=None),))

    def _asker(self) -> Node:
        leader = LEADER_OF + self.rng.choice(self.partitions)
        return self.rng.choice((leader, leader, self.rng.choice(self.settings.broker_ids)))

    def _ordered(self) -> tuple[Node, ...]:
        """Return the brokers whose orders are struck: all, or one."""
        leader = LEADER_OF + self.rng.choice(self.partitions)
        one = self.rng.choice((leader, self.rng.choice(self.settings.broker_ids)))
        return self.rng.choice((self.settings.broker_ids, (one,)))

    def _nodes(self) -> list[int]:
        return [*self.settings.broker_ids, *self.settings.controller_ids]
