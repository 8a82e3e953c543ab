"""The algebra of reassignments (KIP-455). Pure.

RS = replicas, AR = adding, RR = removing, ORS = original, TRS = target replica set. While a partition is being
reassigned, RS is TRS followed by the rest of ORS, so that all five follow from one ReplicaAssignment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from attrs import field, frozen

from transport.metadata import ReplicaAssignment


@frozen(order=True)
class ReassignmentIdentity:
    """The identity of a reassignment among all those of its partition (KIP-240): czxid and ctime of its znode.

    `original` does not take part in comparisons: the replicas before the move, in their order; () if not known.
    """

    czxid: int
    start_time_ms: int
    original: tuple[int, ...] = field(default=(), eq=False, order=False)


UNIDENTIFIED: Final = ReassignmentIdentity(-1, -1)
"""The identity of a reassignment until its znode has been read."""


def reassign_to(current: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
    """Return the assignment while `current` moves to `target`.

    An override starts from the original set, so the replicas of the abandoned target are dropped. A target with the
    same brokers in another order adds and removes nothing: it is complete at once.
    """
    origin = current.origin_replicas
    replicas = tuple(dict.fromkeys((*target, *origin)))
    return ReplicaAssignment(
        replicas,
        tuple(r for r in replicas if r not in origin),
        tuple(r for r in replicas if r not in target),
    )


def completed(moving: ReplicaAssignment) -> ReplicaAssignment:
    """Return the assignment after the move: RS = TRS."""
    return ReplicaAssignment(moving.target_replicas)


def is_caught_up(moving: ReplicaAssignment, isr: Collection[int]) -> bool:
    """Return whether the ISR covers TRS, so that phase B may begin. The members need not be alive."""
    return set(isr).issuperset(moving.target_replicas)


def beginners(moving: ReplicaAssignment, isr: Collection[int]) -> tuple[int, ...]:
    """Return the adding replicas that may start with an empty log (KAFKA-10314).

    A replica in the ISR already has a log. If it were sent isNew, a broker that lost a disk could create an empty log
    elsewhere and still be trusted to have all committed records.
    """
    return tuple(replica for replica in moving.adding_replicas if replica not in isr)
