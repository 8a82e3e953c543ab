"""Faults of the plans of one instance, on one engine or on two that must agree."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from attrs import evolve, frozen

from tests.spark.kernel.instances import Instance
from tests.spark.shapes.feasible import feasible
from tests.spark.shapes.fuller import fuller
from tests.spark.shapes.plans import EngineOf, ShapePlan, TookTooLong, blocks_for, in_process, planned, within
from tests.spark.shapes.rules import FORCED_ONLY, STILL, Rules, broken_rules, moved


@frozen
class PlanFault:
    """A fault of a plan: a few words that many have in common, and the details of this one."""

    what: str
    details: str


_CHANGES = ("again: moves", "again: other leaders")


@frozen
class InstanceOutcome:
    """The result of an instance.

    Attributes:
        faults: What is wrong.
        plan: The plan; None where it took too long or broke down.
        refusal: Whether the refusal is right: "rightly", "wrongly", "undecided"; empty where there is a plan.
        moves_again: Whether planning again changes a plan that says that the bound on work ended it. That is no fault.
    """

    faults: tuple[PlanFault, ...]
    plan: ShapePlan | None
    refusal: str = ""
    moves_again: bool = False


def bound_of(given: Instance) -> float:
    """Return how many seconds of processor time a plan may take."""
    return 2.0 if len(given.names) <= 40 else 20.0 if len(given.names) <= 10_000 else 60.0


def judged(given: Instance, engine: str, engine_of: EngineOf = in_process, *, longest: float) -> InstanceOutcome:
    """Plan, and judge what comes of it.

    Args:
        given: The instance.
        engine: One of `ENGINES`: how its partitions are dealt.
        engine_of: What plans.
        longest: After how many seconds of processor time planning is ended.
    """
    plan = _attempt(given, engine, engine_of, longest)
    if isinstance(plan, PlanFault):
        return InstanceOutcome((plan,), None)
    slow = [PlanFault("slow", f"{plan.cpu:.1f} s")] if plan.cpu > bound_of(given) else []
    if plan.refusal is not None:
        found, rightly = _of_refusal(given, plan.refusal)
        return InstanceOutcome((*slow, *found), plan, rightly)
    # Both engines do the same again what they did alike at first.
    repeated = tuple(_again(given, plan, engine, longest)) if engine != "spark" else ()
    may_repeat = plan.is_cut or plan.spares
    excused = [fault for fault in repeated if may_repeat and fault.what in _CHANGES]
    faults = [fault for fault in repeated if fault not in excused]
    return InstanceOutcome((*slow, *of_lists(given, plan), *faults), plan, moves_again=bool(excused))


def _attempt(given: Instance, engine: str, engine_of: EngineOf, longest: float) -> ShapePlan | PlanFault:
    try:
        with within(longest):
            return planned(given, blocks_for(given, engine), engine_of)
    except TookTooLong:
        return PlanFault("slow: ended", f"after {longest:.0f} s")
    except Exception as broke:  # noqa: BLE001 (whatever a planner raises is its fault)
        return PlanFault(f"broke down: {type(broke).__name__}", traceback.format_exc())


def _of_refusal(given: Instance, refusal: str) -> tuple[list[PlanFault], str]:
    if "please report" in refusal:
        return [PlanFault("thrown away", refusal)], "wrongly"
    if "less even" in refusal:
        forced = "forced" if is_forced(given) else "nothing forced"
        return [PlanFault(f"refused as less even, {forced}", refusal)], "wrongly"
    if given.goal.brokers and "cannot be given its share" in refusal:
        return [], "rightly"
    exists = feasible(given)
    if exists is None:
        return [], "undecided"
    return ([PlanFault("refused where there is a plan", refusal)], "wrongly") if exists else ([], "rightly")


def of_lists(given: Instance, plan: ShapePlan) -> Iterator[PlanFault]:
    """Yield which rules lists break, and what the summary says wrong of them."""
    broken = broken_rules(given, plan.lists, beside=plan.beside, spares=plan.spares)
    if plan.spares and feasible(given):
        yield PlanFault("racks stay as they are", "there is a plan that repairs them")
    for rule in sorted({line.split(":")[0] for line in broken}):
        lines = [line for line in broken if line.startswith(f"{rule}:")]
        yield PlanFault(f"rule: {rule}", f"{len(lines)}, first {lines[0]}")
    # Only disks can be a reason not to count what brokers keep, because all plans of such a goal cost the same.
    wrong = broken_rules(given, plan.lists, beside=True, spares=plan.spares)
    ignores = str(given.goal.kind) in FORCED_ONLY and bool(wrong)
    if ignores and not plan.beside and feasible(given, beside=True):
        yield PlanFault("racks without what brokers keep", "there is a plan with it")
    assert plan.summary is not None
    cost = moved(given, plan.lists)
    if plan.summary.lower_bound > cost:
        yield PlanFault("lower bound above the plan", f"{plan.summary.lower_bound} and {cost} moved")
    if (told := plan.summary.moved_bytes) != cost and any(given.size):
        yield PlanFault("summary of another plan", f"{told} bytes, and {cost} moved")
    if not is_forced(given):
        yield from (PlanFault(f"fullest is fuller in {name}", told) for name, told in fuller(given, plan.lists))


def is_forced(given: Instance) -> bool:
    """Return whether rules force something to move or to change, whatever it does to evenness."""
    rules = Rules.of(given)
    if str(given.goal.kind) in STILL:
        return False
    wanted = [rules.wanted(topic, row) for (topic, _), row in zip(given.names, given.replicas, strict=True)]
    return any(rules.forced(row, count) or count != len(row) for row, count in zip(given.replicas, wanted, strict=True))


def _again(given: Instance, plan: ShapePlan, engine: str, longest: float) -> Iterator[PlanFault]:
    """Plan again what was planned: nothing changes."""
    once = evolve(given, replicas=plan.lists)
    twice = _attempt(once, engine, in_process, longest)
    if isinstance(twice, PlanFault):
        yield evolve(twice, what=f"again: {twice.what}")
    elif twice.refusal is not None:
        yield PlanFault("again: refused", twice.refusal)
    elif changed := [row for row in zip(plan.lists, twice.lists, strict=True) if row[0] != row[1]]:
        moves = [row for row in changed if set(row[0]) != set(row[1])]
        what = _CHANGES[0] if moves else _CHANGES[1]
        yield PlanFault(what, f"{len(moves or changed)} partitions, first {(moves or changed)[0]}")
