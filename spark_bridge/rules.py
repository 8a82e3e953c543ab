"""The hard rules, checked on a finished plan by code that is independent of the planner.

`violations` checks one block, on any engine. `disk_tally` and `disk_violations` check the one rule that concerns all
blocks together. They change nothing. A violation means that the planner is wrong; the plan is then not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.model.block import BYTES, NOBODY, Block
from spark_bridge.model.brokers import NO_RACK, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.model.lists import counts, nth, shared, widened

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


def violations(
    block: Block, brokers: Brokers, goal: Goal, *, counts_rests: bool = True, spares: bool = False
) -> list[str]:
    """Return the violations of hard rules in a planned block: a line for each, in the order of partitions and rules.

    A line names the partition, its broker ids before and after, and the rule. A broker that the goal removes counts as
    draining, whatever its state. Unless `counts_rests`, racks may be filled as if brokers that do not receive kept
    nothing. If the plan `spares` repairs of racks, partitions may stay as little spread as they were.
    """
    plan = _Plan.of(block, brokers, goal)
    rules = [*_RULES, *_RULES_OF[goal.kind], *((_is_spread_beside,) if counts_rests else ())]
    if spares:
        rules = [_is_no_less_spread if rule is _is_spread else rule for rule in rules]
    found = [(row, place, text) for place, rule in enumerate(rules) for row, text in rule(plan)]
    return [f"{_moved(block, brokers, row)}: {text}" for row, _, text in sorted(found)]


def disk_tally(block: Block, brokers: Brokers) -> Counts:
    """Return each broker's bytes after the plan, and its bytes of new replicas: (B, 2), to be summed over blocks."""
    size = np.broadcast_to(block.weights[:, BYTES, None], block.after.shape)
    there = block.after != NOBODY
    new = there & ~shared(block.after, block.before)
    return np.stack([_sums(block.after[slots], size[slots], len(brokers)) for slots in (there, new)], axis=1)


def disk_violations(brokers: Brokers, tally: Counts) -> list[str]:
    """Return a line for each broker that gains data beyond the size of its disk, given the sum of all tallies."""
    over = (tally[:, 0] > brokers.disk) & (tally[:, 1] > 0)
    return [
        f"broker {brokers.ids[b]}: gains {tally[b, 1]} bytes and would have {tally[b, 0]}, "
        f"more than its disk of {brokers.disk[b]}"
        for b in np.flatnonzero(over)
    ]


