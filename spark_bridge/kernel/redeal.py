"""Forced moves dealt again: from brokers that they make too full to others, at the same cost.

Each step relieves the fullest broker, and leaves every broker that it touches less full than that one was. It is a
single move, or two moves of which the second makes room for the first. Only loose replicas move (see `loose`). In a
round, each broker belongs to one block, which therefore knows its loads exactly; if there are only a few blocks, all
brokers belong to the same one.
"""

from __future__ import annotations

import numpy as np
from attrs import define, evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.aims import Aim, aim_at, aim_at_disks
from spark_bridge.kernel.held import Held, Places
from spark_bridge.kernel.loose import Loose
from spark_bridge.kernel.tally import Tally
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.model.block import BYTES, BYTES_IN, NOBODY, REPLICAS, Block

_MOVED, _PAIRED = 128, 32
"""The most replicas of a broker for which single moves are tried, and for which pairs of moves are tried."""

_TARGETS, _BESIDE, _BEYOND = 24, 12, 4
"""The most targets that are tried for a single move, for the first move of a pair, and for the second."""

_MOVES, _PAIRS = 4_000, 400
"""The most steps of a round in all blocks together: looks at a broker, and searches for pairs."""

_LEAST_STEPS = 50
"""The number of steps of each kind that a block may always take."""

_PASSES = 3
_FEW_BLOCKS = 8
"""Up to this number of blocks take turns, and all brokers belong to one block at a time."""

Move = tuple[int, int, int]
"""A replica by row and column, and its target broker."""


@frozen
class Owners:
    """The block to which each broker belongs in a round; over as many rounds as there are blocks, each block once."""

    round: int
    blocks: int

    def of(self, number: int, brokers: int) -> NDArray[np.bool_]:
        """Return (B) which brokers belong to a block."""
        # Few blocks take turns with all brokers, so that replicas can move between any two of them.
        if self.blocks <= _FEW_BLOCKS:
            return np.full(brokers, number == self.round % self.blocks)
        return np.asarray(Turn(0, self.blocks, 1).ranks(number + self.round, brokers) == 0)


@frozen(eq=False)
class Standing:
    """The cluster when a round begins.

    Attributes:
        load: (B, 3) the cluster's loads.
        gained: (B) the bytes of new replicas on each broker.
        owners: The block to which each broker belongs.
    """

    load: NDArray[np.int64]
    gained: NDArray[np.int64]
    owners: Owners


@frozen(eq=False)
class Redeal:
    """The step of a round that deals loose replicas again."""

    terms: Terms
    standing: Standing

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Deal again in one block; the tally is the change of the loads and of the bytes that brokers gain."""
        load, gained = self.standing.load, self.standing.gained
        active = self.standing.owners.of(number, len(load))
        over = (load > self.terms.high).any(axis=1)
        if not (active & over & self.terms.receives).any():
            return block, {"load": np.zeros_like(load), "gained": np.zeros_like(gained)}
        work = Redealing.of(block, block.after, self.terms, self.standing, number)
        work.even_out()
        return block.with_after(work.after), {"load": work.load - load, "gained": work.gained - gained}


@frozen(eq=False)
class Promising:
    """The query for the rounds in which a block would deal anything again if no round before them did.

    Attributes:
        terms: The terms.
        load: (B, 3) the cluster's loads.
        gained: (B) the bytes of new replicas on each broker.
        rounds: The rounds to try.
        blocks: The number of blocks.
    """

    terms: Terms
    load: NDArray[np.int64]
    gained: NDArray[np.int64]
    rounds: range
    blocks: int

    def __call__(self, number: int, block: Block) -> Tally:
        """Try the rounds in one block, which stays as it is; the tally (rounds) marks the block's first one."""
        marks = np.zeros(len(self.rounds), np.int64)
        over = (self.load > self.terms.high).any(axis=1) & self.terms.receives
        standing = Standing(self.load, self.gained, Owners(self.rounds.start, self.blocks))
        untried = Redealing.of(block, block.after, self.terms, standing, number)
        for nth, each in enumerate(self.rounds):
            active = Owners(each, self.blocks).of(number, len(self.load))
            # What the trials share changes only when one deals something again, which ends them.
            if (active & over).any() and evolve(untried, active=active).even_out():
                marks[nth] = 1
                break
        return {"promising": marks}


