"""The effect of a file before it is executed: refused moves, changes, bytes to copy, and the rollback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from attrs import frozen
from msgspec import Struct

from controller.admin.log_mover import Directories
from controller.admin.move_admin import MoveAdmin
from controller.model.faults import move_fault
from klamm.cli.formats import DRY_RUN, Note, Table, View, known
from klamm.cli.output import known_leader, show
from klamm.cli.reassignment.files import Targets
from klamm.cli.units import size
from klamm.cli.visibility import note
from transport.messages import UNKNOWN, MetadataResponse, PartitionState
from transport.metadata import LEADER_DURING_DELETE, NO_LEADER, ReplicaAssignment, TopicPartition

COLUMNS: Final = ("partition", "replicas", "target", "change", "leader", "bytes")

_NAMED: Final = 3
"""The number of partitions that an error message names."""

Kind = Literal["move", "order", "none"]


class ChangeRow(Struct):
    """The planned change of a partition. `bytes` are to be copied; null for one that is not known, or no leader.

    `log_dirs` has the directories that the file names for replicas, by broker. `partial` says what is hidden from the
    user; null if nothing is.
    """

    topic: str
    partition: int
    change: Kind
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    leader: int | None
    new_leader: int
    bytes: int | None
    log_dirs: dict[str, str]
    partial: str | None = None


@frozen
class ChangePreview:
    """The planned change of one partition. `size` is its log's size on the leader in bytes, or UNKNOWN."""

    tp: TopicPartition
    state: PartitionState
    target: tuple[int, ...]
    size: int = UNKNOWN

    @property
    def origin(self) -> tuple[int, ...]:
        """The current replicas, or those from before the move in progress."""
        return self.state.origin_replicas

    @property
    def adding(self) -> tuple[int, ...]:
        """The brokers that receive a replica."""
        return tuple(r for r in self.target if r not in self.origin)

    @property
    def removing(self) -> tuple[int, ...]:
        """The brokers that lose their replica."""
        return tuple(r for r in self.origin if r not in self.target)

    @property
    def new_leader(self) -> int:
        """The leader after the move: the current one if it is among the target replicas."""
        return self.state.leader if self.state.leader in self.target else self.target[0]

    @property
    def kind(self) -> Kind:
        """The kind of change: "move" if replicas move, "order" if only their order changes, or "none"."""
        if self.adding or self.removing:
            return "move"
        return "none" if self.target == self.state.replicas else "order"

    @property
    def bytes(self) -> int:
        """The number of bytes to copy, or UNKNOWN."""
        if not self.adding:
            return 0
        return UNKNOWN if self.size == UNKNOWN else self.size * len(self.adding)


def states_of(metadata: MetadataResponse) -> dict[TopicPartition, PartitionState]:
    """Return the state of each partition."""
    return {state.tp: state for state in metadata.partitions}


def faults(metadata: MetadataResponse, targets: Targets) -> dict[TopicPartition, str]:
    """Return the targets that the controller would refuse, each with the reason."""
    states, live = states_of(metadata), {broker.id for broker in metadata.brokers}
    found = {tp: _fault(states.get(tp), tp, target, live) for tp, target in targets.items()}
    return {tp: text for tp, text in found.items() if text is not None}


def _fault(state: PartitionState | None, tp: TopicPartition, target: Sequence[int], live: set[int]) -> str | None:
    is_being_deleted = state is not None and state.leader == LEADER_DURING_DELETE
    fault = move_fault(tp, state or ReplicaAssignment(()), target, live, is_being_deleted=is_being_deleted)
    return None if fault is None else fault[1]


def stale(
    states: Mapping[TopicPartition, PartitionState], targets: Targets, starts: Targets
) -> dict[TopicPartition, str]:
    """Describe the partitions that have changed since the plan was made and are not moving to their targets.

    A moving partition counts with its target replicas, as in planning.
    """
    found = {}
    for tp, start in starts.items():
        state = states[tp]
        goes_to = state.target_replicas
        if goes_to not in (start, targets[tp]):
            has = "is being moved to" if state.is_being_reassigned else "has replicas"
            found[tp] = f"{has} {list(goes_to)}, not {list(start)}"
    return found


def stale_refusal(faults: Mapping[TopicPartition, str]) -> str:
    """Return a line that names the changed partitions and says what to do."""
    names = list(map(str, faults))
    shown, left = names[:_NAMED], len(names) - _NAMED
    if left > 0:
        listed = f"{', '.join(shown)} and {left:,} more partition{'' if left == 1 else 's'}"
    else:
        listed = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    have = "has" if len(names) == 1 else "have"
    first, fault = next(iter(faults.items()))
    return (
        f"{listed} {have} changed since the plan was made ({first} {fault}): plan again, or use --force to begin with "
        "the current replicas"
    )


