"""The ends of a rollout: moves in flight are cancelled, and leaders elected that the plan counts on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import trio

from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import MoveAdmin
from controller.admin.moves import MoveWatch
from controller.rollout.moves import Move
from klamm.cli.reassignment.cancel import Cancelling
from klamm.cli.rollout.showing import Display
from transport.errors import ErrorCode, reason_of
from transport.messages import ElectionType, PartitionState
from transport.metadata import TopicPartition

_FINE: Final = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})


async def cancel(admin: MoveAdmin, moves: Sequence[Move], display: Display, *, seconds: float = inf) -> None:
    """Cancel moves, and wait until their partitions have their replicas again, in their order; so long at most."""
    display.say(f"cancelling {len(moves):,} moves")
    before = {move.tp: move.before for move in moves}
    cancelling = Cancelling(admin, list(before), before)
    await cancelling.begin()
    with trio.move_on_after(seconds):
        async for status in MoveWatch(admin, before).follow():
            if status.trouble:
                display.say(f"cannot see the progress, trying again: {status.trouble}")
    await cancelling.restore_order()


async def elect(
    admin: MoveAdmin, moves: Sequence[Move], states: Mapping[TopicPartition, PartitionState], display: Display
) -> None:
    """Elect the first replicas of partitions that have another leader."""
    if not isinstance(admin, ClusterAdmin):
        return
    led = [move.tp for move in moves if move.tp in states and states[move.tp].leader != move.after[0]]
    if not led:
        return
    answered = await admin.elect_leaders(ElectionType.PREFERRED, led)
    failed = [item for item in answered if item.error not in _FINE]
    display.say(f"elected {len(led) - len(failed):,} preferred leaders")
    for item in failed:
        display.say(f"{item.tp}: its preferred leader was not elected: {reason_of(item.error, item.message)}")