@define(eq=False)
class Redealing:
    """A block in which loose replicas are dealt again.

    Attributes:
        after: (P, W) the lists; some may have gaps.
        moves: The number of looks at a broker that remain.
        pairs: The number of searches for pairs that remain.
        aim: The bound to bring brokers below.
    """

    block: Block
    terms: Terms
    load: NDArray[np.int64]
    gained: NDArray[np.int64]
    active: NDArray[np.bool_]
    after: NDArray[np.int32]
    loose: Loose
    places: Places
    moves: int
    pairs: int
    aim: Aim

    @classmethod
    def of(cls, block: Block, after: NDArray[np.int32], terms: Terms, standing: Standing, number: int) -> Redealing:
        """Start from a block, given its number."""
        brokers, blocks = len(standing.load), standing.owners.blocks
        places = Places(Held.of(after, brokers))
        moves, pairs = (max(_LEAST_STEPS, steps // blocks) for steps in (_MOVES, _PAIRS))
        loose, aim = Loose.of(block, after.copy(), terms), aim_at_disks(terms)
        load, gets = standing.load.copy(), standing.gained.copy()
        active = standing.owners.of(number, brokers)
        return cls(block, terms, load, gets, active, loose.after, loose, places, moves, pairs, aim)

    def even_out(self) -> bool:
        """Deal again what puts brokers above their upper bounds, measure by measure; return whether anything moved."""
        mean = self.block.weights.mean(axis=0) if len(self.block) else np.zeros(self.load.shape[1])
        fullest = (self.load / self.terms.share)[self.terms.receives].max(axis=0, initial=0.0)
        moved = False
        for _ in range(_PASSES):
            changed = False
            for measure in (BYTES, BYTES_IN, REPLICAS):
                self.aim = aim_at(measure, self.terms, fullest, mean)
                changed |= self._relieve(self.active & self.terms.receives)
            moved |= changed
            if not changed:
                break
        return moved

    def make_room(self) -> None:
        """Deal again what exceeds the disks of brokers that gain replicas."""
        self.aim = aim_at_disks(self.terms)
        while self._relieve(self.active & (self.gained > 0)):
            pass

    def _relieve(self, brokers: NDArray[np.bool_]) -> bool:
        """Relieve each broker above its bound as far as possible, the fullest first; return whether anything moved."""
        over = np.flatnonzero(brokers & self.aim.is_over(self.load))
        part = self._part(over)
        changed = False
        for broker in over[np.argsort(-part, kind="stable")].tolist():
            while self._is_over(broker) and (moves := self._best(broker)):
                for move in moves:
                    self.move(*move)
                changed = True
        return changed

    def _is_over(self, broker: int) -> bool:
        return bool(self.aim.is_over(self.load)[broker])

    def _best(self, broker: int) -> tuple[Move, ...]:
        """Return the moves that make a broker less full, none if there are none or no step remains."""
        rows, columns = self._loose_of(broker)
        if not len(rows) or self.moves <= 0:
            return ()
        self.moves -= 1
        few = self._few(rows, _MOVED)
        if move := self._best_move(broker, rows[few], columns[few]):
            return (move,)
        # No single move helps, so pairs are tried.
        if self.pairs <= 0:
            return ()
        self.pairs -= 1
        few = self._few(rows, _PAIRED)
        return self._best_pair(broker, rows[few], columns[few])

    def _loose_of(self, broker: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and columns of a broker's loose replicas, without the light ones.

        The replica of a preferred leader is loose only if the broker is too full and leaders may change.
        """
        rows, columns = np.divmod(self.places[broker], self.after.shape[1])
        heavy = self.block.weights[rows, self.aim.measure] > self.aim.light
        rows, columns = rows[heavy], columns[heavy]
        loose = self.loose.at(rows, columns, first=self._is_over(broker) and not self.terms.keeps_leaders)
        return rows[loose], columns[loose]

    def _few(self, rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
        """Return the positions of some of the rows, spread evenly over all weights."""
        if len(rows) <= most:
            return np.arange(len(rows))
        by_weight = np.lexsort((self.block.tie[rows], self.block.weights[rows, self.aim.measure]))
        return by_weight[((np.arange(most) + 0.5) * len(rows) / most).astype(np.intp)]

    def _best_move(self, broker: int, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Move | None:
        """Return the move that leaves the fuller of its two brokers the least full, None if no move helps."""
        targets = self._emptiest(broker, _TARGETS, rows, columns)
        if not len(targets):
            return None
        weights = self.block.weights[rows][:, None]
        worst = np.maximum(self._part(broker, -weights), self._part(targets, weights))
        able = self.loose.may(rows, columns, targets) & self._keeps(targets, weights, broker)
        # An empty replica needs no room, so it may go to a full disk.
        able &= self._fits(targets, weights, self.loose.is_home(rows, targets)) | (weights[..., BYTES] == 0)
        worst = np.where(able, worst, np.inf)
        i, t = np.unravel_index(int(worst.argmin()), worst.shape)
        if worst[i, t] >= self._part(broker) - self.aim.step:
            return None
        return int(rows[i]), int(columns[i]), int(targets[t])

    def _best_pair(self, broker: int, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> tuple[Move, ...]:
        """Return the best pair of moves, to a second broker and from that to a third or back; none if no pair helps."""
        beside = self._emptiest(broker, _BESIDE, rows, columns)
        able = self.loose.may(rows, columns, beside)
        best = float(self._part(broker)) - self.aim.step
        found: tuple[Move, ...] = ()
        for k, g in enumerate(beside.tolist()):
            ones, (rows2, columns2) = np.flatnonzero(able[:, k]), self._loose_of(g)
            few = self._few(rows2, _PAIRED)
            rows2, columns2 = rows2[few], columns2[few]
            if not len(ones) or not len(rows2):
                continue
            beyond = self._emptiest(g, _BEYOND, rows2, columns2)
            beyond = np.append(beyond[beyond != broker], broker)
            worst = self._worst(broker, g, beyond, rows[ones], rows2)
            worst[:, ~self.loose.may(rows2, columns2, beyond)] = np.inf
            i, j, h = np.unravel_index(int(worst.argmin()), worst.shape)
            if worst[i, j, h] < best:
                best = float(worst[i, j, h])
                first = (int(rows[ones[i]]), int(columns[ones[i]]), g)
                found = (first, (int(rows2[j]), int(columns2[j]), int(beyond[h])))
        return found

    def _worst(
        self, broker: int, beside: int, beyond: NDArray[np.intp], rows: NDArray[np.intp], rows2: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return (rows, rows2, beyond) how full the fullest broker is after two moves, infinite if not permitted.

        One of `beyond` is the first broker itself; the two replicas then change places.
        """
        ones = self.block.weights[rows][:, None, None]
        others = self.block.weights[rows2][None, :, None]
        back = (beyond == broker)[None, None, :, None]
        at_broker, at_beside = np.where(back, others, 0) - ones, ones - others
        at_beyond = np.where(back, at_broker, others)
        worst = np.maximum(self._part(broker, at_broker), self._part(beside, at_beside))
        worst = np.maximum(worst, self._part(beyond, at_beyond))
        able = self._keeps(beside, at_beside, broker) & self._keeps(beyond, at_beyond, broker)
        one = np.array([beside], np.intp)
        able &= self._fits(one, at_beside, self.loose.is_home(rows, one)[:, :, None])
        able &= self._fits(beyond, at_beyond, self.loose.is_home(rows2, beyond)[None])
        able &= (rows[:, None] != rows2[None, :])[..., None]
        return np.where(able, worst, np.inf)

    def _emptiest(self, broker: int, most: int, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the emptiest brokers to which at least one of some replicas may go."""
        able = self.active & self.loose.targets(rows, columns)
        able[broker] = False
        candidates = np.flatnonzero(able)
        return candidates[np.argsort(self._part(candidates), kind="stable")[:most]]

    def _part(self, brokers: NDArray[np.intp] | int, more: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Return how full brokers are, with an additional load (..., 3) if given."""
        load = self.load[brokers, self.aim.measure]
        return self.aim.part(brokers, load if more is None else load + more[..., self.aim.measure])

    def _keeps(self, brokers: NDArray[np.intp] | int, more: NDArray[np.int64], source: int) -> NDArray[np.bool_]:
        """Return whether brokers with an additional load (..., 3) keep to the limits of the other measures."""
        most = self.aim.most(self.load, brokers, source)
        return np.asarray(((more <= 0) | (self.load[brokers] + more <= most)).all(axis=-1))

    def _fits(self, brokers: NDArray[np.intp], more: NDArray[np.int64], home: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether an additional load fits on disks.

        A replica that returns home always fits on a disk that gains nothing new.
        """
        # If disks are the aim, being over them is part of how full brokers are, and no separate limit.
        if self.aim.is_room:
            return np.ones(1, np.bool_)
        fits = self.load[brokers, BYTES] + more[..., BYTES] <= self.terms.disk[brokers]
        return np.asarray(fits | (home & (self.gained[brokers] == 0)))

    def move(self, row: int, column: int, target: int) -> None:
        """Move a replica to a broker; an open place has no source, and a dropped replica no target (NOBODY)."""
        source, weight = int(self.after[row, column]), self.block.weights[row]
        place = row * self.after.shape[1] + column
        home = self.loose.homes[row]
        if source != NOBODY:
            self.load[source] -= weight
            self.gained[source] -= weight[BYTES] * (source not in home)
            self.places[source] = self.places[source][self.places[source] != place]
        self.after[row, column] = target
        if target != NOBODY:
            self.load[target] += weight
            self.gained[target] += weight[BYTES] * (target not in home)
            self.places[target] = np.append(self.places[target], place)
