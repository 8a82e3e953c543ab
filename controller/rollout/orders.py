"""The orders of operators to a rollout: which the controller refuses, and the settings after one that changes them.

The controller carries them out by these rules, and a dry run of the command shows by the same rules what it would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import asdict, replace

from controller.rollout.adapting import FIRST
from controller.rollout.states import Happening, RolloutState
from transport.messages import UNTHROTTLED, RolloutChanges, RolloutOrder, RolloutSettings

HAPPENINGS: Final[Mapping[RolloutOrder, Happening]] = MappingProxyType(
    {
        RolloutOrder.PAUSE: Happening.PAUSE,
        RolloutOrder.RESUME: Happening.RESUME,
        RolloutOrder.ABORT: Happening.ABORT,
        RolloutOrder.UNDO: Happening.UNDO,
    }
)
"""The orders that change the state of a rollout."""


def refusal(name: str, state: RolloutState, order: RolloutOrder) -> str | None:
    """Return why a rollout in a state cannot have an order, None if it can."""
    if order is RolloutOrder.REMOVE:
        return None if state.is_over else f"rollout {name} is not over but {state}: abort it first"
    is_refused = order in HAPPENINGS and not state.allows(HAPPENINGS[order])
    return f"rollout {name} is {state}: it cannot {order.value}" if is_refused else None


def refusal_of_unusable(name: str, fault: str) -> str:
    """Return why a rollout that is quarantined for a fault cannot have any order but its removal."""
    return f"rollout {name} is set aside: {fault}: `klamm rollout remove {name}` removes it"


def changed(settings: RolloutSettings, changes: RolloutChanges) -> RolloutSettings:
    """Return settings with changes; a throttle that is given is no longer found by itself."""
    values = {name: value for name, value in asdict(changes).items() if value is not None}
    if changes.throttle is not None:
        values.setdefault("adapts", False)
    return with_throttle(replace(settings, **values))


def with_throttle(settings: RolloutSettings) -> RolloutSettings:
    """Return settings; one that finds its throttle by itself has one to begin with."""
    finds_none = settings.adapts and settings.throttle == UNTHROTTLED
    return replace(settings, throttle=FIRST) if finds_none else settings
