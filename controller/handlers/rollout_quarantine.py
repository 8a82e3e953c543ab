"""Rollouts with a row that cannot be read or makes no sense: quarantined, shown with the fault, and removed by order.

Nothing is begun, cancelled or written for such a rollout, and the others of the queue go on without it. Its moves in
flight come to their end like those of an administrator. Its rows stay as they are: once they are repaired, the next
controller carries the rollout on. An operator may remove it instead.
"""

from __future__ import annotations

from controller.handlers import rollout_throttles
from controller.model.context import ControllerContext
from controller.model.rollout_facts import RolloutUnusable
from controller.model.rounds import Rounds, Step, apply, descendants, read
from controller.rollout.orders import refusal_of_unusable
from controller.rollout.states import Phase
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.messages import UNKNOWN, RolloutDescription, RolloutSettings
from transport.metadata import TopicPartition
from transport.store import paths, rollouts
from transport.store.fields import UndecodableZnode

log = get_logger(__name__)


def quarantine(name: str, fault: UndecodableZnode) -> Rounds[None]:
    """Set a rollout aside, with its fault."""
    log.error("a rollout is set aside: a row of it cannot be used", rollout=name, fault=str(fault))
    yield from apply("observed", [Step(facts=(RolloutUnusable(name, str(fault)),))])


def refuse_unusable(context: ControllerContext, name: str) -> None:
    """Raise ApiError if a rollout is quarantined."""
    fault = context.rollouts.unusable.get(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, refusal_of_unusable(name, fault))


def described(name: str, fault: str) -> RolloutDescription:
    """Describe a rollout that is quarantined.

    Clients of earlier releases do not know `fault`, and know no other phases than theirs: they show it as aborted.
    """
    unknown = UNKNOWN, RolloutSettings(), 0, "", 0, ()
    return RolloutDescription(name, "", Phase.ABORTED.value, (), fault, *unknown, fault=fault)


def restore_rates(context: ControllerContext, name: str) -> Rounds[bool]:
    """Lift the throttles of all moves that a quarantined rollout may have begun, and restore the rates of brokers.

    Return False if some may remain, as `rollout_throttles.restore` does.
    """
    moved = yield from _may_have_begun(name)
    yield from rollout_throttles.lift(context, moved - context.rollouts.flying.keys())
    return (yield from rollout_throttles.restore(context))


def _may_have_begun(name: str) -> Rounds[set[TopicPartition]]:
    """Return the partitions of the parts that have marks, as far as these parts of the plan can be read."""
    [marked] = yield from descendants([f"{paths.rollout(name)}/marks"])
    firsts = paths.numbers(path.rpartition("/")[2] for path in marked or ())
    where = [paths.rollout_plan(name, first) for first in firsts]
    found: set[TopicPartition] = set()
    for path, znode in zip(where, (yield from read(where)), strict=True):
        try:
            found.update(rollouts.decode_partitions(path, b"" if znode is None else znode.data))
        except UndecodableZnode as fault:
            log.warning("throttles of a part of a rollout may remain: it cannot be read", fault=str(fault))
    return found
