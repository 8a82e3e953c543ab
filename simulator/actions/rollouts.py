"""Rollouts, as administrators start them and give orders to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import trio
from attrs import frozen

from controller.rollout.states import HeldBy, Phase
from simulator.actions.scene import CannotBeDone, Request, Scene
from simulator.administration import ADMIN, partition_named
from simulator.safety.invariants import PROMISED
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    ChangeRolloutRequest,
    Request as Message,
    RolloutChanges,
    RolloutDescription,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    UploadRolloutRequest,
)
from transport.wire import WireError

R = TypeVar("R")

_USUAL: Final = RolloutSettings()

_ATTEMPTS: Final = 20
_AGAIN_SECONDS: Final = 0.5
_NO_CONTROLLER: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT})


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
    go_url: str = _USUAL.go_url
    adapts: bool = _USUAL.adapts

    async def ask(self, scene: Scene) -> None:
        """Upload the plan, and start it; both again if the controller died in between."""
        scene.cluster.trace.add("admin", ADMIN, f"starts rollout {self.name}: {dict(self.targets)}")
        try:
            await self._start(scene)
        except ApiError as refusal:
            if refusal.code is not ErrorCode.INVALID_REQUEST:
                raise
            await self._start(scene)

    async def _start(self, scene: Scene) -> None:
        moves = tuple(RolloutMove(*partition_named(name), target, size=1000) for name, target in self.targets.items())
        await _ask(scene, UploadRolloutRequest(self.name, "digest", 0, moves, skips=True))
        limits = self.into, self.out_of, self.leaders, self.in_all, self.bytes
        settings = RolloutSettings(
            *limits, throttle=self.throttle, pause_file=self.pause_file, go_url=self.go_url, adapts=self.adapts
        )
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
        answer = await _ask(scene, ChangeRolloutRequest(self.name, self.order, changes, by="admin"))
        if not self._is_carried_out(answer.rollout):
            text = f"rollout {self.name} was ordered to {self.order.value}, and is {answer.rollout}"
            scene.cluster.world.safety.report(PROMISED, text)

    def _is_carried_out(self, rollout: RolloutDescription | None) -> bool:
        """Return whether a rollout is as an order wants it that was answered with success."""
        if self.order is RolloutOrder.REMOVE or rollout is None:
            return self.order is RolloutOrder.REMOVE and rollout is None
        match self.order:
            case RolloutOrder.PAUSE:
                return HeldBy.OPERATOR.value in rollout.holds
            case RolloutOrder.RESUME:
                return HeldBy.OPERATOR.value not in rollout.holds
            case RolloutOrder.ABORT:
                return Phase(rollout.phase) in {Phase.ABORTING, Phase.ABORTED}
            case RolloutOrder.UNDO:
                return Phase(rollout.phase) in {Phase.ABORTING_TO_UNDO, Phase.UNDOING, Phase.UNDONE}
            case _:
                settings = rollout.settings
                wanted = self.into, self.out_of, self.leaders, self.in_all
                has = settings.into, settings.out_of, settings.leaders, settings.in_all
                return all(want in (None, now) for want, now in zip(wanted, has, strict=True))


async def _ask(scene: Scene, request: Message[R]) -> R:
    """Ask the controller, again and again while there is none that answers. Raises as `Request.ask` does."""
    for _ in range(_ATTEMPTS):
        try:
            return await _ask_once(scene, request)
        except (CannotBeDone, WireError):
            pass
        except ApiError as refusal:
            if refusal.code not in _NO_CONTROLLER:
                raise
        await trio.sleep(_AGAIN_SECONDS)
    return await _ask_once(scene, request)


async def _ask_once(scene: Scene, request: Message[R]) -> R:
    active = scene.cluster.active_controller
    if active is None:
        raise CannotBeDone("there is no controller now")
    return await scene.cluster.ask(active, request)
