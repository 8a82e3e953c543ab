"""Leader elections: pure functions.

Each strategy chooses the leader, the new ISR and the replicas to notify; `led_by` assigns the epochs. The leader is
chosen in the order of the *assignment*, the ISR keeps its own order, and an empty ISR never yields a clean leader
(reference: Kafka's PartitionLeaderElectionAlgorithms).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from attrs import frozen

from transport.metadata import INITIAL_LEADER_EPOCH, NO_LEADER, LeaderAndIsr, LeaderRecoveryState


@frozen
class Candidate:
    """A partition that needs a leader.

    `replicas` is the order of preference (the target replicas for a reassignment), `online` those of them that may
    lead, `shutting_down` those on brokers that are about to stop, `leadership` the leadership in effect. Those that
    `failed` to lead follow, those that are `stuck` failed to follow: they lead while no member of the ISR is online.
    With `allow_unclean`, a replica outside the ISR may lead if no member of it can, unless it is `recalled`: its broker
    may still execute an earlier order and delete the replica's data.

    A partition `is_held` by a leader that is alive and cannot be sent a successor: it keeps this leader, except when
    the leader itself asks to leave. Those of its ISR that died or failed to follow meanwhile are `unserved`.
    """

    replicas: tuple[int, ...]
    online: tuple[int, ...]
    leadership: LeaderAndIsr
    shutting_down: tuple[int, ...] = ()
    allow_unclean: bool = False
    recalled: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    stuck: tuple[int, ...] = ()
    is_held: bool = False
    unserved: tuple[int, ...] = ()

    @property
    def served(self) -> tuple[int, ...]:
        """The replicas that can be notified, shutting down or not (KAFKA-7482)."""
        return tuple(r for r in self.replicas if r in self.online or r in self.shutting_down or r in self.failed)


@frozen
class Choice:
    """A leader, its ISR, and the replicas to notify; `beginners` have no data yet, and are notified as new.

    `gone` are the replicas that go Offline, and `stopped` those that are told to stop; with `deletes`, for good.
    """

    leader: int
    isr: tuple[int, ...]
    recipients: tuple[int, ...] = ()
    beginners: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()
    stopped: tuple[int, ...] = ()
    deletes: bool = False
    is_change: bool = True
    """Whether the leader or the ISR is another one than before."""

    is_unclean: bool = False
    """Whether the leader was not in the ISR, so that committed records may be lost."""


Strategy = Callable[[Candidate], Choice | None]


def offline(candidate: Candidate) -> Choice | None:
    """Choose the first replica that is online and in the ISR; the ISR loses its offline members.

    Members that failed to lead stay. If no other member is left, the leader stays if it is one of them, otherwise the
    first of them leads; after them, the same goes for members that failed to follow.

    If the ISR has none of these and an unclean election is allowed, the first online replica that is not recalled leads
    and is the only member of the ISR.
    """
    if candidate.is_held:
        return None
    current = candidate.leadership
    isr = tuple(r for r in current.isr if r in candidate.online or r in candidate.failed)
    leader = _first(candidate, isr)
    if leader is None:
        isr = isr or tuple(r for r in current.isr if r in candidate.stuck)
        if current.leader in isr:
            return None
        leader = next((r for r in candidate.replicas if r in isr), None)
    if leader is not None:
        told = (leader, *candidate.online, *candidate.failed)
        return Choice(leader, isr, tuple(r for r in candidate.replicas if r in told))
    lasting = tuple(r for r in candidate.online if r not in candidate.recalled)
    if candidate.allow_unclean and lasting:
        return Choice(lasting[0], lasting[:1], candidate.online, is_unclean=True)
    return None


def reassign(candidate: Candidate) -> Choice | None:
    """Choose the first target replica that is online and in the ISR; the ISR stays."""
    isr = candidate.leadership.isr
    leader = None if candidate.is_held else _first(candidate, isr)
    return None if leader is None else Choice(leader, isr, candidate.replicas)


def preferred(candidate: Candidate) -> Choice | None:
    """Choose the first replica of the assignment if it is online and in the ISR, otherwise none; the ISR stays."""
    isr = candidate.leadership.isr
    first = candidate.replicas[:1]
    is_able = bool(first) and first[0] in candidate.online and first[0] in isr and not candidate.is_held
    return Choice(first[0], isr, candidate.replicas) if is_able else None


def controlled_shutdown(candidate: Candidate) -> Choice | None:
    """Choose the first replica that is online and in the ISR; the ISR loses the members that are shutting down.

    If the leader held the partition, it also loses those that died or failed to follow meanwhile.
    """
    leaving = (*candidate.shutting_down, *candidate.unserved)
    isr = tuple(r for r in candidate.leadership.isr if r not in leaving)
    leader = _first(candidate, isr)
    return None if leader is None else Choice(leader, isr, candidate.served)


def _first(candidate: Candidate, isr: tuple[int, ...]) -> int | None:
    return next((r for r in candidate.replicas if r in isr and r in candidate.online), None)


def led_by(choice: Choice, current: LeaderAndIsr, controller_epoch: int) -> LeaderAndIsr:
    """Return the leadership that follows `current`, with the next leader epoch, once a leader or none has been chosen.

    A leader from outside the ISR starts as RECOVERING (KIP-704).
    """
    recovery = LeaderRecoveryState.RECOVERING if choice.is_unclean else current.leader_recovery_state
    epoch, version = current.leader_epoch + 1, current.partition_epoch + 1
    return LeaderAndIsr(choice.leader, epoch, choice.isr, version, controller_epoch, recovery)


def initial(online: tuple[int, ...], controller_epoch: int) -> LeaderAndIsr | None:
    """Return a new partition's first leadership: the first live replica leads all live ones, at leader epoch 0."""
    return LeaderAndIsr(online[0], INITIAL_LEADER_EPOCH, online, 0, controller_epoch) if online else None


def without_replicas(current: LeaderAndIsr, gone: Collection[int]) -> tuple[int, tuple[int, ...]]:
    """Return the leader and the ISR without the replicas in `gone`.

    If the leader is among them, the partition has no leader (-1). The ISR never becomes empty (KAFKA-5083): if all
    members go at once, all stay in it, because each of them has every committed record.
    """
    isr = tuple(r for r in current.isr if r not in gone) or current.isr
    return NO_LEADER if current.leader in gone else current.leader, isr


def without_data(candidate: Candidate, lost: Collection[int]) -> Choice:
    """Choose without replicas that lost their data; the ISR becomes empty if it has no other member.

    A live leader that stays in the ISR continues to lead, otherwise the first live member leads. The leader epoch rises
    even if no member leaves: a leader may be about to add one of the replicas to the ISR, relying on the data that it
    has lost (KIP-903).
    """
    current = candidate.leadership
    isr = tuple(r for r in current.isr if r not in lost)
    # A leader that held the partition may be replaced. The ISR becomes empty only if all members lost their data.
    isr = tuple(r for r in isr if r not in candidate.unserved) or isr
    goes_on = current.leader in isr and current.leader in candidate.served
    first = _first(candidate, isr)
    leader = current.leader if goes_on else NO_LEADER if first is None else first
    return Choice(leader, isr, tuple(r for r in candidate.served if r not in lost))
