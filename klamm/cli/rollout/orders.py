"""Orders to the rollouts of a controller, and what an order would do: that of a dry run, for other rollouts as well."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from controller.admin.client import AdminClient
from controller.admin.plan_ids import PlanIds
from controller.model.rollout_rows import settings_fault
from controller.rollout.orders import changed, refusal, refusal_of_unusable
from controller.rollout.states import MoveState
from klamm.cli.connect import Cluster
from klamm.cli.formats import DRY_RUN, View
from klamm.cli.plan_ids import other_cluster_fault
from klamm.cli.rollout.described import complete, report_of, state_of
from klamm.cli.rollout.documents import ChangedRollout
from klamm.cli.rollout.naming import Named, Nowhere, Refused, operator
from klamm.cli.rollout.report import Report
from transport.messages import RolloutChanges, RolloutDescription, RolloutOrder


def give(
    cluster: Cluster,
    named: Named,
    order: RolloutOrder,
    changes: RolloutChanges | None = None,
    *,
    without_dead: bool = False,
    ids: PlanIds | None = None,
    dry_run: bool,
) -> View:
    """Give an order to the controller, and return the rollout as it is then.

    With the `ids` of a plan, one for another cluster is refused.
    """
    wanted = changes or RolloutChanges()

    async def ask(admin: AdminClient, name: str) -> View:
        if ids is not None and (fault := other_cluster_fault(ids.compare(await admin.cluster_id(), ()))):
            raise Refused(fault)
        found = await admin.describe_rollouts([name])
        if not found:
            raise Nowhere(name)
        if dry_run:
            return await _checked(admin, found[0], order, wanted)
        told = await admin.change_rollout(name, order, wanted, without_dead=without_dead, by=operator())
        if told is None:
            return View(ChangedRollout(name, "removed"), [f"rollout {name}: removed"])
        report = await complete(admin, told)
        what = report.settings if order is RolloutOrder.SET else report.line
        return View(ChangedRollout(name, "ordered", status=report.document), [f"rollout {name}: {what}"])

    return named.ask(cluster, ask)


async def _checked(admin: AdminClient, told: RolloutDescription, order: RolloutOrder, changes: RolloutChanges) -> View:
    """Return what an order would do. Raises Refused if the controller would refuse it."""
    if told.fault and order is not RolloutOrder.REMOVE:
        raise Refused(refusal_of_unusable(told.name, told.fault))
    # A quarantined rollout can be removed whatever its state.
    fault = None if told.fault else refusal(told.name, state_of(told), order)
    if fault is not None:
        raise Refused(fault)
    report = await complete(admin, told)
    if order is RolloutOrder.SET:
        settings = changed(told.settings, changes)
        fault = settings_fault(settings)
        if fault is not None:
            raise Refused(fault)
        return would(report, f"would have {report_of(replace(told, settings=settings)).settings}")
    return would(report, effect(order, report.counts))


def effect(order: RolloutOrder, counts: Mapping[MoveState, int]) -> str:
    """Return what an order would do to a rollout with so many moves in each state."""
    flying = counts[MoveState.IN_FLIGHT] + counts[MoveState.GOING_BACK]
    done = counts[MoveState.DONE]
    return {
        RolloutOrder.PAUSE: f"would begin no more moves, and continue the {flying:,} in flight",
        RolloutOrder.RESUME: "would begin moves again",
        RolloutOrder.SET: "would have the new limits and throttle",
        RolloutOrder.ABORT: f"would cancel {flying:,} in flight, and keep {done:,} that are done",
        RolloutOrder.UNDO: f"would cancel {flying:,} in flight, and move {done:,} back",
        RolloutOrder.REMOVE: "would be removed, and could not be undone any more",
    }[order]


def would(report: Report, what: str) -> View:
    """Return the view of a dry run, in which a rollout stays as it is."""
    document = ChangedRollout(report.name, "checked", status=report.document)
    return View(document, [f"rollout {report.name}: {what}", DRY_RUN])
