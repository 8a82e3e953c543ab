"""Following reassignments from outside, until each is done: what `reassignment execute` waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

import trio
from attrs import frozen

from controller.admin_client import AdminClient
from transport.messages import OngoingReassignment
from transport.metadata import TopicPartition

POLL_SECONDS: Final = 0.2

Targets = Mapping[TopicPartition, tuple[int, ...]]


@frozen
class MoveStatus:
    """Where a set of moves is: what is complete, what goes on, and what ended otherwise (with its replicas)."""

    complete: tuple[TopicPartition, ...]
    ongoing: tuple[OngoingReassignment, ...]
    other: tuple[tuple[TopicPartition, tuple[int, ...]], ...]

    def waits_for(self) -> str:
        """Say what the first unfinished move waits for, empty if none is left."""
        for move in self.ongoing:
            missing = [r for r in move.replicas if r not in move.isr and r not in move.removing_replicas]
            name = f"{move.topic}-{move.partition}"
            if missing:
                return f"{name} waits for {', '.join(map(str, missing))} to join the ISR"
            return f"{name} is about to finish"
        return ""


async def check(admin: AdminClient, targets: Targets) -> MoveStatus:
    """Ask where the moves to `targets` are."""
    ongoing = await admin.list_partition_reassignments(list(targets))
    moving = {TopicPartition(move.topic, move.partition) for move in ongoing}
    names = sorted({tp.topic for tp in targets})
    described = (await admin.describe_cluster(names)).partitions
    replicas = {TopicPartition(state.topic, state.partition): state.replicas for state in described}
    settled = {tp: replicas.get(tp, ()) for tp in targets if tp not in moving}
    return MoveStatus(
        tuple(tp for tp, now in settled.items() if now == targets[tp]),
        ongoing,
        tuple((tp, now) for tp, now in settled.items() if now != targets[tp]),
    )


async def follow(admin: AdminClient, targets: Targets) -> AsyncIterator[MoveStatus]:
    """Yield the status again and again until nothing goes on."""
    while True:
        status = await check(admin, targets)
        yield status
        if not status.ongoing:
            return
        await trio.sleep(POLL_SECONDS)
