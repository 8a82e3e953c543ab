"""The rounds that deal forced moves, make room for them on disks, and even them out."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine, taken
from spark_bridge.kernel.deal import Deal
from spark_bridge.kernel.gathering import Few, Gather, GiveBack
from spark_bridge.kernel.redeal import Owners, Promising, Redeal, Standing
from spark_bridge.kernel.room import MakeRoom
from spark_bridge.kernel.sparing import Spare
from spark_bridge.kernel.tally import Tally, add, gained
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.model.block import BYTES, Block
from spark_bridge.progress import OnProgress, Progress

_DEALT, _RECEIVERS = 16, 64
"""The number of replicas that a block has for each broker it deals to, and the least number of such brokers."""

_DEALT_AGAIN = 8
"""The rounds in which replicas without a place are dealt with exactly known loads, to other brokers each time."""

_GATHERED = 2_048
"""About the most partitions that the driver gathers from all blocks to make room; each block gives an equal part."""

_REDEALS = 3
_REDEALT = 0.98
"""Blocks deal again at most this many times, and only while each time leaves at most this part of the excess."""


def deal(
    engine: Engine, terms: Terms, load: NDArray[np.int64], changed: int, *, spares: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Deal forced moves, given the number of partitions that have any.

    If it `spares`, repairs of racks that find no place are taken back (see `sparing`).

    If there is little to deal, a broker takes part in few blocks, so that each has several replicas for it, heavy and
    light. If each block had only one, all blocks would give the broker their heaviest.

    Returns:
        The loads after dealing, and the replicas that found no place (see `Deal`).
    """
    receivers, blocks = max(1, int(terms.receives.sum())), engine.blocks
    copies = max(changed // (_DEALT * receivers), -(-_RECEIVERS * blocks // receivers), 1)
    dealt = taken(engine, Deal(terms, load, Turn(0, blocks, min(copies, blocks))))
    # A replica that looks too large while a block counts as many copies is tried again: with as many copies as blocks,
    # and finally with one, when its broker takes part in no other block.
    again = [Turn(0, blocks, blocks), *(Turn(n, blocks, 1) for n in range(1, 1 + _DEALT_AGAIN))]
    for turn in again if blocks > 1 else ():
        if dealt["unplaced"].any():
            dealt = taken(engine, Deal(terms, dealt["load"], turn))
    dealt = _with_room(engine, terms, dealt, load)
    if spares:
        dealt = _spared(engine, terms, dealt)
    return dealt["load"], dealt["unplaced"]


def _spared(engine: Engine, terms: Terms, dealt: Tally) -> Tally:
    """Take back repairs until no disk is too full by them; each that is taken back may need the room it left."""
    before = None
    while before is None or (before["load"] != dealt["load"]).any():
        before, dealt = dealt, taken(engine, Spare(terms, dealt["load"], dealt["gained"]))
    excess = np.where(dealt["gained"] > 0, np.maximum(dealt["load"][:, BYTES] - terms.disk, 0), 0)
    unplaced = dealt["unplaced"].copy()
    # What must move for another reason took the room that a repair left.
    unplaced[1] += (np.count_nonzero(excess), excess.sum())
    return {**dealt, "unplaced": unplaced}


def _with_room(engine: Engine, terms: Terms, dealt: Tally, before: NDArray[np.int64]) -> Tally:
    """Make room on disks for replicas without a place, and for what is too much because many blocks dealt at once.

    This is tried within blocks first (see `room`), then among a few partitions of all blocks (see `gathering`).
    Replicas that evening out may move make way only if no others can.
    """
    blocks = engine.blocks
    for evens in (False, True) if terms.takes.any() else (False,):
        # In the first half of the rounds blocks make room for each other; in the second each takes back what is still
        # too much.
        for number in range(2 * blocks):
            over = (dealt["gained"] > 0) & (dealt["load"][:, BYTES] > terms.disk)
            if not dealt["unplaced"].any() and not over.any():
                return dealt
            standing = Standing(dealt["load"], dealt["gained"], Owners(number, blocks))
            dealt = taken(engine, MakeRoom(terms, standing, evens, ends=number >= blocks))
        dealt = _exchanged(engine, terms, dealt, before, evens=evens)
    return dealt


def _exchanged(engine: Engine, terms: Terms, dealt: Tally, before: NDArray[np.int64], *, evens: bool) -> Tally:
    """Place replicas without a place by exchanges between blocks; if that fails, change nothing."""
    replicas, size = dealt["unplaced"].sum(axis=0).tolist()
    if not 0 < replicas <= _GATHERED or _is_too_much(terms, dealt["load"], before, size):
        return dealt
    few = Few.of(engine.ask(Gather(terms, evens, -(-_GATHERED // engine.blocks)))["all_few"])
    settled = few.settled(terms, Standing(dealt["load"], dealt["gained"], Owners(0, 1)), evens=evens)
    return dealt if settled is None else taken(engine, GiveBack(terms, settled))


def _is_too_much(terms: Terms, load: NDArray[np.int64], before: NDArray[np.int64], unplaced: int) -> bool:
    """Return whether all brokers together lack room for the bytes; one that receives none keeps what it had."""
    total = int(load[:, BYTES].sum()) + unplaced
    had = before[:, BYTES]
    room = np.where(terms.receives, np.maximum(np.minimum(terms.disk, total), had), np.where(terms.leaves, 0, had))
    return total > int(room.sum())


def redeal(engine: Engine, terms: Terms, load: NDArray[np.int64], progress: OnProgress) -> NDArray[np.int64]:
    """Deal again from brokers that forced moves make too full, for goals that move nothing else; return the loads."""
    out = _out(terms, load)
    if not out:
        return load
    tally = {"load": load, **engine.ask(_Gained(len(load)))}
    for again in range(_REDEALS):
        tally = _redealt(engine, terms, tally, progress, again)
        before, out = out, _out(terms, tally["load"])
        if not out or out > _REDEALT * before:
            break
    return tally["load"]


def _redealt(engine: Engine, terms: Terms, tally: Tally, progress: OnProgress, again: int) -> Tally:
    """Let blocks deal again in as many rounds as there are blocks; return the loads and what brokers gain.

    On Spark, a round that changes nothing takes as long as any other. So before the first round, and after each that
    changed nothing, blocks are asked for the next one that would.
    """
    blocks, number, asks = engine.blocks, 0, engine.blocks > 1
    while number < blocks and _out(terms, tally["load"]):
        if asks:
            query = Promising(terms, tally["load"], tally["gained"], range(number, blocks), blocks)
            promising = np.flatnonzero(engine.ask(query)["promising"])
            if not len(promising):
                break
            number += int(promising[0])
        progress(Progress("dealing again", again * blocks + number + 1, _REDEALS * blocks))
        standing = Standing(tally["load"], tally["gained"], Owners(number, blocks))
        change = taken(engine, Redeal(terms, standing))
        tally, number = add(tally, change), number + 1
        asks = not change["load"].any()
    return tally


def _out(terms: Terms, load: NDArray[np.int64]) -> float:
    """Return the sum of how far receivers are above their upper bounds, in parts of their shares."""
    over = np.maximum(load - terms.high, 0) / terms.share
    return float(over[terms.receives].sum())


@frozen
class _Gained:
    """The query for the bytes of new replicas on each broker."""

    brokers: int

    def __call__(self, number: int, block: Block) -> Tally:
        del number
        return {"gained": gained(block, self.brokers)}
