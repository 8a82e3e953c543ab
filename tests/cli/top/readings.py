"""Readings of clusters, as few words as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from controller.rollout.states import MoveState, RolloutState
from klamm.cli.rollout.report import Report
from klamm.cli.top.following import Look
from klamm.cli.top.reading import Reading
from klamm.cli.top.rollouts import Rollout
from klamm.cli.top.tables import Table
from transport.messages import (
    UNKNOWN,
    UNTHROTTLED,
    BrokerEndpoint,
    DescribeClusterResponse,
    DescribedBroker,
    PartitionState,
    ReassignmentDescription,
    ReplicaProgress,
)

NOW_MS = 1_700_000_000_000
MB = 1_000_000


def cluster(live: Sequence[int] = (1, 2, 3)) -> DescribeClusterResponse:
    """Return a cluster of nothing but brokers."""
    brokers = tuple(
        DescribedBroker(BrokerEndpoint(id_, f"kafka{id_}", 9092, f"r{id_}"), id_, leaders=4, replicas=9) for id_ in live
    )
    return DescribeClusterResponse(BrokerEndpoint(1001, "c", 1), 7, brokers, 0, 0, 0, 0, 0, 0, 0, 0)


def counted(counts: Mapping[str, int]) -> DescribeClusterResponse:
    """Return a cluster of three brokers with these counts."""
    return msgspec.structs.replace(cluster(), **counts)


def partition(
    number: int, replicas: Sequence[int], isr: Sequence[int], leader: int, *, adding: Sequence[int] = ()
) -> PartitionState:
    return PartitionState(
        "orders", "id", number, 7, leader, 0, tuple(isr), 0, tuple(replicas), adding_replicas=tuple(adding)
    )


def move(
    number: int = 0,
    *,
    has: int = UNKNOWN,
    of: int = UNKNOWN,
    rate: int = UNKNOWN,
    in_sync: bool = False,
    waits_for: str = "",
    stalled_ms: int = UNKNOWN,
) -> ReassignmentDescription:
    """Return a move of a partition from broker 1 to broker 3."""
    progress = (ReplicaProgress(3, log_bytes=has, leader_bytes=of, in_sync=in_sync), ReplicaProgress(2, in_sync=True))
    return ReassignmentDescription(
        "orders", number, 7, NOW_MS, 1, UNTHROTTLED, (3, 2, 1), (3,), (1,), (1, 2), (3, 2), progress,
        waits_for=waits_for, rate=rate, eta_ms=(of - has) * 1000 // rate if rate > 0 else UNKNOWN,
        stalled_since_ms=UNKNOWN if stalled_ms == UNKNOWN else NOW_MS - stalled_ms,
    )  # fmt: skip


def rollout(
    state: RolloutState | None = None, brake: str = "", waits: Mapping[str, int] | None = None, **counts: int
) -> Report:
    """Return a rollout with as many moves in each state."""
    moves = {one: counts.get(one.name.lower(), 0) for one in MoveState}
    figures = {"in_flight": 1, "bytes_left": 90 * MB, "bytes_per_second": 3 * MB, "seconds_left": 30, "error": None}
    progress = {**figures, "waits": waits or {}}
    return Report("plan", state or RolloutState(), brake, NOW_MS, "process 7", moves, progress)


def busy() -> Reading:
    """Return a cluster with a dead broker and a move."""
    states = (
        partition(0, (3, 2, 1), (1, 2), 1, adding=(3,)),
        partition(1, (4, 2), (2,), 2),
        partition(2, (4,), (4,), -1),
        partition(3, (1, 2), (1, 2), 1),
    )
    moves = (move(has=40 * MB, of=100 * MB, rate=2 * MB, waits_for="broker 3: 60.0 MB"),)
    counts = {"topics": 1, "partitions": 4, "offline": 1, "under_replicated": 2, "under_min_isr": 2}
    return Reading(counted({**counts, "being_reassigned": 1}), moves, 2 * MB, 30_000, states, {"orders": 2})


def look(reading: Reading | None = None, *rollouts: Rollout, trouble: str = "") -> Look:
    return Look(NOW_MS, None if trouble else reading or busy(), rollouts, trouble)


def texts(table: Table) -> list[list[str]]:
    """Return the cells of a table."""
    return [[cell.text for cell in row.cells] for row in table.rows]
