"""Rollouts, as administrators start them and give orders to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from attrs import frozen

from simulator.actions.scene import CannotBeDone, Request, Scene
from simulator.administration import ADMIN, partition_named
from transport.messages import (
    ChangeRolloutRequest,
    Request as Message,
    RolloutChanges,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    UploadRolloutRequest,
)

R = TypeVar("R")

_USUAL: Final = RolloutSettings()


@frozen
class StartRollout(Request):
    """Start a rollout that moves partitions, by name, to these replicas; those that cannot be moved are left out."""

    name: str
    targets: Mapping[str, tuple[int, ...]]
    into: int = _USUAL.into
    out_of: int = _USUAL.out_of
    leaders: int = _USUAL.leaders
    in_all: int = _USUAL.in_all
    throttle: int = _USUAL.throttle
    bytes: int = _USUAL.bytes
    pause_file: str = _USUAL.pause_file

    async def ask(self, scene: Scene) -> None:
        """Upload the plan, and start it."""
        scene.cluster.trace.add("admin", ADMIN, f"starts rollout {self.name}: {dict(self.targets)}")
        moves = tuple(RolloutMove(*partition_named(name), target, size=1000) for name, target in self.targets.items())
        await _ask(scene, UploadRolloutRequest(self.name, "digest", 0, moves, skips=True))
        limits = self.into, self.out_of, self.leaders, self.in_all, self.bytes
        settings = RolloutSettings(*limits, throttle=self.throttle, pause_file=self.pause_file)
        await _ask(scene, StartRolloutRequest(self.name, "digest", len(moves), settings, "admin"))


@frozen
class OrderRollout(Request):
    """Give an order to a rollout, perhaps with other limits and another throttle."""

    name: str
    order: RolloutOrder
    into: int | None = None
    out_of: int | None = None
    leaders: int | None = None
    in_all: int | None = None
    throttle: int | None = None

    async def ask(self, scene: Scene) -> None:
        """Give the order."""
        scene.cluster.trace.add("admin", ADMIN, f"orders rollout {self.name} to {self.order.value}")
        changes = RolloutChanges(self.into, self.out_of, self.leaders, self.in_all, throttle=self.throttle)
        await _ask(scene, ChangeRolloutRequest(self.name, self.order, changes, by="admin"))


async def _ask(scene: Scene, request: Message[R]) -> R:
    active = scene.cluster.active_controller
    if active is None:
        raise CannotBeDone("there is no controller now")
    return await scene.cluster.ask(active, request)
