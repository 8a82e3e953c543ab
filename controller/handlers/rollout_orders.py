"""Orders of operators to rollouts, and moves by hand of partitions that rollouts would move."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from controller.handlers import rollout_brakes, rollout_quarantine, rollout_throttles
from controller.handlers.rollout_plans import next_number, remove, sound
from controller.handlers.rollout_records import happen, not_written, write_state
from controller.handlers.rollout_views import described
from controller.model.context import ControllerContext
from controller.model.rollout import Rollout
from controller.model.rounds import Rounds
from controller.rollout.adapting import adapted, fault_of
from controller.rollout.orders import HAPPENINGS, changed, refusal
from controller.rollout.states import Happening, Phase
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.messages import (
    UNTHROTTLED,
    ChangeRolloutRequest,
    ChangeRolloutResponse,
    RolloutChanges,
    RolloutOrder,
    RolloutSettings,
)

log = get_logger(__name__)


def change_rollout(context: ControllerContext, request: ChangeRolloutRequest) -> Rounds[ChangeRolloutResponse]:
    """Carry out an order of an operator. Raises ApiError."""
    if request.order is RolloutOrder.REMOVE and request.name in context.rollouts.unusable:
        return (yield from _remove_unusable(context, request.name))
    rollout_quarantine.refuse_unusable(context, request.name)
    rollout = context.rollouts.by_name.get(request.name)
    if rollout is None:
        text = f"there is no rollout {request.name}: see `klamm rollout list`"
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
    refused = refusal(rollout.name, rollout.state, request.order)
    if refused is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, refused)
    if request.order is RolloutOrder.REMOVE:
        return (yield from _remove(context, rollout))
    yield from _set(context, rollout, request.changes)
    if request.without_dead:
        alive = tuple(broker for broker in rollout.stored.brokers if broker in context.brokers)
        if not (yield from write_state(rollout, brokers=alive)):
            raise not_written(rollout.name)
    if request.order in HAPPENINGS:
        yield from _order(context, rollout, request.order)
    return ChangeRolloutResponse(described(context, rollout))


def _remove(context: ControllerContext, rollout: Rollout) -> Rounds[ChangeRolloutResponse]:
    if rollout.stored.throttled and not (yield from rollout_throttles.restore(context)):
        raise _keeps_rates(rollout.name)
    if not (yield from remove(rollout.name)):
        raise not_written(rollout.name)
    return ChangeRolloutResponse()


def _remove_unusable(context: ControllerContext, name: str) -> Rounds[ChangeRolloutResponse]:
    # Whether it has set throttles cannot be known.
    if not (yield from rollout_quarantine.restore_rates(context, name)):
        raise _keeps_rates(name)
    if not (yield from remove(name)):
        raise not_written(name)
    return ChangeRolloutResponse()


def _keeps_rates(name: str) -> ApiError:
    """Return the refusal to remove a rollout while rates of brokers remain: nothing else remembers them."""
    text = f"rollout {name} has left rates of brokers that cannot be restored now: see the controller's log"
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _order(context: ControllerContext, rollout: Rollout, order: RolloutOrder) -> Rounds[None]:
    happening, before = HAPPENINGS[order], rollout.state
    if before.after(happening) == before:
        return
    is_new = order is RolloutOrder.UNDO
    number = next_number(context) if is_new and before.is_over else rollout.stored.number
    # Whoever wants it undone knows which brokers are dead by now.
    brokers = tuple(context.able_brokers()) if is_new else rollout.stored.brokers
    throttled = rollout.stored.throttled or (is_new and rollout.stored.settings.throttle != UNTHROTTLED)
    if not (yield from happen(rollout, happening, number=number, brokers=brokers, throttled=throttled)):
        raise not_written(rollout.name)
    if rollout.state.phase in {Phase.ABORTING, Phase.ABORTING_TO_UNDO} and rollout is not context.rollouts.current:
        yield from happen(rollout, Happening.LANDED)  # a rollout that waits for others has nothing in flight


def _set(context: ControllerContext, rollout: Rollout, changes: RolloutChanges) -> Rounds[None]:
    before, is_by_hand = rollout.stored.settings, changes.throttle is not None
    settings = sound(changed(before, changes))
    # A controller may have died after it had written the throttle, and before the brokers had it.
    if settings == before and not is_by_hand:
        return
    fault = yield from _write_settings(context, rollout, settings, is_again=is_by_hand)
    if fault:
        raise ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, f"rollout {rollout.name}: {fault}")


def adapt(context: ControllerContext, seconds: float, silent: Collection[int], copied: float | None) -> Rounds[None]:
    """Change the throttle of a rollout that wants it to be changed by how the brokers do that copy."""
    rollout = context.rollouts.current
    if rollout is None or not rollout.stored.settings.adapts:
        return
    fault, before = fault_of(seconds, silent, rollout_brakes.lagging(context, rollout)), rollout.stored.settings
    settings: RolloutSettings = msgspec.structs.replace(before, throttle=adapted(before.throttle, copied, fault))
    if settings == before:
        return
    log.info("throttle", rollout=rollout.name, rate=settings.throttle, because=fault or "all is well")
    fault = yield from _write_settings(context, rollout, settings)
    if fault:
        log.error("a throttle was not changed everywhere", rollout=rollout.name, fault=fault)


def _write_settings(
    context: ControllerContext, rollout: Rollout, settings: RolloutSettings, *, is_again: bool = False
) -> Rounds[str]:
    """Write settings; a new throttle is for moves in flight as well, and one that is given again.

    Return what could not be written, "" if all could be.
    """
    before, is_throttled = rollout.stored.settings, settings.throttle != UNTHROTTLED
    throttled = rollout.stored.throttled or is_throttled
    if not (yield from write_state(rollout, settings=settings, throttled=throttled)):
        return not_written(rollout.name).message
    if settings.throttle == before.throttle and not is_again:
        return ""
    moves = [part.moves[number] for part, number in rollout.flying]
    if is_throttled:
        failed = yield from rollout_throttles.begin(context, moves, settings.throttle)
        return _in_flight_as_before("; ".join(failed.values()))
    are_lifted = yield from rollout_throttles.lift(context, [move.tp for move in moves])
    are_restored = yield from rollout_throttles.restore(context)
    return "" if are_lifted and are_restored else _in_flight_as_before("see the controller's log")


def _in_flight_as_before(why: str) -> str:
    return f"the throttle is changed for moves that begin, but not for all in flight: {why}" if why else ""
