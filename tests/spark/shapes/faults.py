"""What is wrong with the plans of one instance, on one engine or on two that have to agree."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil

from attrs import evolve, frozen

from tests.spark.kernel.instances import Instance
from tests.spark.shapes.feasible import feasible
from tests.spark.shapes.plans import EngineOf, Plan, TookTooLong, blocks_for, in_process, planned, within
from tests.spark.shapes.rules import STILL, Rules, broken_rules, moved


@frozen
class Fault:
    """What is wrong with a plan: a few words that many have in common, and the details of this one."""

    what: str
    details: str


@frozen
class Outcome:
    """What came of an instance.

    Attributes:
        faults: What is wrong.
        plan: The plan; None where it took too long or broke down.
        refusal: Whether the refusal is right: "rightly", "wrongly", "undecided"; empty where there is a plan.
    """

    faults: tuple[Fault, ...]
    plan: Plan | None
    refusal: str = ""


def bound_of(given: Instance) -> float:
    """Return how many seconds of processor time a plan may take."""
    return 2.0 if len(given.names) <= 40 else 20.0 if len(given.names) <= 10_000 else 60.0


def judged(given: Instance, engine: str, engine_of: EngineOf = in_process, *, longest: float) -> Outcome:
    """Plan, and judge what comes of it.

    Args:
        given: The instance.
        engine: One of `ENGINES`: how its partitions are dealt.
        engine_of: What plans.
        longest: After how many seconds of processor time planning is ended.
    """
    plan = _attempt(given, engine, engine_of, longest)
    if isinstance(plan, Fault):
        return Outcome((plan,), None)
    slow = [Fault("slow", f"{plan.cpu:.1f} s")] if plan.cpu > bound_of(given) else []
    if plan.refusal is not None:
        found, rightly = _of_refusal(given, plan.refusal)
        return Outcome((*slow, *found), plan, rightly)
    # Both engines do the same again what they did alike at first.
    repeated = _again(given, plan, engine, longest) if engine != "spark" else ()
    return Outcome((*slow, *of_lists(given, plan), *repeated), plan)


def _attempt(given: Instance, engine: str, engine_of: EngineOf, longest: float) -> Plan | Fault:
    try:
        with within(longest):
            return planned(given, blocks_for(given, engine), engine_of)
    except TookTooLong:
        return Fault("slow: ended", f"after {longest:.0f} s")
    except Exception as broke:  # noqa: BLE001 (whatever a planner raises is its fault)
        return Fault(f"broke down: {type(broke).__name__}", traceback.format_exc())


def _of_refusal(given: Instance, refusal: str) -> tuple[list[Fault], str]:
    if "please report" in refusal:
        return [Fault("thrown away", refusal)], "wrongly"
    if "less even" in refusal:
        forced = "forced" if is_forced(given) else "nothing forced"
        return [Fault(f"refused as less even, {forced}", refusal)], "wrongly"
    if given.goal.brokers and "cannot be given its share" in refusal:
        return [], "rightly"
    exists = feasible(given)
    if exists is None:
        return [], "undecided"
    return ([Fault("refused where there is a plan", refusal)], "wrongly") if exists else ([], "rightly")


def of_lists(given: Instance, plan: Plan) -> Iterator[Fault]:
    """Yield which rules lists break, and what the summary says wrong of them."""
    broken = broken_rules(given, plan.lists)
    for rule in sorted({line.split(":")[0] for line in broken}):
        lines = [line for line in broken if line.startswith(f"{rule}:")]
        yield Fault(f"rule: {rule}", f"{len(lines)}, first {lines[0]}")
    assert plan.summary is not None
    cost = moved(given, plan.lists)
    if plan.summary.lower_bound > cost:
        yield Fault("lower bound above the plan", f"{plan.summary.lower_bound} and {cost} moved")
    if (told := plan.summary.moved_bytes) != cost and any(given.size):
        yield Fault("summary of another plan", f"{told} bytes, and {cost} moved")
    if not is_forced(given):
        yield from _of_evenness(given, plan)


def is_forced(given: Instance) -> bool:
    """Return whether rules force something to move or to change, whatever it does to evenness."""
    rules = Rules.of(given)
    if str(given.goal.kind) in STILL:
        return False
    wanted = [rules.wanted(topic, row) for (topic, _), row in zip(given.names, given.replicas, strict=True)]
    return any(rules.forced(row, count) or count != len(row) for row, count in zip(given.replicas, wanted, strict=True))


def _of_evenness(given: Instance, plan: Plan) -> Iterator[Fault]:
    """Compare the fullest receiver with before: only tolerance and whole replicas permit it to be fuller.

    Racks may oblige a broker to hold more than its share by capacity; what is right then is not told so simply.
    """
    rules = Rules.of(given)
    if any(rules.racks[b] is not None for b in rules.receivers):
        return
    capacity = [b.capacity for b in given.brokers.rows]
    for name, weights in (("replicas", [1] * len(given.size)), ("bytes", given.size), ("bytes in", given.bytes_in)):
        before, after = _loads(given.replicas, weights), _loads(plan.lists, weights)
        mean = sum(after.values()) / sum(capacity[b] for b in rules.receivers or range(len(capacity)))
        # One that is larger than any share sets apart the broker that has it, and others are evened around it.
        if max(weights) > mean * max(capacity):
            continue
        fullest = max((before[b] / capacity[b] for b in rules.receivers), default=0.0)
        for b in sorted(rules.receivers):
            heaviest = max((w for w, row in zip(weights, plan.lists, strict=True) if b in row), default=0)
            whole = max(ceil(mean * capacity[b]), heaviest) / capacity[b]
            most = max(max(fullest, mean) * (1 + given.goal.tolerance), whole)
            if after[b] > before[b] and after[b] / capacity[b] > most * (1 + 1e-9):
                id_ = given.brokers.rows[b].id
                yield Fault(f"fullest is fuller in {name}", f"broker {id_}: {before[b]} -> {after[b]}, mean {mean:.1f}")
                break


def _loads(lists: Sequence[Sequence[int]], weights: Sequence[int]) -> Counter[int]:
    loads = Counter[int]()
    for row, weight in zip(lists, weights, strict=True):
        loads.update(dict.fromkeys(row, weight))
    return loads


def _again(given: Instance, plan: Plan, engine: str, longest: float) -> Iterator[Fault]:
    """Plan again what was planned: nothing changes."""
    once = evolve(given, replicas=plan.lists)
    twice = _attempt(once, engine, in_process, longest)
    if isinstance(twice, Fault):
        yield evolve(twice, what=f"again: {twice.what}")
    elif twice.refusal is not None:
        yield Fault("again: refused", twice.refusal)
    elif changed := [row for row in zip(plan.lists, twice.lists, strict=True) if row[0] != row[1]]:
        moves = [row for row in changed if set(row[0]) != set(row[1])]
        what = "moves" if moves else "other leaders"
        yield Fault(f"again: {what}", f"{len(moves or changed)} partitions, first {(moves or changed)[0]}")
