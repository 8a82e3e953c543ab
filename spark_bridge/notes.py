"""Sentences that a reader must see before carrying a plan out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spark_bridge.model.block import BYTES, BYTES_IN, MEASURES, REPLICAS
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.model.summary import Evenness
from spark_bridge.report import measures
from spark_bridge.rounds.moves import Bounds


def notes_of(bounds: Bounds, brokers: Brokers, goal: Goal, even: Sequence[Evenness]) -> Iterator[str]:
    """Yield notes on bounds that could not be reached, and on requests that may be mistakes."""
    if goal.kind is not GoalKind.LEADERS and not bounds.terms.receives.any():
        yield "no broker may receive replicas: all of them are excluded, draining or dead, so none moves"
    out = _out(bounds, goal)
    if bounds.is_cut:
        yield _cut(bounds, brokers, out)
    yield from _oversized(bounds, brokers)
    yield from _out_of_bounds(bounds, brokers, goal, out)
    of_added = [*_of_added(bounds, brokers, goal)] if goal.kind is GoalKind.ADD_BROKERS else []
    yield from of_added
    if not of_added:
        yield from _missed(bounds, goal, even, out)


_HARDLY = 1e-6
"""A load outside its bounds by at most this part of a share counts as within them."""


def _out(bounds: Bounds, goal: Goal) -> NDArray[np.float64]:
    """Return (B, 3) how far brokers are out of bounds; a broker near its share whose disk is smaller is within them.

    A warning names the brokers above their disks (see `plan_warnings`).
    """
    terms, size = bounds.terms, bounds.after[:, BYTES]
    out = terms.violations(bounds.after)
    is_full = (size > terms.disk) & (size <= terms.share[:, BYTES] * (1 + goal.tolerance))
    out[is_full, BYTES] = 0.0
    return np.where(out > _HARDLY, out, 0.0)


def _cut(bounds: Bounds, brokers: Brokers, out: NDArray[np.float64]) -> str:
    """Report that the limit on work ended the search, and how far from their bounds brokers are."""
    ended = "the search reached the limit on the work for a plan"
    if not out.any():
        return f"{ended}: all brokers are within their bounds, but a plan that moves less may exist"
    worst, m = np.unravel_index(out.argmax(), out.shape)
    count = int(np.count_nonzero(out.any(axis=1)))
    far = f"by {100 * out[worst, m]:.1f} % of its share of {MEASURES[m]} at most"
    if not bounds.terms.receives[worst]:
        far = f"which {_ends(bounds, int(worst), int(m))}"
    are = "brokers are" if count > 1 else "broker is"
    worst_is = f"broker {brokers.ids[worst]} {far}"
    return f"{ended}: {count} {are} still out of bounds, {worst_is}; planning again after it may bring them closer"


def _out_of_bounds(bounds: Bounds, brokers: Brokers, goal: Goal, out: NDArray[np.float64]) -> Iterator[str]:
    """Name the brokers that the plan could not bring within the goal's bounds."""
    for m, measure in enumerate(MEASURES):
        if count := int(np.count_nonzero(out[:, m])):
            worst = int(out[:, m].argmax())
            near = f"within {100 * goal.tolerance:g} % of their shares"
            ends = f"broker {brokers.ids[worst]} {_ends(bounds, worst, m)}"
            yield f"{measure}: {count} of {len(brokers)} brokers could not be brought {near}; {ends}"


def _ends(bounds: Bounds, broker: int, m: int) -> str:
    """Return where a broker ends in a measure; draining and excluded brokers have no share to compare with."""
    after = bounds.after[broker, m]
    if bounds.terms.receives[broker]:
        return f"ends at {100 * (after / bounds.terms.share[broker, m] - 1):+.1f} %"
    return f"has no share and ends with {_TOLD[m].text(float(after))}"


_TOLD: Final = {REPLICAS: measures.REPLICAS, BYTES: measures.BYTES, BYTES_IN: measures.BYTES_IN}
"""The formats of amounts."""


_MISSED: Final = {
    GoalKind.ADD_BROKERS: "only the added brokers receive replicas",
    GoalKind.RELIEVE: "only the relieved brokers give replicas",
    GoalKind.REMOVE_BROKERS: "only forced moves are made",
    GoalKind.SET_REPLICATION_FACTOR: "only forced moves are made",
    GoalKind.REPAIR_RACKS: "only forced moves are made",
    GoalKind.LEADERS: "a broker can lead only partitions that it has",
}
"""The reasons why a goal leaves loads less even than a rebalance would."""


def _missed(bounds: Bounds, goal: Goal, even: Sequence[Evenness], out: NDArray[np.float64]) -> Iterator[str]:
    """Explain why measures end farther from their shares than aimed at, unless another note does."""
    told = {measure for m, measure in enumerate(MEASURES) if out[:, m].any()}
    far = [row for row in even if row.reachable + _HARDLY < row.after <= row.before]
    names = [row.measure for row in far if row.measure not in told]
    if not names or goal.kind not in _MISSED or not bounds.terms.receives.any():
        return
    why = "only the leaders of --topics change" if goal.kind is GoalKind.LEADERS and goal.topics else _MISSED[goal.kind]
    cure = "leaders" if names == ["leaders"] and goal.kind is not GoalKind.LEADERS else "rebalance"
    yield f"{', '.join(names)}: less even than aimed at, because {why}; `klamm plan {cure}` evens out more"


def _oversized(bounds: Bounds, brokers: Brokers) -> Iterator[str]:
    """Name the brokers that stay above their bounds because of replicas that no broker has room for within its own."""
    terms = bounds.terms
    for m in (BYTES, BYTES_IN):
        kept = np.where(terms.gives, terms.fixed.load[:, m], 0)
        if count := int(np.count_nonzero(kept > terms.fixed.above[m])):
            worst = int(kept.argmax())
            who, keeps = f"broker {brokers.ids[worst]}", "keeps" if count == 1 else "and others keep"
            them = "replicas that are larger than any broker's share, with which no other broker would be less full"
            rest = "; the others share the rest" if terms.share[worst, m] >= kept[worst] else ""
            yield f"{MEASURES[m]}: {who} {keeps} {_TOLD[m].text(float(kept[worst]))} in {them}{rest}"


def _of_added(bounds: Bounds, brokers: Brokers, goal: Goal) -> Iterator[str]:
    """Name the brokers to add that already have their share, and the empty brokers that are not being added."""
    terms = bounds.terms
    named = np.zeros(len(brokers), np.bool_)
    named[brokers.indices(goal.brokers)] = True
    full = named & (bounds.before >= terms.low).all(axis=1)
    if full.any():
        have, they = ("have their", "they receive") if full.sum() > 1 else ("has its", "it receives")
        yield f"{_named(brokers, full)} of --brokers {have} share already: {they} nothing"
    empty = terms.receives & ~named & (bounds.before[:, REPLICAS] == 0)
    if empty.any():
        are, them, stay = ("are", "them", "they stay") if empty.sum() > 1 else ("is", "it", "it stays")
        yield f"{_named(brokers, empty)} {are} empty and not among --brokers: name {them} as well, or {stay} empty"


def _named(brokers: Brokers, which: NDArray[np.bool_]) -> str:
    some = Brokers(tuple(row for row, is_one in zip(brokers.rows, which.tolist(), strict=True) if is_one))
    return f"broker{'s' if len(some) > 1 else ''} {some}"
