"""Draws brokers that refuse orders or take long for them, and controllers that refuse requests."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from attrs import define

from simulator.actions.processes import (
    SERVICE_CALLS,
    AnswerRequests,
    Crash,
    FailOrders,
    Hesitate,
    ObeyOrders,
    RefuseOrders,
    RefuseRequests,
    Start,
)
from simulator.actions.requests import DeleteTopic, Elect, Reassign
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME, Action, Node, Request, Strike
from simulator.random_run.faults import draw_kinds
from simulator.random_run.happenings import Happening, Lasting, Leave
from simulator.random_run.requests import elsewhere
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport.errors import ErrorCode
from transport.messages import ElectionType

_CHANCE_AT_STEP: Final = 0.5

_ORDERS: Final = (
    ("LeaderAndIsr",),
    ("StopReplica",),
    ("UpdateMetadata",),
    ("LeaderAndIsr", "StopReplica", "UpdateMetadata"),
)
_REFUSED: Final = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.STALE_BROKER_EPOCH,
    ErrorCode.STALE_CONTROLLER_EPOCH,
    ErrorCode.INVALID_REQUEST,
)
_OF_A_PARTITION: Final = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.FENCED_LEADER_EPOCH)

_OF_BROKERS: Final = (("AlterPartition",), ("AlterPartition",), ("ControlledShutdown",))
_OF_ADMINS: Final = (
    ("AlterPartitionReassignments",),
    ("ElectLeaders",),
    ("CreateTopics", "CreatePartitions", "DeleteTopics"),
)
_UNCERTAIN: Final = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT)
"""Errors that say nothing of whether a request was carried out."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few refusals for the time until `seconds`."""
    maker = _Maker(rng, settings, partitions)
    return draw_kinds(rng, maker.kinds(), seconds, (2, 6), _CHANCE_AT_STEP)


