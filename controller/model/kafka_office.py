"""The rule for the office among Apache Kafka's brokers: who may take it, who keeps it, who gives it up.

A broker of Kafka's takes office whenever `/controller` is missing, so ours is persistent and outlives its process. The
ephemeral lock says which of our processes is in office; when it ends with its session, another one of ours takes over.

Nobody takes the office from Kafka's controllers unless an operator has ordered it, which one election uses up. An empty
`/controller` is for Kafka's brokers too, unless no controller has ever been elected. Nobody takes office while KRaft
migrates or governs the cluster, or after an operator's release, which lasts until the next order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from controller.model.election_results import Standby, Won
from transport.store import formats, paths
from transport.store.kafka_office import OfficeZnodes, Writer, encode_holder, encode_lock, encode_mark
from transport.store.protocol import Check, Create, Delete, Op, Set

RELEASE: Final = "`klamm controller release`"
TAKE_OVER: Final = "`klamm controller take-over`"

_DELETED: Final = (
    "an operator or another controller removed Klamm's /controller: this counts as a release,"
    f" and no controller of Klamm's stands for election until {TAKE_OVER}"
)


_EMPTY_MIGRATION: Final = (
    "/migration is empty, as zookeeper-security-migration leaves it (KAFKA-19480), and counts as none: delete it, or a"
    " migration to KRaft hangs there"
)


@frozen
class Candidate:
    """A controller of ours and its session. `now_ms` is the time of the election."""

    controller_id: int
    session_id: int
    now_ms: int


@frozen
class Claim:
    """Take office with these operations, which make us `won`."""

    ops: tuple[Op, ...]
    won: Won


@frozen
class GiveUp:
    """Leave the office, or end one that nobody holds, with these operations."""

    ops: tuple[Op, ...]
    reason: str


Verdict = Won | Standby | Claim | GiveUp


def obstacle(znodes: OfficeZnodes) -> str:
    """Return the reason why nobody of ours may ever take office here, empty if there is none."""
    holder = znodes.holder
    if holder is not None and holder.writer is Writer.KRAFT:
        return f"the KRaft controller {holder.controller_id} holds /controller: no controller of Klamm's takes office"
    migration = znodes.migration
    if migration is None or migration.is_empty:
        return ""
    found, cure = "/migration exists, so a migration to KRaft has begun", "the migration has been rolled back and that"
    if migration.fault:
        found = f"/migration is malformed, so a migration to KRaft may have begun ({migration.fault})"
        cure = "an operator has seen that there is no migration, and the"
    reason = f"{found}: no controller of Klamm's takes office"
    if holder is not None and holder.writer is Writer.KLAMM:
        return f"{reason}; {RELEASE} lets Kafka's brokers elect one of theirs"
    return f"{reason} before {cure} znode deleted"


def remark(znodes: OfficeZnodes) -> str:
    """Return what an operator has to know of an office that may be taken, empty if that is nothing."""
    is_empty = znodes.migration is not None and znodes.migration.is_empty
    return _EMPTY_MIGRATION if is_empty else ""


def judge(znodes: OfficeZnodes, me: Candidate, held: Won | None) -> Verdict:
    """Return what a controller has to do that holds the office `held`, or none, and found these znodes."""
    holder, lock = znodes.holder, znodes.lock
    if lock is not None:
        return _with_lock(znodes, me, held) if lock.session_id == me.session_id else Standby(lock.controller_id)
    is_ours = holder is not None and holder.writer is Writer.KLAMM
    if is_ours and znodes.is_released:
        return GiveUp(release_ops(znodes), "the office was released")
    in_office = None if holder is None or is_ours else holder.controller_id
    if reason := obstacle(znodes):
        return Standby(in_office, reason)
    if znodes.is_released:
        return Standby(in_office, f"the office was released: {TAKE_OVER} ends this")
    if is_ours or znodes.order is not None or (holder is None and not znodes.epoch):
        return _claim(znodes, me)
    return Standby(in_office, _left_to_kafka(in_office))


def _left_to_kafka(controller_id: int | None) -> str:
    who = "no controller is in office" if controller_id is None else f"Kafka's controller {controller_id} is in office"
    return f"{who}, and the office is left to Kafka's brokers: {TAKE_OVER} takes it"


def _with_lock(znodes: OfficeZnodes, me: Candidate, held: Won | None) -> Verdict:
    """Judge for the controller whose session holds the lock."""
    holder = znodes.holder
    unlock = (_fence(znodes), Delete(paths.OFFICE_LOCK))
    if holder is None or holder.writer is Writer.KAFKA:
        mark = () if znodes.is_released else (Create(paths.RELEASED, encode_mark(me.now_ms)),)
        return GiveUp((*unlock, *mark), _DELETED)
    if holder.writer is Writer.KRAFT:
        return GiveUp(unlock, obstacle(znodes))
    if znodes.is_released:
        return GiveUp(release_ops(znodes), "the office was released")
    if held == found(znodes):
        return held
    if reason := obstacle(znodes):
        return GiveUp(unlock, reason)
    return _claim(znodes, me)


def found(znodes: OfficeZnodes) -> Won:
    """Return the epoch that was found, and its version."""
    return Won(znodes.epoch or 0, znodes.epoch_version)


def _claim(znodes: OfficeZnodes, me: Candidate) -> Claim:
    """Return the operations that take office; each fails if what the rule relies on has changed."""
    won = Won(found(znodes).epoch + 1, znodes.epoch_version + 1)
    epoch = Set(paths.CONTROLLER_EPOCH, formats.encode_controller_epoch(won.epoch), znodes.epoch_version)
    lock = Create(paths.OFFICE_LOCK, encode_lock(me.controller_id), ephemeral=True)
    held = lock if znodes.lock is None else Check(paths.OFFICE_LOCK, znodes.lock.version)
    order = () if znodes.order is None else (Delete(paths.TAKE_OVER, znodes.order),)
    return Claim((epoch, *_hold(znodes, me), held, *order, *_no_migration(znodes), *_absent(paths.RELEASED)), won)


def _no_migration(znodes: OfficeZnodes) -> Sequence[Op]:
    """Return operations that fail if a migration has begun since the znodes were read.

    A KRaft controller that deletes an empty znode and creates it again, both in one multi, gives it the version 0,
    which the empty one may have had. Our election then begins before that migration is seen: it is met as one that
    begins while we are in office.
    """
    if znodes.migration is None:
        return _absent(paths.MIGRATION)
    return (Check(paths.MIGRATION, znodes.migration.version),)


def is_ordered(znodes: OfficeZnodes) -> bool:
    """Return whether a claim would carry out an operator's order, and not follow one of Klamm's controllers."""
    is_ours = znodes.holder is not None and znodes.holder.writer is Writer.KLAMM
    return znodes.order is not None and not is_ours


def is_forced(znodes: OfficeZnodes) -> bool:
    """Return whether checks do not count: an order says so, or said so when the present office began."""
    if is_ordered(znodes):
        return znodes.is_forced
    return znodes.holder is not None and znodes.holder.is_forced


def _hold(znodes: OfficeZnodes, me: Candidate) -> tuple[Op, ...]:
    """Return the operations that put us into `/controller`.

    One of ours is overwritten, so that its czxid says since when Kafka's controllers have been out of office.
    """
    holder = znodes.holder
    data = encode_holder(me.controller_id, me.now_ms, is_forced=is_forced(znodes))
    if holder is None:
        return (Create(paths.CONTROLLER, data),)
    if holder.writer is Writer.KLAMM:
        return (Set(paths.CONTROLLER, data, holder.version),)
    return Delete(paths.CONTROLLER, holder.version), Create(paths.CONTROLLER, data)


def _fence(znodes: OfficeZnodes) -> Check:
    """Return the operation that fails if a controller was elected since the znodes were read."""
    return Check(paths.CONTROLLER_EPOCH, znodes.epoch_version)


def _absent(path: str) -> Sequence[Op]:
    """Return operations that fail if a znode exists and otherwise change nothing."""
    return Create(path), Delete(path)


def release_ops(znodes: OfficeZnodes) -> tuple[Op, ...]:
    """Return the operations that remove our `/controller`, and the lock if there is one."""
    assert znodes.holder is not None
    lock = () if znodes.lock is None else (Delete(paths.OFFICE_LOCK, znodes.lock.version),)
    return (_fence(znodes), Delete(paths.CONTROLLER, znodes.holder.version), *lock)
