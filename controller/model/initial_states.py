"""The states in which a new controller finds partitions and replicas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.model.context import ControllerContext
from controller.model.known_topics import assignments_of
from controller.model.state_machines import PartitionPhase, ReplicaPhase, Row
from transport.metadata import LeaderAndIsr, TopicPartition


def initial_rows(
    context: ControllerContext, tps: Sequence[TopicPartition], leaderships: Iterable[LeaderAndIsr | None]
) -> list[Row]:
    """Return the initial states of known partitions and of their replicas.

    Partitions with equal replicas and leaders are in equal states, unless one of their replicas is set aside.
    """
    apart = {tp for tp, _ in (*context.on_offline_dirs, *context.waiting)}
    alike: dict[tuple[tuple[int, ...], int | None], Row] = {}
    rows = []
    for tp, assignment, state in zip(tps, assignments_of(context.topics, tps), leaderships, strict=True):
        key = assignment.replicas, None if state is None else state.leader
        row = _row(context, tp, *key) if apart and tp in apart else alike.get(key)
        if row is None:
            row = alike[key] = _row(context, tp, *key)
        rows.append(row)
    return rows


def _row(context: ControllerContext, tp: TopicPartition, replicas: tuple[int, ...], leader: int | None) -> Row:
    """Return New without leadership, Online with a live leader, otherwise Offline; replicas as the context has them."""
    online = context.online(tp, replicas)
    phase = PartitionPhase.NEW
    if leader is not None:
        phase = PartitionPhase.ONLINE if context.is_online(tp, leader) else PartitionPhase.OFFLINE
    return phase, tuple([ReplicaPhase.ONLINE if r in online else ReplicaPhase.OFFLINE for r in replicas])