async def changes(admin: MoveAdmin, metadata: MetadataResponse, targets: Targets) -> list[ChangePreview]:
    """Return the change of each partition. All of them must exist."""
    states = states_of(metadata)
    planned = [ChangePreview(tp, states[tp], target) for tp, target in targets.items()]
    sizes = await _sizes(admin, [change.state for change in planned if change.adding])
    return [ChangePreview(change.tp, change.state, change.target, sizes.get(change.tp, UNKNOWN)) for change in planned]


async def _sizes(admin: MoveAdmin, states: Iterable[PartitionState]) -> dict[TopicPartition, int]:
    """Ask the leaders for the sizes of partitions; those whose leader does not answer are omitted."""
    led: defaultdict[int, set[TopicPartition]] = defaultdict(set)
    for state in states:
        if state.leader != NO_LEADER:
            led[state.leader].add(state.tp)
    if not led:
        return {}
    said = await admin.describe_log_dirs(sorted(led), sorted(tp for tps in led.values() for tp in tps))
    replicas = [
        (broker_id, replica.tp, replica.size)
        for broker_id, answer in said.items()
        for log_dir in answer.log_dirs
        for replica in log_dir.replicas
    ]
    return {tp: bytes_ for broker_id, tp, bytes_ in replicas if tp in led[broker_id]}


def moving_elsewhere(metadata: MetadataResponse, targets: Targets) -> dict[TopicPartition, PartitionState]:
    """Return the partitions that are being moved to other replicas than their targets."""
    states = states_of(metadata)
    moving = {tp: states[tp] for tp in targets if states[tp].is_being_reassigned}
    return {tp: state for tp, state in moving.items() if state.target_replicas != targets[tp]}


def rollback(metadata: MetadataResponse, targets: Targets) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the current replicas of the partitions, or those from before a move in progress."""
    states = states_of(metadata)
    return {tp: states[tp].origin_replicas for tp in targets}


def view(
    planned: Sequence[ChangePreview], log_dirs: Directories = MappingProxyType({}), partial: str | None = None
) -> View:
    """Return the changes that a file would make; `log_dirs` are the directories that it names for replicas.

    `partial` says what is hidden from the user.
    """
    kinds = [change.kind for change in planned]
    copied = [bytes_ for change in planned if (bytes_ := known(change.bytes)) is not None]
    unknown = len(planned) - len(copied)
    moved, ordered, kept = (kinds.count(kind) for kind in ("move", "order", "none"))
    all_ = f"{len(planned):,} partition{'' if len(planned) == 1 else 's'}"
    parts: list[Table | Note | str] = [
        Table(COLUMNS, list(map(_cells, planned)), numbers=("bytes",)),
        *(f"{tp}: broker {broker_id} keeps its log in {path}" for (tp, broker_id), path in log_dirs.items()),
        f"{all_}: {moved:,} to move, {ordered:,} to reorder, {kept:,} with nothing to do",
        f"To copy: {_amount(sum(copied), unknown)}",
        DRY_RUN,
        *note(partial),
    ]
    return View([_row(change, log_dirs, partial) for change in planned], parts)


def _amount(known: int, unknown: int) -> str:
    """Return a size in words; it excludes `unknown` partitions of unknown size."""
    if not unknown:
        return size(known)
    return f"{size(known)}, not counting {unknown:,} partitions of unknown size" if known else "unknown"


def _cells(change: ChangePreview) -> tuple[object, ...]:
    replicas, leader = show(change.state.replicas), show_leader(change.state.leader)
    moves_already = " (moves)" if change.state.is_being_reassigned else ""
    steps = [f"+{r}" for r in change.adding] + [f"-{r}" for r in change.removing]
    text = {"order": "order only", "none": "nothing to do"}.get(change.kind, " ".join(steps))
    leaders = leader if change.new_leader == change.state.leader else f"{leader} -> {change.new_leader}"
    return (str(change.tp), replicas + moves_already, change.target, text, leaders, size(change.bytes))


def show_leader(leader: int) -> str:
    """Return a leader's id, or a dash if there is none."""
    return "-" if leader == NO_LEADER else str(leader)


def _row(change: ChangePreview, log_dirs: Directories, partial: str | None) -> ChangeRow:
    named = {str(r): log_dirs[change.tp, r] for r in change.target if (change.tp, r) in log_dirs}
    return ChangeRow(
        *change.tp,
        change.kind,
        change.state.replicas,
        change.target,
        change.adding,
        change.removing,
        known_leader(change.state.leader),
        change.new_leader,
        known(change.bytes),
        named,
        partial,
    )