def draw_refused_deletions(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw the deletion of a topic, or of replicas after a move, that live brokers refuse for a while."""
    at, name = rng.uniform(0.5, seconds - 3), rng.choice(sorted(partitions))
    replicas = partitions[name]
    refusing = rng.sample(replicas, rng.randint(1, len(replicas)))
    refusal: Strike = RefuseOrders(dict.fromkeys(refusing, (name,)), rng.choice(_OF_A_PARTITION))
    end: tuple[Strike, ...] = (ObeyOrders(refusing),)
    if rng.random() < 0.5:  # noqa: PLR2004  as often
        refusal = RefuseRequests(refusing, ("StopReplica",), rng.choice((None, *_REFUSED)))
        end = (AnswerRequests(SAME), *end)
    asked: Request = DeleteTopic(name.rpartition("-")[0])
    if rng.random() < 0.3:  # noqa: PLR2004  less often
        asked = Reassign({name: elsewhere(rng, settings, replicas)})
    lasting = Lasting(refusal, rng.uniform(0.5, 10.0), end)
    return [Happening(at, None, lasting), Happening(at + rng.uniform(0.01, 0.5), None, asked)]


def draw_failing_services(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw services that raise for partitions, once or for a time, and elections that make brokers lead and follow."""
    del settings
    happenings: list[Happening] = []
    for _ in range(rng.randint(1, 3)):
        # What fails last is mended by no other event.
        at = rng.choice((rng.uniform(0.2, seconds - 2), rng.uniform(seconds - 3, seconds - 0.5)))
        name = rng.choice(sorted(partitions))
        replicas = partitions[name]
        # One replica fails, or some, or all.
        failing = rng.sample(replicas, rng.choice((1, rng.randint(1, len(replicas)), len(replicas))))
        brokers: list[Node] = [*failing] if rng.random() < 0.7 else [LEADER_OF + name]  # noqa: PLR2004  mostly
        calls = rng.choice((SERVICE_CALLS, *[(call,) for call in SERVICE_CALLS], SERVICE_CALLS[:1]))
        times = rng.choice((1, 1, 2, None))
        fault = FailOrders(dict.fromkeys(brokers, (name,)), calls, times)
        lasting = Lasting(fault, rng.choice((1.0, 6.0, 15.0)) * rng.uniform(0.5, 1.5), (ObeyOrders(SAME),))
        happenings.append(Happening(at, None, lasting))
        cause: Action = Elect(ElectionType.PREFERRED, (), {name: tuple(rng.sample(replicas, len(replicas)))})
        if rng.random() < 0.4:  # noqa: PLR2004  often
            cause = Leave(LEADER_OF + name, rng.uniform(0.5, 4.0), rng.random() < 0.2)  # noqa: PLR2004
        elif rng.random() < 0.3:  # noqa: PLR2004
            cause = Lasting(Crash(LEADER_OF + name, noticed=True), rng.uniform(0.5, 4.0), (Start(SAME),))
        happenings.append(Happening(at + rng.uniform(0.0, 0.5), None, cause))
    return happenings


@define
class _Maker:
    rng: random.Random
    settings: Settings
    partitions: Mapping[str, Replicas]

    def kinds(self) -> tuple[tuple[float, Callable[[], Strike]], ...]:
        """Return the kinds of refusals, with their weights."""
        orders = ((4, self._orders), (2, self._one_partition), (2, self._hesitation))
        return *orders, (4, self._asked), (2, self._admins)

    def _orders(self) -> Strike:
        rng = self.rng
        error = rng.choice((None, *_REFUSED))
        # An order that is carried out and then answered with a stale epoch cannot happen.
        carried_out = rng.random() < 0.5 and (error is None or error in _UNCERTAIN)  # noqa: PLR2004
        refusal = RefuseRequests(self._broker(), rng.choice(_ORDERS), error, carried_out)
        return Lasting(refusal, self._time(), (AnswerRequests(SAME), ObeyOrders(SAME)))

    def _one_partition(self) -> Strike:
        name = self.rng.choice(sorted(self.partitions))
        brokers: list[Node] = [LEADER_OF + name, *self.partitions[name]]
        broker = self.rng.choice(brokers)
        refusal = RefuseOrders({broker: (name,)}, self.rng.choice(_OF_A_PARTITION))
        return Lasting(refusal, self._time(), (ObeyOrders(SAME),))

    def _hesitation(self) -> Strike:
        """Return a slowness that may be longer than the controller waits for an answer."""
        return Lasting(Hesitate(self._broker(), self.rng.uniform(0.05, 3.0)), self._time(), (ObeyOrders(SAME),))

    def _asked(self) -> Strike:
        rng = self.rng
        error = rng.choice((None, *_UNCERTAIN, ErrorCode.NOT_CONTROLLER))
        carried_out = error is not ErrorCode.NOT_CONTROLLER and rng.random() < 0.5  # noqa: PLR2004  as often
        refusal = RefuseRequests(CONTROLLER, rng.choice(_OF_BROKERS), error, carried_out)
        return Lasting(refusal, self._time(), (AnswerRequests(SAME),))

    def _admins(self) -> Strike:
        error = self.rng.choice((None, *_UNCERTAIN))
        # An administrator takes an error for a refusal that changed nothing.
        carried_out = error is None and self.rng.random() < 0.5  # noqa: PLR2004  as often
        refusal = RefuseRequests(CONTROLLER, self.rng.choice(_OF_ADMINS), error, carried_out)
        return Lasting(refusal, self._time(), (AnswerRequests(SAME),))

    def _broker(self) -> Node:
        nodes: list[Node] = [LEADER_OF + self.rng.choice(sorted(self.partitions)), *self.settings.broker_ids]
        return self.rng.choice(nodes)

    def _time(self) -> float:
        return self.rng.choice((0.5, 4.0, 8.0)) * self.rng.uniform(0.5, 1.5)
