"""Asking a cluster for the moves of a rollout that begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.admin.active_controller import OutcomeUnknown
from controller.admin.move_admin import ForeignAdmin, MoveAdmin
from controller.rollout.moves import Move
from controller.rollout.room import Places
from klamm.cli.rollout.showing import Display
from transport.errors import ApiError, ErrorCode, in_words, reason_of
from transport.messages import ReassignablePartition
from transport.metadata import TopicPartition


async def place_logs(admin: MoveAdmin, moves: Iterable[Move], places: Places) -> dict[TopicPartition, str]:
    """Tell brokers where the plan wants the new replicas to be; return the moves that one of them refuses."""
    named = {move.tp for move in moves}
    wanted = {where: path for where, path in places.items() if where[0] in named}
    if not wanted or not isinstance(admin, ForeignAdmin):
        return {}
    refused = await admin.alter_replica_log_dirs(wanted)
    return {tp: f"no log directory: broker {broker}: {text}" for (tp, broker), text in refused.items()}


async def request(admin: MoveAdmin, moves: Sequence[Move], display: Display) -> dict[TopicPartition, str]:
    """Ask the controller for moves; return those that it refuses."""
    wanted = [ReassignablePartition(move.topic, move.partition, move.after) for move in moves]
    try:
        answer = await admin.alter_partition_reassignments(wanted)
    except OutcomeUnknown as error:
        display.say(f"{error}: looking what became of it")
        return {}
    except ApiError as error:
        return {move.tp: in_words(error) for move in moves}
    failed = [item for item in answer.partitions if item.error is not ErrorCode.NONE]
    return {item.tp: reason_of(item.error, item.message) for item in failed}
