"""The algebra of reassignments (KIP-455), and what an administrator's target is checked for. Pure.

RS = replicas, AR = adding, RR = removing, ORS = original, TRS = target replica set. While a partition moves, RS is
TRS followed by what is left of ORS, so that one value tells all five.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from attrs import field, frozen

from transport.metadata import ReplicaAssignment


@frozen(order=True)
class ReassignmentIdentity:
    """What tells a reassignment from all others of its partition (KIP-240): czxid and ctime of its znode.

    Not part of it are the original replicas, which the znode has in the order that they had; () if it does not say.
    """

    czxid: int
    start_time_ms: int
    original: tuple[int, ...] = field(default=(), eq=False, order=False)


UNIDENTIFIED: Final = ReassignmentIdentity(-1, -1)
"""A reassignment's identity until its znode was created and read."""


def reassign_to(current: ReplicaAssignment, target: Sequence[int]) -> ReplicaAssignment:
    """Return the assignment while `current` moves to `target`.

    An override goes back to the true original set first, so that what it abandons vanishes. The same set in another
    order adds and removes nothing: it is complete at once.
    """
    origin = current.origin_replicas
    replicas = tuple(dict.fromkeys((*target, *origin)))
    return ReplicaAssignment(
        replicas,
        tuple(r for r in replicas if r not in origin),
        tuple(r for r in replicas if r not in target),
    )


def completed(moving: ReplicaAssignment) -> ReplicaAssignment:
    """Return the assignment once the move is over: RS = TRS."""
    return ReplicaAssignment(moving.target_replicas)


def is_caught_up(moving: ReplicaAssignment, isr: Collection[int]) -> bool:
    """Whether phase B may begin: the ISR covers TRS. Its members need not be alive."""
    return all(replica in isr for replica in moving.target_replicas)


def beginners(moving: ReplicaAssignment, isr: Collection[int]) -> tuple[int, ...]:
    """Return the adding replicas that may begin with an empty log (KAFKA-10314).

    One that has come into the ISR has a log. Were it told that it is new, a broker that lost a disk could make an empty
    one elsewhere and be trusted to have all that is committed.
    """
    return tuple(replica for replica in moving.adding_replicas if replica not in isr)


def target_fault(current: ReplicaAssignment, target: Sequence[int], live: Collection[int]) -> str | None:
    """Return why `target` must be refused, None if it is fine. Kept replicas may be dead, added ones not."""
    if not target:
        return "the list of replicas is empty"
    if len(set(target)) != len(target):
        return f"the list of replicas {list(target)} names a broker twice"
    if min(target) < 0:
        return f"the list of replicas {list(target)} has a negative broker id"
    dead = [r for r in target if r not in current.origin_replicas and r not in live]
    if dead:
        return f"replicas cannot be added on brokers {dead}, which are not alive"
    return None
