"""Rollouts that a controller carries out, as it describes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from controller.admin.client import AdminClient
from controller.rollout.states import HeldBy, MoveState, Phase, RolloutState
from klamm.cli.formats import known
from klamm.cli.rollout.documents import SettingsRow
from klamm.cli.rollout.naming import Nowhere
from klamm.cli.rollout.report import Odd, Report
from klamm.cli.units import rate, size
from transport.host import Host
from transport.messages import UNKNOWN, UNTHROTTLED, RolloutDescription
from transport.wire import UnsupportedApi

_ODD: Final = frozenset({MoveState.OVERRIDDEN, MoveState.SKIPPED, MoveState.FAILED, MoveState.DELETED})
_CARRIED_BY: Final = "the controller"


def state_of(told: RolloutDescription) -> RolloutState:
    """Return the state of a rollout."""
    return RolloutState(Phase(told.phase), frozenset(map(HeldBy, told.holds)))


def report_of(told: RolloutDescription, odd: tuple[Odd, ...] = ()) -> Report:
    """Return what there is to show of a rollout."""
    counts = dict(told.counts)
    return Report(
        told.name,
        state_of(told),
        told.why,
        told.started_ms,
        _CARRIED_BY,
        {state: counts.get(state.value, 0) for state in MoveState},
        {
            "done": counts.get(MoveState.DONE.value, 0),
            "in_flight": sum(counts.get(state.value, 0) for state in (MoveState.IN_FLIGHT, MoveState.GOING_BACK)),
            "bytes_left": told.bytes_left,
            "bytes_per_second": known(told.rate),
            "seconds_left": None if told.left_ms == UNKNOWN else round(told.left_ms / 1000),
            "error": None if told.error_percent == UNKNOWN else told.error_percent / 100,
            "waits": dict(told.waits),
            "at": Host().now_ms(),
        },
        odd,
        tuple(_more(told)),
        {} if told.fault else _others(told),
        told.fault,
    )


def _others(told: RolloutDescription) -> dict[str, object]:
    settings = SettingsRow.of(told.settings)
    return {"queued_behind": max(told.place, 0), "started_by": told.started_by or None, "settings": settings}


def _more(told: RolloutDescription) -> Iterator[tuple[str, str]]:
    """Yield what only a controller's rollouts have."""
    if told.started_by:
        yield "started by", told.started_by
    if told.place > 0:
        yield "in the queue", f"behind {told.place:,} other{'s' if told.place > 1 else ''}"
    settings = told.settings
    per_broker = f"{settings.into:,} in, {settings.out_of:,} out, {settings.leaders:,} leaders for each broker"
    in_bytes = "" if settings.bytes == UNTHROTTLED else f", {size(settings.bytes)}"
    yield "at once", f"{per_broker}; {settings.in_all:,} in all{in_bytes}"
    yield "throttle", f"{rate(settings.throttle)}{', found by itself' if settings.adapts else ''}"


async def look(admin: AdminClient, name: str) -> Report:
    """Return a rollout with the moves that are not as planned. Raises Nowhere if there is none."""
    found = await admin.describe_rollouts([name])
    if not found:
        raise Nowhere(name)
    return await complete(admin, found[0])


async def complete(admin: AdminClient, told: RolloutDescription) -> Report:
    """Return what there is to show of a rollout, with the moves that are not as planned."""
    counts = dict(told.counts)
    is_undone = told.phase == Phase.UNDONE.value
    odd = _ODD | ({MoveState.DONE} if is_undone else frozenset())
    wanted = [state.value for state in odd if counts.get(state.value)]
    moves = [move async for move in admin.describe_rollout_moves(told.name, wanted)] if wanted else []
    return report_of(told, tuple(Odd(str(move.tp), MoveState(move.state), move.why) for move in moves if move.why))


async def refuse_running(admin: AdminClient) -> None:
    """Raise click.ClickException if the controller carries out rollouts of its own."""
    try:
        found = await admin.describe_rollouts()
    except UnsupportedApi:
        return  # a controller of an earlier release
    running = [told.name for told in found if not state_of(told).is_over]
    if running:
        raise click.ClickException(
            f"the controller carries out rollout {running[0]} itself: wait until it is over, or let it carry out this "
            "plan after that one, with `klamm rollout start`"
        )
