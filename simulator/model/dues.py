"""The debts of a controller to a partition at the end of an event, if its knowledge is beyond doubt."""

from __future__ import annotations

from typing import Final

from simulator.model.elections import first
from simulator.model.row import Row
from simulator.model.view import Standing, View
from transport.metadata import NO_LEADER

_GONE: Final = (Standing.DEAD, Standing.LOGLESS, Standing.STUCK)


def due(row: Row, view: View) -> str | None:
    """Return what should have been done about a partition, None if all has."""
    able = view.online(row.isr)
    if not able or view.holds(row.leader):
        return None
    if row.leader == NO_LEADER or view.standing(row.leader) in (*_GONE, Standing.UNFIT):
        return f"broker {first(row.replicas, able, view)} should lead it"
    gone = [r for r in row.isr if view.standing(r) in _GONE]
    return f"brokers {gone} should have left its ISR" if gone else None


def due_at_failover(row: Row, view: View) -> str | None:
    """Return what else a new controller should have done, None if it has."""
    is_ready = row.is_moving and row.leadership is not None and row.is_caught_up
    if is_ready and not view.holds(row.leader) and first(row.target, row.isr, view) is not None:
        return "its move should have ended"
    return None
