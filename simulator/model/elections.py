"""First leaders, elections, and replicas that leave the ISR.

Each rule yields the rows that may follow a row; it yields nothing if there is nothing to decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations
from typing import Final

from attrs import evolve
from msgspec.structs import replace

from simulator.model.row import Row, within, without
from simulator.model.view import Proposal, Standing, View
from transport.messages import ElectionType
from transport.metadata import INITIAL_LEADER_EPOCH, NO_LEADER, LeaderAndIsr, LeaderRecoveryState

Rows = Iterator[Row]


def first(replicas: tuple[int, ...], isr: tuple[int, ...], view: View) -> int | None:
    """Return the first of the replicas, in their order, that is online and in the ISR."""
    return next((r for r in replicas if r in isr and view.is_online(r)), None)


def first_leader(row: Row, view: View) -> Rows:
    """Let a new partition be led by its first live replica; all live replicas form the ISR, in the assigned order."""
    online = view.online(row.replicas)
    if row.leadership is None and online:
        yield Row(row.assignment, LeaderAndIsr(online[0], INITIAL_LEADER_EPOCH, online, 0, view.controller_epoch))


# --- elections --------------------------------------------------------------------------------------------------


def election(row: Row, view: View) -> Rows:
    """Choose a leader, in the way that the event requires."""
    if row.leadership is None:
        return
    for elect in _ELECTIONS.get(view.event, (offline,)):
        yield from elect(row, view)


def offline(row: Row, view: View) -> Rows:
    """Replace a leader that is not online: the first online member of the ISR leads, the others stay members.

    Members that failed to lead stay, too. Without others one of them leads, and otherwise a member that failed to
    follow: the leader itself if it is one of them, or else the first. Without those, the first online replica may lead
    alone; whether that is allowed is for others to check.
    """
    if view.is_online(row.leader) or view.holds(row.leader):
        return
    isr = tuple(r for r in row.isr if view.may_join(r))
    leader = first(row.replicas, isr, view)
    if leader is None:
        isr = isr or tuple(r for r in row.isr if view.standing(r) is Standing.STUCK)
        if row.leader in isr:
            return
        leader = next((r for r in row.replicas if r in isr), None)
    if leader is not None:
        yield row.led(view.controller_epoch, leader, isr)
        return
    # A live member of the ISR has all records, and will lead again once it has an address.
    if any(map(view.holds, row.isr)):
        return
    for replica in view.online(row.replicas):
        yield row.led(view.controller_epoch, replica, (replica,), LeaderRecoveryState.RECOVERING)
        if replica not in view.recalled:
            return


def preferred(row: Row, view: View) -> Rows:
    """Let the first replica lead, if it is online and in the ISR and does not lead already; the ISR stays."""
    leader = row.replicas[0]
    is_able = leader in row.isr and view.is_online(leader) and not view.holds(row.leader)
    if leader != row.leader and is_able:
        yield row.led(view.controller_epoch, leader)


def requested(row: Row, view: View) -> Rows:
    """Hold the election that an administrator asked for."""
    if ElectionType.PREFERRED in view.asked.elections:
        yield from preferred(row, view)
    if ElectionType.UNCLEAN in view.asked.elections:
        yield from offline(row, view)


def rebalance(row: Row, view: View) -> Rows:
    """Return leadership to the preferred leader, unless the partition is being reassigned."""
    if not row.is_moving:
        yield from preferred(row, view)


def controlled_shutdown(row: Row, view: View) -> Rows:
    """Move leadership off a broker that shuts down; the ISR loses the members that do.

    Members that died or failed while the leader had no usable address leave with it.
    """
    if view.standing(row.leader) is not Standing.LEAVING or len(row.replicas) == 1:
        return
    staying = tuple(r for r in row.isr if view.standing(r) is not Standing.LEAVING)
    leader = first(row.replicas, staying, view)
    if leader is not None:
        for isr in dict.fromkeys((staying, _following(staying, view))):
            yield row.led(view.controller_epoch, leader, isr)


def _following(isr: tuple[int, ...], view: View) -> tuple[int, ...]:
    """Return the members of an ISR that are alive and can follow."""
    return tuple(r for r in isr if view.standing(r) not in (Standing.DEAD, Standing.LOGLESS, Standing.STUCK))


def _either(row: Row, view: View) -> Rows:
    """Hold the elections of a new controller: where there is no leader, and those requested in the store."""
    yield from offline(row, view)
    yield from preferred(row, view)


_ELECTIONS: Final = {
    "AutoPreferredReplicaLeaderElection": (rebalance,),
    "ControlledShutdown": (),
    "ElectLeaders": (requested,),
    "Failover": (_either,),
    "PreferredReplicaElection": (preferred,),
    "RolloutLook": (preferred,),
    "RolloutsDue": (preferred,),
}
"""The elections that events other than changes of brokers and topics hold."""


def order(row: Row, view: View) -> Rows:
    """Give the replicas the order that was asked for, and elect the first of them in the same commit."""
    for replicas in view.asked.orders:
        is_order = sorted(replicas) == sorted(row.replicas) and replicas != row.replicas and not view.holds(row.leader)
        if is_order and not row.is_moving and replicas[0] in row.isr and view.is_online(replicas[0]):
            yield row.assigned(evolve(row.assignment, replicas=replicas)).led(view.controller_epoch, replicas[0])


# --- the ISR ----------------------------------------------------------------------------------------------------


def leave(row: Row, view: View) -> Rows:
    """Replace a leader that leaves, or take what leaves out of the ISR: only that, where nobody in the ISR can lead."""
    if row.leadership is None:
        return
    standing = view.standing(row.leader)
    if view.event == "ControlledShutdown":
        shrunk = shrink(row, view)
        if standing is Standing.LEAVING:
            yield from controlled_shutdown(row, view)
            # A follower leaves while the shutdown of its leader, begun before it, is not over.
            shrunk = (each for each in shrunk if each.leader == row.leader)
        yield from shrunk
        return
    elected = tuple(offline(row, view))
    yield from elected
    is_clean = any(each.leader in row.isr for each in elected)
    if not (is_clean and standing is Standing.DEAD):
        yield from shrink(row, view)


def shrink(row: Row, view: View) -> Rows:
    """Take replicas that are gone out of the ISR and leadership; if no member would be left, all stay members.

    The dead ones always leave. Others that are not online may have been allowed to stay, each as the last member.
    """
    if row.leadership is None or view.holds(row.leader):
        return
    there = dict.fromkeys((*row.isr, row.leader))
    dead = [r for r in there if r != NO_LEADER and view.standing(r) is Standing.DEAD]
    others = [r for r in there if view.standing(r) in (Standing.LEAVING, Standing.LOGLESS, Standing.STUCK)]
    for more in chain.from_iterable(combinations(others, n) for n in range(len(others), -1, -1)):
        gone = (*dead, *more)
        isr = without(row.isr, gone) or row.isr
        leader = NO_LEADER if row.leader in gone else row.leader
        if (leader, isr) != (row.leader, row.isr):
            yield row.led(view.controller_epoch, leader, isr)


def expel(row: Row, view: View) -> Rows:
    """Take replicas that lost their data out of the ISR, even the last; the leader epoch rises in any case."""
    if row.leadership is None or not view.emptied.intersection(row.replicas):
        return
    isr = without(row.isr, view.emptied)
    if view.holds(row.leader):
        # Its ISR still has the members that died or failed meanwhile.
        isr = _following(isr, view) or isr
    leader = row.leader
    if leader not in isr or not view.is_served(leader):
        chosen = first(row.replicas, isr, view)
        leader = NO_LEADER if chosen is None else chosen
    yield row.led(view.controller_epoch, leader, isr)


def alter(row: Row, view: View) -> Rows:
    """Grant the ISR that the leader proposes, in the same leader epoch."""
    now = row.leadership
    for proposal in view.asked.proposals:
        if now is not None and _is_current(proposal, now) and _is_eligible(proposal, row, view):
            yield evolve(
                row,
                leadership=replace(
                    now,
                    isr=proposal.isr,
                    partition_epoch=now.partition_epoch + 1,
                    controller_epoch=view.controller_epoch,
                    leader_recovery_state=LeaderRecoveryState(proposal.recovery),
                ),
            )


def next_epoch(row: Row, view: View) -> Rows:
    """Raise the leader epoch alone, for a leader that waits for it."""
    if row.leader != NO_LEADER and not view.holds(row.leader):
        yield row.led(view.controller_epoch)


def _is_current(proposal: Proposal, now: LeaderAndIsr) -> bool:
    based_on = (proposal.leader, proposal.leader_epoch, proposal.partition_epoch)
    return based_on == (now.leader, now.leader_epoch, now.partition_epoch)


def _is_eligible(proposal: Proposal, row: Row, view: View) -> bool:
    """Return whether every member may join or stay, and a recovery is not begun or left half-way."""
    if proposal.recovery not in tuple(LeaderRecoveryState):
        return False
    kept = within(row.isr, proposal.isr)
    able = all(view.is_served(r) or view.holds(r) if r in kept else view.may_join(r) for r in proposal.isr)
    if proposal.recovery == LeaderRecoveryState.RECOVERING:
        assert row.leadership is not None
        was_recovering = row.leadership.leader_recovery_state is LeaderRecoveryState.RECOVERING
        able = able and was_recovering and len(proposal.isr) == 1
    is_a_set = len(set(proposal.isr)) == len(proposal.isr)
    return able and is_a_set and proposal.leader in proposal.isr and set(proposal.isr) <= set(row.replicas)
