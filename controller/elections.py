"""Leader elections: pure functions over many partitions at once.

Each strategy says who leads and what the ISR becomes; `elect` runs one over candidates and writes the epochs. The
leader is chosen in the order of the *assignment*, the ISR keeps its own order, and an empty ISR never yields a
clean leader (reference: Kafka's PartitionLeaderElectionAlgorithms).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from attrs import evolve, frozen

from transport.metadata import INITIAL_LEADER_EPOCH, NO_LEADER, LeaderAndIsr, TopicPartition


@frozen
class Candidate:
    """A partition that needs a leader.

    `replicas` is the order of preference (the target replicas for a reassignment), `online` those of them whose broker
    is live, `leadership` what is in force.
    """

    tp: TopicPartition
    replicas: tuple[int, ...]
    online: tuple[int, ...]
    leadership: LeaderAndIsr


@frozen
class Elections:
    """Which partitions got a new leadership, and which could not get one and keep theirs."""

    elected: tuple[tuple[Candidate, LeaderAndIsr], ...]
    failed: tuple[Candidate, ...]


Choice = tuple[int, tuple[int, ...]]
"""A leader and the ISR that it begins with."""

Strategy = Callable[[Candidate], Choice | None]


def offline(candidate: Candidate) -> Choice | None:
    """Choose the first replica that is online and in the ISR; the ISR loses its offline members."""
    isr = tuple(r for r in candidate.leadership.isr if r in candidate.online)
    leader = next((r for r in candidate.replicas if r in isr), None)
    return None if leader is None else (leader, isr)


def reassign(candidate: Candidate) -> Choice | None:
    """Choose the first target replica that is online and in the ISR; the ISR stays."""
    isr = candidate.leadership.isr
    leader = next((r for r in candidate.replicas if r in candidate.online and r in isr), None)
    return None if leader is None else (leader, isr)


def elect(candidates: Iterable[Candidate], strategy: Strategy, controller_epoch: int) -> Elections:
    """Run one strategy over many partitions. A successful election adds 1 to the leader epoch."""
    elected: list[tuple[Candidate, LeaderAndIsr]] = []
    failed: list[Candidate] = []
    for candidate in candidates:
        choice = strategy(candidate)
        if choice is None:
            failed.append(candidate)
        else:
            leader, isr = choice
            elected.append((candidate, next_epoch(candidate.leadership, controller_epoch, leader=leader, isr=isr)))
    return Elections(tuple(elected), tuple(failed))


def initial(online: tuple[int, ...], controller_epoch: int) -> LeaderAndIsr | None:
    """Return a new partition's first leadership: the first live replica leads all live ones, at leader epoch 0."""
    return LeaderAndIsr(online[0], INITIAL_LEADER_EPOCH, online, 0, controller_epoch) if online else None


def next_epoch(
    current: LeaderAndIsr,
    controller_epoch: int,
    *,
    leader: int | None = None,
    isr: tuple[int, ...] | None = None,
) -> LeaderAndIsr:
    """Return `current` one leader epoch on, as it will be once written over the version that `current` has."""
    return evolve(
        current,
        leader=current.leader if leader is None else leader,
        isr=current.isr if isr is None else isr,
        leader_epoch=current.leader_epoch + 1,
        partition_epoch=current.partition_epoch + 1,
        controller_epoch=controller_epoch,
    )


def without_replicas(current: LeaderAndIsr, gone: Iterable[int], controller_epoch: int) -> LeaderAndIsr | None:
    """Take replicas out of the ISR; None if none of them is in it or leads.

    A leader that goes leaves the partition without one (-1). The ISR does not become empty (KAFKA-5083): if all its
    members go at once all stay in it, for each of them has every committed record.
    """
    leaving = frozenset(gone)
    if leaving.isdisjoint({*current.isr, current.leader}):
        return None
    isr = tuple(r for r in current.isr if r not in leaving) or current.isr
    leader = NO_LEADER if current.leader in leaving else current.leader
    if (leader, isr) == (current.leader, current.isr):
        return None
    return next_epoch(current, controller_epoch, leader=leader, isr=isr)


def without_data(candidate: Candidate, lost: Collection[int], controller_epoch: int) -> LeaderAndIsr:
    """Take replicas whose data are lost out of the ISR, which becomes empty if no other is in it.

    A live leader that is left in the ISR goes on, else the first live member leads. The leader epoch rises though no
    member may leave: a leader that is about to take one of them into its ISR counts on what is lost (KIP-903).
    """
    current = candidate.leadership
    isr = tuple(r for r in current.isr if r not in lost)
    able = [r for r in candidate.replicas if r in isr and r in candidate.online]
    leader = current.leader if current.leader in able else next(iter(able), NO_LEADER)
    return next_epoch(current, controller_epoch, leader=leader, isr=isr)