@frozen(eq=False)
class _Plan:
    """A planned block and what the rules require of it; P partitions, R replicas before, W after, B brokers.

    Attributes:
        before: (P, R) broker indices.
        after: (P, W) broker indices; values that are not an index were replaced by NOBODY.
        ids: (B) broker ids.
        broken: (P) whether a list has a gap, or a value that is not the index of a broker.
        new: (P, W) replicas on brokers that had none of the partition before.
        left: (P, R) replicas that were removed from their brokers.
        lost: (P) how many replicas were removed from brokers that do not serve, beyond those that a list that gets
            shorter may drop.
        wanted: (P) replication factor.
        receives: (B) whether a broker may receive replicas.
        drained: (B) whether all replicas of a broker must leave.
        gone: (B) whether a broker may lead only partitions that no other broker can lead.
        named: (B) whether the goal names a broker.
        limit: (P) the most replicas of the partition that a rack may have.
        crammed: (P) the number of new replicas in racks that need fewer, beside what brokers keep that do not receive.
        crowded_before: (P) the number of replicas above the limit of their racks, before.
        crowded: (P) the same, after.
        forced: (P) the number of replicas that must be new.
    """

    before: NDArray[np.int32]
    after: NDArray[np.int32]
    ids: NDArray[np.int32]
    broken: Flags
    new: Flags
    left: Flags
    lost: Counts
    wanted: Counts
    receives: Flags
    drained: Flags
    gone: Flags
    named: Flags
    limit: Counts
    crammed: Counts
    crowded_before: Counts
    crowded: Counts
    forced: Counts

    @classmethod
    def of(cls, block: Block, brokers: Brokers, goal: Goal) -> _Plan:
        before, known = block.before, (block.after >= NOBODY) & (block.after < len(brokers))
        after = np.where(known, block.after, NOBODY).astype(np.int32)
        named = np.isin(brokers.ids, sorted(goal.brokers))
        removed = named & (goal.kind is GoalKind.REMOVE_BROKERS)
        gone = removed | brokers.in_state(BrokerState.DRAINING) | ~brokers.serves
        # A broker that does not serve keeps its replicas unless the goal removes it. A draining broker keeps them under
        # two goals: relieving moves only replicas of the named brokers, and choosing leaders moves none.
        leaves = removed | brokers.in_state(BrokerState.DRAINING) | (~brokers.serves & goal.dead_is_gone)
        drained = leaves & (goal.kind not in {GoalKind.RELIEVE, GoalKind.LEADERS})
        relieved = named & (goal.kind is GoalKind.RELIEVE)
        keeps = ~brokers.serves & ~drained & ~(relieved & goal.dead_is_gone)
        excluded = np.isin(brokers.ids, sorted(goal.exclude))
        receives = brokers.in_state(BrokerState.LIVE) & brokers.serves & ~removed & ~excluded
        wanted = _wanted(block, goal)
        racks = _Racks.of(brokers, receives, wanted, keeps, counted=goal.racks)
        kept = np.where(_at(drained, before), NOBODY, before)
        # What relieved brokers have may leave.
        rests = ~receives & ~drained & (keeps | ~relieved)
        beside = racks.beside(np.where(_at(rests, before), before, NOBODY), receives, wanted)
        new = (after != NOBODY) & ~shared(after, before)
        left = (before != NOBODY) & ~shared(before, after)
        # A list that gets shorter drops replicas on brokers that do not serve first.
        shorter = np.maximum(counts(kept != NOBODY) - wanted, 0)
        dropped = np.minimum(shorter, counts(_at(keeps, before)))
        # Replicas must move if their broker drains or their rack has too many; the others could stay.
        keepable = counts(kept != NOBODY) - dropped - racks.crowded(kept)
        return cls(
            before=before,
            after=after,
            ids=brokers.ids,
            broken=~known.all(axis=1) | ((after[:, :-1] == NOBODY) & (after[:, 1:] != NOBODY)).any(axis=1),
            new=new,
            left=left,
            lost=np.maximum(counts(left & _at(keeps, before)) - shorter, 0),
            wanted=wanted,
            receives=receives,
            drained=drained,
            gone=gone,
            named=named,
            limit=racks.limit,
            crammed=racks.crammed(new, after, beside),
            crowded_before=racks.crowded(before),
            crowded=racks.crowded(after),
            forced=np.maximum(wanted - keepable, 0),
        )


