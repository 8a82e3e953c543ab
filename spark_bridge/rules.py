"""The hard rules of removing brokers: what may be asked, who may receive a replica, whether a plan obeys.

1. The replication factor stays, and no broker holds a partition twice.
2. Only replicas on removed brokers move. The others keep their places in the list, a replacement takes the place of the
   replica that it replaces, and partitions without a replica on a removed broker are not in the plan.
3. Replacements are live brokers that stay.
4. Racks: given the kept replicas, the new list lies in as many distinct racks as any choice of replacements could
   reach, which is `kept racks + min(replacements, racks with a live staying broker that no kept replica lies in)`.

A broker without a rack, or of which the snapshot knows only that replicas are assigned to it, counts as a rack of its
own. So without racks rule 4 says no more than rule 1, and a cluster where only some brokers have one can be planned.

Rules 1 and 4 hold if every replacement, one after the other, goes to a rack that the partition does not lie in yet, or,
when no such rack is left, to any broker that does not hold the partition yet: each step adds a rack whenever one is
left to add. `Cluster.barred` is that step.
"""

from __future__ import annotations

from functools import cached_property

from attrs import field, frozen

from spark_bridge.plan import Plan, PlanError
from spark_bridge.snapshot import Partition, Snapshot

_MOST_LISTED = 20


@frozen(slots=False)
class Cluster:
    """The brokers of a snapshot as the rules see them: racks are numbers, each broker without one has its own."""

    snapshot: Snapshot = field(repr=False)
    removed: frozenset[int]

    @cached_property
    def brokers(self) -> tuple[int, ...]:
        """Return the ids of all brokers, live or assigned a replica, in order."""
        assigned = {b for p in self.snapshot.partitions for b in p.replicas}
        return tuple(sorted(assigned.union(b.id for b in self.snapshot.brokers)))

    @cached_property
    def staying(self) -> tuple[int, ...]:
        """Return the ids of the brokers that may receive replicas, in order: live and not removed."""
        return tuple(sorted({b.id for b in self.snapshot.brokers} - self.removed))

    @cached_property
    def rack_of(self) -> dict[int, int]:
        """Return every broker's rack, as a number that means nothing outside this object."""
        named = {b.id: b.rack for b in self.snapshot.brokers if b.rack is not None}
        number = {name: n for n, name in enumerate(sorted(set(named.values())))}
        return {b: number[named[b]] if b in named else len(number) + n for n, b in enumerate(self.brokers)}

    @cached_property
    def open_racks(self) -> tuple[int, ...]:
        """Return the racks in which a replacement can be put, in order."""
        return tuple(sorted({self.rack_of[b] for b in self.staying}))

    def barred(self, racks: frozenset[int], holders: frozenset[int]) -> frozenset[int]:
        """Return the staying brokers that may not receive the next replacement of a partition.

        Args:
            racks: The racks in which the partition has its replicas (kept ones and earlier replacements).
            holders: The brokers of these replicas; they count only when the partition lies in every open rack.
        """
        if racks.issuperset(self.open_racks):
            return holders.intersection(self.staying)
        return frozenset(b for b in self.staying if self.rack_of[b] in racks)


def refuse(cluster: Cluster) -> None:
    """Refuse a removal of brokers for which there is no plan.

    Raises:
        PlanError: An unknown broker, nobody left, or too few brokers for a partition that must move.
    """
    removed = _listed(cluster.removed)
    if not cluster.removed:
        raise PlanError("no broker to remove: name at least one")
    if unknown := cluster.removed.difference(cluster.brokers):
        raise PlanError(f"broker {_listed(unknown)} is not in the snapshot: choose from {_listed(cluster.brokers)}")
    if not cluster.staying:
        raise PlanError(f"removing {removed} leaves no live broker: name fewer brokers or start others first")
    for partition in cluster.snapshot.partitions:
        kept = cluster.removed.symmetric_difference(partition.replicas).intersection(partition.replicas)
        free = len(cluster.staying) - len(kept.intersection(cluster.staying))
        if len(partition.replicas) - len(kept) > free:
            raise PlanError(_too_few(partition, len(kept) + free, removed))


def violations(cluster: Cluster, plan: Plan) -> list[str]:
    """Return what in the plan breaks the hard rules, a line each; an empty list for a plan that obeys."""
    new = {(p.topic, p.partition): p.replicas for p in plan.partitions}
    found = [] if len(new) == len(plan.partitions) else ["a partition is in the plan twice"]
    for old in cluster.snapshot.partitions:
        replicas = new.pop((old.topic, old.partition), None)
        touched = not cluster.removed.isdisjoint(old.replicas)
        if (replicas is not None) != touched:
            found.append(f"{old}: {'not in the plan' if touched else 'in the plan without need'}")
        elif replicas is not None:
            change = f"{old} {list(old.replicas)} -> {list(replicas)}"
            found += [f"{change}: {why}" for why in _broken(cluster, old, replicas)]
    return found + [f"{topic}-{partition}: not in the snapshot" for topic, partition in sorted(new)]


def _broken(cluster: Cluster, old: Partition, new: tuple[int, ...]) -> list[str]:
    if len(new) != len(old.replicas):
        return ["replication factor changed"]
    kept = [b for b in old.replicas if b not in cluster.removed]
    fresh = [n for o, n in zip(old.replicas, new, strict=True) if o in cluster.removed]
    checks = {
        "a broker is there twice": len(set(new)) == len(new),
        "a kept replica moved": all(o == n for o, n in zip(old.replicas, new, strict=True) if o not in cluster.removed),
        "a replacement is removed or not live": set(fresh).issubset(cluster.staying),
        "fewer racks than possible": _racks(cluster, new) >= _reachable_racks(cluster, kept, len(fresh)),
    }
    return [why for why, holds in checks.items() if not holds]


def _racks(cluster: Cluster, replicas: tuple[int, ...]) -> int:
    return len({cluster.rack_of.get(b, -1) for b in replicas})


def _reachable_racks(cluster: Cluster, kept: list[int], replacements: int) -> int:
    lies_in = {cluster.rack_of[b] for b in kept}
    return len(lies_in) + min(replacements, len(set(cluster.open_racks) - lies_in))


def _too_few(partition: Partition, possible: int, removed: str) -> str:
    factor = len(partition.replicas)
    return (
        f"{partition} has {factor} replicas, and without {removed} only {possible} of the brokers can hold one: "
        f"start {factor - possible} more, remove fewer, or lower its replication factor to {possible}"
    )


def _listed(ids: frozenset[int] | tuple[int, ...]) -> str:
    rest = len(ids) - _MOST_LISTED
    return ", ".join(map(str, sorted(ids)[:_MOST_LISTED])) + (f" and {rest} more" if rest > 0 else "")
