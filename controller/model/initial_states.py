"""The states in which a new controller finds partitions and replicas."""

from __future__ import annotations

from collections.abc import Sequence

from controller.model.alike import decide_all
from controller.model.context import ControllerContext
from controller.model.state_machines import PartitionPhase, ReplicaPhase, Row
from transport.metadata import LeaderAndIsr, TopicPartition


def initial_rows(
    context: ControllerContext, tps: Sequence[TopicPartition], leaderships: Sequence[LeaderAndIsr | None]
) -> list[Row]:
    """Return the initial states of known partitions, whose leaderships the context does not have, and of replicas.

    A partition is New without leadership, Online with a live leader, and otherwise Offline.
    """
    leaders = [None if state is None else state.leader for state in leaderships]
    led_by = dict(zip(tps, leaders, strict=True))

    def row(tp: TopicPartition) -> Row:
        leader, replicas = led_by[tp], context.assignment(tp).replicas
        online = context.online(tp, replicas)
        phase = PartitionPhase.NEW
        if leader is not None:
            phase = PartitionPhase.ONLINE if context.is_online(tp, leader) else PartitionPhase.OFFLINE
        return phase, tuple([ReplicaPhase.ONLINE if r in online else ReplicaPhase.OFFLINE for r in replicas])

    return decide_all(context, tps, row, leaders)
