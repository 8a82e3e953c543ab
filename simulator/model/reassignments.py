"""Reassignments: a target is stored (U1), replicas are added, and then the others removed (B3, B4, B6)."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.model.elections import Rows, first
from simulator.model.row import Row, within, without
from simulator.model.view import View
from transport.metadata import ReplicaAssignment


def moving_to(row: Row, target: Sequence[int]) -> ReplicaAssignment:
    """Return the assignment of a move: the target, followed by the rest of the original set (KIP-455)."""
    rest = without(row.origin, target)
    return ReplicaAssignment((*target, *rest), without(target, row.origin), rest)


def begin(row: Row, view: View) -> Rows:
    """Store a target that was asked for (U1): a new move, another target for one in progress, or its cancellation."""
    for target in view.asked.targets:
        yield from _begun(row, view, tuple(target))


def _begun(row: Row, view: View, target: tuple[int, ...]) -> Rows:
    added = without(target, row.origin)
    if not target or len(set(target)) < len(target) or not all(view.may_be_assigned(r) for r in added):
        return
    if view.holds(row.leader):
        return
    new = moving_to(row, target)
    if row.is_moving and row.leadership is not None:
        if first(new.replicas, row.isr, view) is None:
            return
        new = _or_back(row, view, new)
    if new == row.assignment:
        return
    if row.leadership is None:
        yield row.assigned(new)
        return
    # Abandoned replicas leave the ISR in the same commit; a leader among them is replaced.
    leader = row.leader if row.leader in new.replicas else first(new.replicas, row.isr, view)
    yield row.assigned(new).led(view.controller_epoch, leader, within(row.isr, new.replicas))


def _or_back(row: Row, view: View, new: ReplicaAssignment) -> ReplicaAssignment:
    """Return a move back in place of a cancellation that would leave too few members for acks=all."""
    is_cancelled = not (new.adding_replicas or new.removing_replicas)
    left = within(row.isr, new.replicas)
    if not is_cancelled or len(left) >= min(view.min_isr, len(row.isr)):
        return new
    helpers = without(row.isr, new.replicas)
    return ReplicaAssignment((*new.replicas, *helpers), (), helpers)


def bring_in(row: Row, view: View) -> Rows:
    """Raise the leader epoch of a move that is resumed (A1), while the ISR does not cover the target."""
    if row.leadership is not None and row.is_moving and not row.is_caught_up and not view.holds(row.leader):
        yield row.led(view.controller_epoch)


def lead_inside(row: Row, view: View) -> Rows:
    """Elect inside the target (B3), in its order, unless a live replica of it leads already; the ISR stays."""
    if row.leadership is None or not row.is_moving or not row.is_caught_up:
        return
    if (row.leader in row.target and view.is_online(row.leader)) or view.holds(row.leader):
        return
    leader = first(row.target, row.isr, view)
    if leader is not None:
        yield row.led(view.controller_epoch, leader)


def retire(row: Row, view: View) -> Rows:
    """Take the removing replicas out of the ISR (B4), once a live replica of the target leads."""
    isr = within(row.isr, row.target)
    if _may_end(row, view) and isr != row.isr:
        yield row.led(view.controller_epoch, isr=isr)


def complete(row: Row, view: View) -> Rows:
    """Replace the replicas by the target (B6), once a live replica of it leads; the others leave the ISR with that."""
    if _may_end(row, view):
        yield row.assigned(ReplicaAssignment(row.target)).led(view.controller_epoch, isr=within(row.isr, row.target))


def _may_end(row: Row, view: View) -> bool:
    is_led_inside = row.leader in row.target and view.is_online(row.leader)
    return row.is_moving and row.leadership is not None and row.is_caught_up and is_led_inside
