"""The rounds that deal what is forced to move, make room on disks for it, and even it out."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.engines.engine import Engine, taken
from spark_bridge.kernel.deal import Deal
from spark_bridge.kernel.gathering import Few, Gather, GiveBack
from spark_bridge.kernel.redeal import Owners, Redeal, Standing
from spark_bridge.kernel.room import MakeRoom
from spark_bridge.kernel.tally import Tally, add, gained
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.model.block import BYTES, Block
from spark_bridge.progress import OnProgress, Progress

_DEALT, _RECEIVERS = 16, 64
"""The replicas that a block has for each broker that it deals to, and the least number of such brokers."""

_DEALT_AGAIN = 8
"""The rounds in which replicas without a place are dealt to brokers with exactly known loads, each time to others."""

_GATHERED = 2_048
"""The partitions that the driver gathers from all blocks to make room; each block gives as many."""

_REDEALS = 3
_REDEALT = 0.98
"""Blocks deal again so many times at most, and while that leaves no more than this part of what is out of bounds."""


def deal(
    engine: Engine, terms: Terms, load: NDArray[np.int64], changed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Deal what is forced, given in how many partitions; return the loads then, and what found no place (see `Deal`).

    Where there is little to deal, a broker takes part in few blocks, which then have some replicas for it, heavy and
    light: of one alone, all blocks would give it their heaviest.
    """
    receivers, blocks = max(1, int(terms.receives.sum())), engine.blocks
    copies = max(changed // (_DEALT * receivers), -(-_RECEIVERS * blocks // receivers), 1)
    dealt = taken(engine, Deal(terms, load, Turn(0, blocks, min(copies, blocks))))
    # What looks too large where a block counts for many is tried again, at last where its broker is in no other block.
    again = [Turn(0, blocks, blocks), *(Turn(n, blocks, 1) for n in range(1, 1 + _DEALT_AGAIN))]
    for turn in again if blocks > 1 else ():
        if dealt["unplaced"].any():
            dealt = taken(engine, Deal(terms, dealt["load"], turn))
    dealt = _with_room(engine, terms, dealt, load)
    return dealt["load"], dealt["unplaced"]


def _with_room(engine: Engine, terms: Terms, dealt: Tally, before: NDArray[np.int64]) -> Tally:
    """Make room on disks for what found none, or is too much where many blocks dealt at once.

    First in blocks (see `room`), then among a few partitions of all of them (see `gathering`). What evening out would
    move makes way only where nothing else does.
    """
    blocks = engine.blocks
    for evens in (False, True) if terms.takes.any() else (False,):
        # All blocks make room for each other, then each takes back what is still too much.
        for number in range(2 * blocks):
            over = (dealt["gained"] > 0) & (dealt["load"][:, BYTES] > terms.disk)
            if not dealt["unplaced"].any() and not over.any():
                return dealt
            standing = Standing(dealt["load"], dealt["gained"], Owners(number, blocks))
            dealt = taken(engine, MakeRoom(terms, standing, evens, ends=number >= blocks))
        dealt = _exchanged(engine, terms, dealt, before, evens=evens)
    return dealt


def _exchanged(engine: Engine, terms: Terms, dealt: Tally, before: NDArray[np.int64], *, evens: bool) -> Tally:
    """Place what has no place by exchanges between blocks, if that can be; else all stays as it is."""
    replicas, size = dealt["unplaced"].sum(axis=0).tolist()
    if not 0 < replicas <= _GATHERED or _is_too_much(terms, dealt["load"], before, size):
        return dealt
    few = Few.of(engine.ask(Gather(terms, evens, -(-_GATHERED // engine.blocks)))["all_few"])
    settled = few.settled(terms, Standing(dealt["load"], dealt["gained"], Owners(0, 1)), evens=evens)
    return dealt if settled is None else taken(engine, GiveBack(terms, settled))


def _is_too_much(terms: Terms, load: NDArray[np.int64], before: NDArray[np.int64], unplaced: int) -> bool:
    """Return whether all brokers together have no room for so many bytes more; who gets nothing keeps what it had."""
    total = int(load[:, BYTES].sum()) + unplaced
    had = before[:, BYTES]
    room = np.where(terms.receives, np.maximum(np.minimum(terms.disk, total), had), np.where(terms.leaves, 0, had))
    return total > int(room.sum())


def redeal(engine: Engine, terms: Terms, load: NDArray[np.int64], progress: OnProgress) -> NDArray[np.int64]:
    """Deal again what forced moves make too full, for goals that move nothing else; return the loads then."""
    out, blocks = _out(terms, load), engine.blocks
    if not out:
        return load
    tally = {"load": load, **engine.ask(_Gained(len(load)))}
    for again in range(_REDEALS):
        for number in range(blocks):
            progress(Progress("dealing again", again * blocks + number + 1, _REDEALS * blocks))
            standing = Standing(tally["load"], tally["gained"], Owners(number, blocks))
            tally = add(tally, taken(engine, Redeal(terms, standing)))
        before, out = out, _out(terms, tally["load"])
        if out > _REDEALT * before:
            break
    return tally["load"]


def _out(terms: Terms, load: NDArray[np.int64]) -> float:
    """Return how far receivers are above their upper bounds, in parts of their shares, all together."""
    over = np.maximum(load - terms.high, 0) / terms.share
    return float(over[terms.receives].sum())


@frozen
class _Gained:
    """Asks for the bytes that every broker gets."""

    brokers: int

    def __call__(self, number: int, block: Block) -> Tally:
        del number
        return {"gained": gained(block, self.brokers)}
