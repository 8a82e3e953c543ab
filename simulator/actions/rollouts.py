"""Rollouts, as administrators start them and give orders to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from attrs import field, frozen

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


@frozen
class StartRollout(Request):
    """Start a rollout that moves partitions, by name, to these replicas; those that cannot be moved are left out."""

    name: str
    targets: Mapping[str, tuple[int, ...]]
    settings: RolloutSettings = field(factory=RolloutSettings)

    async def ask(self, scene: Scene) -> None:
        """Upload the plan, and start it."""
        scene.cluster.trace.add("admin", ADMIN, f"starts rollout {self.name}: {dict(self.targets)}")
        moves = tuple(RolloutMove(*partition_named(name), target, size=1000) for name, target in self.targets.items())
        await _ask(scene, UploadRolloutRequest(self.name, "digest", 0, moves, skips=True))
        await _ask(scene, StartRolloutRequest(self.name, "digest", len(moves), self.settings, "admin"))


@frozen
class OrderRollout(Request):
    """Give an order to a rollout, perhaps with changes of its settings."""

    name: str
    order: RolloutOrder
    changes: RolloutChanges = field(factory=RolloutChanges)
    without_dead: bool = False

    async def ask(self, scene: Scene) -> None:
        """Give the order."""
        scene.cluster.trace.add("admin", ADMIN, f"orders rollout {self.name} to {self.order.value}")
        await _ask(scene, ChangeRolloutRequest(self.name, self.order, self.changes, self.without_dead, "admin"))


async def _ask(scene: Scene, request: Message[R]) -> R:
    active = scene.cluster.active_controller
    if active is None:
        raise CannotBeDone("there is no controller now")
    return await scene.cluster.ask(active, request)
