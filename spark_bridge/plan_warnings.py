"""Warnings about what a plan leaves at risk, a line for each; all forms of the report have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from spark_bridge.kernel.tally import Tally, sums
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import NO_RACK, Brokers
from spark_bridge.model.goal import MOST_REPLICAS, Goal
from spark_bridge.model.lists import lengths
from spark_bridge.model.summary import KeptReplicas, OverfullDisk, PlannedBroker
from spark_bridge.report.measures import size
from spark_bridge.report.words import things
from spark_bridge.rounds.stranded import Stranded

if TYPE_CHECKING:
    from spark_bridge.summing import Planned

_SHOWN: Final = 5
"""The most brokers, racks or partitions that a line names."""


def spread_of(block: Block, rack: NDArray[np.int32]) -> Tally:
    """Return how the planned lists of a block spread, given the rack of each broker (B), 0 or more.

    Returns:
        `factors`: the number of partitions by replication factor. `crowded`: by rack, the number of partitions of which
        it has two copies or more, and more than all other racks together. `thin`: the number of partitions with no more
        copies than min.insync.replicas.
    """
    held, factor = block.after != NOBODY, lengths(block.after)
    racks = np.where(held, rack[block.after], NOBODY).astype(np.int32)
    here = np.zeros(len(block), np.int64)
    most = np.full(len(block), NOBODY, np.int32)
    for column in range(racks.shape[1]):
        same = (racks == racks[:, column, None]).sum(axis=1)
        is_most = held[:, column] & (same > here)
        here, most = np.where(is_most, same, here), np.where(is_most, racks[:, column], most)
    crowded = most[(here > 1) & (2 * here > factor)]
    return {
        "factors": np.bincount(np.minimum(factor, MOST_REPLICAS), minlength=MOST_REPLICAS + 1),
        "thin": np.array([0 if block.least_isr is None else np.count_nonzero(factor <= block.least_isr)]),
        "crowded": sums(crowded, np.ones(len(crowded), np.int64), int(rack.max(initial=NOBODY)) + 1),
    }


def overfull_disks(brokers: Sequence[PlannedBroker]) -> Iterator[OverfullDisk]:
    """Yield the brokers that end above the size of their disks."""
    for broker in brokers:
        if broker.disk is not None and broker.after.bytes > broker.disk:
            yield OverfullDisk(broker.id, broker.after.bytes - broker.disk)


def warnings_of(
    planned: Planned, tally: Tally, kept: Sequence[KeptReplicas], disks: Sequence[OverfullDisk]
) -> Iterator[str]:
    """Yield the warnings about a plan, given the tally of all blocks with that of `spread_of`."""
    if kept:
        yield _of_kept(kept, planned.goal)
    if planned.stranded.count:
        yield _of_stranded(planned.stranded)
    if count := planned.bounds.unrepaired:
        stay = "stays as it is" if count == 1 else "stay as they are"
        yield f"{things(count, 'partition')} with too many copies in a rack {stay}: no disk of another rack has room"
    if disks:
        yield _of_disks(disks)
    if count := int(tally["thin"][0]):
        end = "ends" if count == 1 else "end"
        why = "producers with acks=all stop as soon as one broker does"
        yield f"{things(count, 'partition')} {end} with no more copies than min.insync.replicas: {why}"
    if planned.goal.racks and planned.brokers.rack_names:
        yield from _of_racks(planned, tally)


def _of_kept(kept: Sequence[KeptReplicas], goal: Goal) -> str:
    total = sum(one.replicas for one in kept)
    listed = _some([f"{one.replicas:,} on broker {one.broker}" for one in kept])
    ids = ",".join(str(one.broker) for one in kept)
    # Goals that move nothing because of a broker's state do not move these even if dead is gone.
    or_gone = " or --dead-is-gone" if goal.mends else ""
    cure = f"`klamm plan remove-brokers --brokers {ids}`{or_gone} moves them"
    return f"{things(total, 'replica')} left on brokers that do not serve: {listed}; {cure}"


def _of_stranded(stranded: Stranded) -> str:
    has, it = ("has", "it") if stranded.count == 1 else ("have", "them")
    names = stranded.first[:_SHOWN]
    more = f" and {stranded.count - len(names):,} more" if stranded.count > len(names) else ""
    return (
        f"{things(stranded.count, 'partition')} {has} copies only on brokers that do not serve, impossible to "
        f"change until one of these returns; the plan leaves {it} out: {', '.join(names)}{more}"
    )


def _of_disks(disks: Sequence[OverfullDisk]) -> str:
    ordered = sorted(disks, key=lambda disk: (-disk.bytes_over, disk.broker))
    listed = _some([f"broker {disk.broker} by {size(disk.bytes_over)}" for disk in ordered])
    ends = "broker ends above its disk" if len(disks) == 1 else "brokers end above their disks"
    return f"{len(disks):,} {ends}: {listed}; add disks or brokers, or delete data"


def _of_racks(planned: Planned, tally: Tally) -> Iterator[str]:
    brokers, terms = planned.brokers, planned.bounds.terms
    alone = brokers.rack == NO_RACK
    if alone.any():
        have = "has" if np.count_nonzero(alone) == 1 else "have"
        yield f"{_brokers(brokers, alone)} {have} no rack, others have one: each without one counts as its own rack"
    stays = ~terms.leaves
    racks = len(np.unique(brokers.rack[stays & ~alone])) + int(np.count_nonzero(stays & alone))
    above = np.flatnonzero(tally["factors"])
    above = above[above > racks]
    if len(above):
        count = things(int(tally["factors"][above].sum()), "partition")
        yield f"fewer racks than copies: {things(racks, 'rack')} for up to {above.max()} copies of {count}"
    crowded = tally["crowded"][: len(brokers.rack_names)]
    if crowded.any():
        ordered = sorted(np.flatnonzero(crowded).tolist(), key=lambda rack: (-crowded[rack], rack))
        listed = _some([f"{things(int(crowded[rack]), 'partition')} in {brokers.rack_names[rack]}" for rack in ordered])
        yield f"one rack ends with most copies of a partition, such as two of three: {listed}"


def _brokers(brokers: Brokers, which: NDArray[np.bool_]) -> str:
    ids = [str(broker) for broker in brokers.ids[which].tolist()]
    return f"broker{'s' if len(ids) > 1 else ''} {_some(ids)}"


def _some(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many others there are."""
    more = f" and {len(texts) - _SHOWN:,} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