@frozen(eq=False)
class _Racks:
    """Racks by number (a broker without a rack counts as its own), and how many replicas of a partition each may have.

    Attributes:
        rack: (B) the number of each broker's rack.
        limit: (P) how many replicas a rack may have; larger than any list if racks do not count.
        keeps: (B) the brokers that keep what they have, even if their rack has too many.
        counted: Whether racks count.
    """

    rack: NDArray[np.int32]
    limit: Counts
    keeps: Flags
    counted: bool

    @classmethod
    def of(cls, brokers: Brokers, receives: Flags, wanted: Counts, keeps: Flags, *, counted: bool) -> _Racks:
        own = len(brokers.rack_names) + np.arange(len(brokers))
        rack = np.where(brokers.rack == NO_RACK, own, brokers.rack).astype(np.int32)
        limit = _least_limit(np.bincount(rack[receives]), wanted)
        return cls(rack, limit if counted else np.full_like(wanted, np.iinfo(np.int64).max), keeps, counted)

    def crowded(self, replicas: NDArray[np.int32]) -> Counts:
        """Return the number of replicas of each partition that are too many in their racks, without those kept."""
        if not self.keeps.any():
            return counts(nth(self._of(replicas)) * (replicas != NOBODY) > self.limit[:, None])
        fixed = _at(self.keeps, replicas)
        order = np.argsort(~fixed, axis=1, kind="stable")
        ordered = np.take_along_axis(replicas, order, axis=1)
        loose = (ordered != NOBODY) & ~np.take_along_axis(fixed, order, axis=1)
        return counts((nth(self._of(ordered)) > self.limit[:, None]) & loose)

    def beside(self, rests: NDArray[np.int32], receives: Flags, wanted: Counts) -> Counts:
        """Return (P) the smallest number of replicas in a rack with which all have a place, given those that rest."""
        receivers, found = np.bincount(self.rack[receives], minlength=int(self.rack.max()) + 1), self.limit.copy()
        rack = self._of(rests)
        # The first resting replica of a rack makes room for one more than its receivers do, the next for two more.
        room = np.where(rests == NOBODY, np.iinfo(np.int64).max, receivers[rack] + nth(rack))
        # Without racks, and where nothing rests, no smaller limit suffices.
        is_smaller = self.counted and bool((rests != NOBODY).any())
        for limit in range(1, int(wanted.max(initial=1))) if is_smaller else ():
            places = np.minimum(receivers, limit).sum() + counts(room <= limit)
            found = np.where((places >= wanted) & (limit < found), limit, found)
        return found

    def crammed(self, new: Flags, after: NDArray[np.int32], beside: Counts) -> Counts:
        """Return (P) the new replicas in racks above a limit (P), for partitions of which it is the smaller one."""
        rack = self._of(after)
        there = np.stack([counts(rack == rack[:, column, None]) for column in range(rack.shape[1])], axis=1)
        return counts(new & (there > beside[:, None]) & (beside < self.limit)[:, None])

    def _of(self, replicas: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the racks of replicas, NOBODY in empty places."""
        return np.where(replicas != NOBODY, self.rack[replicas], NOBODY).astype(np.int32)


def _least_limit(receivers: NDArray[np.int64], wanted: Counts) -> Counts:
    """Return how many replicas a rack may have: the smallest number that leaves a place for all among the receivers.

    Args:
        receivers: How many brokers of each rack may receive replicas.
        wanted: (P) replication factors; those for which there are too few receivers have no limit.
    """
    deep = np.arange(1, receivers.max(initial=0) + 1)
    room = np.cumsum((receivers[:, None] >= deep).sum(axis=0))
    limit = 1 + np.searchsorted(room, wanted)
    # More replicas than receivers: no limit could be met.
    return np.where(limit > len(room), wanted, limit)


Found = Iterator[tuple[int, str]]
"""Rows that break a rule, each with a description of the violation."""


def _has_a_list(plan: _Plan) -> Found:
    for row in np.flatnonzero(plan.broken):
        yield int(row), "the list has a gap or an unknown broker"


def _has_its_factor(plan: _Plan) -> Found:
    count = counts(plan.after != NOBODY)
    for row in np.flatnonzero(count != plan.wanted):
        yield int(row), f"has {count[row]} replicas, not {plan.wanted[row]}"


def _has_no_duplicates(plan: _Plan) -> Found:
    yield from _slots(plan, plan.after, (nth(plan.after) > 1) & (plan.after != NOBODY), "is a duplicate")


def _goes_to_receivers(plan: _Plan) -> Found:
    yield from _slots(plan, plan.after, plan.new & ~_at(plan.receives, plan.after), "may not receive replicas")


def _leaves_the_drained(plan: _Plan) -> Found:
    stays = ~plan.new & _at(plan.drained, plan.after)
    yield from _slots(plan, plan.after, stays, "is draining or dead, but keeps its replica")


def _stays_on_the_down(plan: _Plan) -> Found:
    for row in np.flatnonzero(plan.lost):
        yield int(row), f"{plan.lost[row]} replicas leave brokers that do not serve and that the goal does not remove"


def _is_spread(plan: _Plan) -> Found:
    for row in np.flatnonzero(plan.crowded).tolist():
        yield row, _crowd(plan, row)


def _is_no_less_spread(plan: _Plan) -> Found:
    for row in np.flatnonzero(plan.crowded > plan.crowded_before).tolist():
        yield row, f"{_crowd(plan, row)}, {plan.crowded_before[row]} before"


def _is_spread_beside(plan: _Plan) -> Found:
    for row in np.flatnonzero(plan.crammed).tolist():
        yield row, f"{plan.crammed[row]} new replicas in a rack that needs fewer, beside what excluded brokers keep"


def _crowd(plan: _Plan, row: int) -> str:
    return f"{plan.crowded[row]} replicas above the limit of {plan.limit[row]} per rack"


def _moves_only_what_must(plan: _Plan) -> Found:
    moved = counts(plan.new)
    for row in np.flatnonzero(moved > plan.forced):
        yield int(row), f"{moved[row]} new replicas, {plan.forced[row]} needed"


def _goes_to_the_added(plan: _Plan) -> Found:
    gains = plan.new & ~_at(plan.named, plan.after)
    too_many = counts(gains) > plan.forced
    yield from _slots(plan, plan.after, gains & too_many[:, None], "is not added, but gains a replica without need")


def _leaves_the_relieved(plan: _Plan) -> Found:
    stray = plan.left & ~_at(plan.named, plan.before)
    yield from _slots(plan, plan.before, stray, "is not relieved, but loses its replica")


def _keeps_its_order(plan: _Plan) -> Found:
    """Find lists that differ from the previous ones by more than one broker that was moved to the front."""
    width = max(plan.before.shape[1], plan.after.shape[1])
    before, after = (widened(lists, width) for lists in (plan.before, plan.after))
    first = before == after[:, :1]
    others = np.take_along_axis(before, np.argsort(~first, axis=1, kind="stable"), axis=1)
    for row in np.flatnonzero((others != after).any(axis=1)):
        yield int(row), "changes more than the preferred leader"


def _is_led_by_a_broker_that_stays(plan: _Plan) -> Found:
    leads, able = plan.after[:, 0], ~_at(plan.gone, plan.after) & (plan.after != NOBODY)
    other = (plan.before[:, 0] != leads) & (leads != NOBODY)
    for row in np.flatnonzero(other & plan.gone[leads] & able.any(axis=1)):
        yield int(row), f"broker {plan.ids[leads[row]]} is draining or dead, but becomes the leader"


Rule = Callable[[_Plan], Found]

_RULES: tuple[Rule, ...] = (
    _has_a_list,
    _has_its_factor,
    _has_no_duplicates,
    _goes_to_receivers,
    _leaves_the_drained,
    _stays_on_the_down,
)

_RULES_OF: dict[GoalKind, tuple[Rule, ...]] = {
    GoalKind.REBALANCE: (_is_spread,),
    GoalKind.ADD_BROKERS: (_is_spread, _goes_to_the_added),
    GoalKind.REMOVE_BROKERS: (_is_spread, _moves_only_what_must),
    GoalKind.SET_REPLICATION_FACTOR: (_is_spread, _moves_only_what_must),
    GoalKind.RELIEVE: (_is_no_less_spread, _leaves_the_relieved),
    GoalKind.REPAIR_RACKS: (_is_spread, _moves_only_what_must),
    GoalKind.LEADERS: (_keeps_its_order, _is_led_by_a_broker_that_stays),
}


def _slots(plan: _Plan, replicas: NDArray[np.int32], broken: Flags, what: str) -> Found:
    """Yield the row and a description of each replica that breaks a rule."""
    for row, slot in zip(*np.nonzero(broken), strict=True):
        yield int(row), f"broker {plan.ids[replicas[row, slot]]} {what}"


def _wanted(block: Block, goal: Goal) -> Counts:
    """Return the replication factor of every partition: (P)."""
    kept = counts(block.before != NOBODY)
    if goal.kind is not GoalKind.SET_REPLICATION_FACTOR:
        return kept
    patterns = goal.topics or ("*",)
    matched = np.array([any(fnmatchcase(t, p) for p in patterns) for t in block.topics], np.bool_)
    return np.where(matched[block.topic], goal.replication_factor or 1, kept)


def _at(flags: Flags, replicas: NDArray[np.int32]) -> Flags:
    """Return the flag of each replica's broker; false for empty slots."""
    found: Flags = flags[replicas] & (replicas != NOBODY)
    return found


def _sums(brokers: NDArray[np.int32], values: Counts, count: int) -> Counts:
    """Return the sums of values by broker, as integers."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, brokers, values)
    return sums


def _moved(block: Block, brokers: Brokers, row: int) -> str:
    """Return a partition and its lists: `topic-3: 1,2 -> 1,4`."""
    name = f"{block.topics[block.topic[row]]}-{block.partition[row]}"
    return f"{name}: {_ids(brokers, block.before[row])} -> {_ids(brokers, block.after[row])}"


def _ids(brokers: Brokers, replicas: NDArray[np.int32]) -> str:
    """Return a list as ids: `_` is a gap, `?` is not the index of a broker; unused slots at the end are omitted."""
    used = replicas[: np.max(np.flatnonzero(replicas != NOBODY), initial=-1) + 1]
    return ",".join("_" if b == NOBODY else str(brokers.ids[b]) if 0 <= b < len(brokers) else "?" for b in used)
