"""Rounds: the effects by which a handler observes, decides and changes without doing any I/O itself.

A handler is a generator. It yields a `Read` or `Children` (observe) and is sent the result. It yields a `Change`
(decide), whose steps its driver commits, applies and publishes, and is sent the steps that were not committed: those
that depend on something that has changed, and those that the store will never accept. Nothing else touches the context
between two yields. `read`, `existing` and `children` add types to these yields, and so do the two ways to change:
`apply` is for steps that write nothing, and `commit` for all others. An ACL may close any znode to writes, so whoever
commits says what follows from a rejected write. Handlers compose with `yield from`, and decide again on refused steps
with `until_none_is_left`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Final, TypeVar, cast

from attrs import frozen

from controller.model.facts import Fact
from transport.log import get_logger
from transport.messages import BrokerEndpoint, PartitionState, StopReplicaPartition
from transport.metadata import TopicPartition
from transport.store.protocol import Op, Unlisted, Znode, require_listed

Item = TypeVar("Item")
Key = TypeVar("Key")
T = TypeVar("T")

log = get_logger(__name__)

MAX_ATTEMPTS: Final = 100
"""The most consecutive attempts without progress that concurrent changes may cause."""


class Contended(Exception):
    """Another process keeps changing what a handler writes, or the store contradicts its own answers."""


@frozen
class TellLeaderAndIsr:
    """Tell brokers to lead or follow partitions: those in `recipients[i]` are told `states[i]`."""

    recipients: Sequence[tuple[int, ...]]
    states: Sequence[PartitionState]
    is_new: bool = False


@frozen
class TellStopReplica:
    """Tell brokers to stop, and perhaps to delete, replicas: those in `recipients[i]` theirs of `partitions[i]`."""

    recipients: Sequence[tuple[int, ...]]
    partitions: Sequence[StopReplicaPartition]


@frozen
class TellMetadata:
    """Tell brokers about partitions, and with `live_brokers` which brokers are alive. `brokers` None means all of them.

    `topics` are the names and ids of all topics, for brokers that may have missed a deletion.
    """

    brokers: tuple[int, ...] | None
    partitions: tuple[PartitionState, ...] = ()
    live_brokers: tuple[BrokerEndpoint, ...] | None = None
    topics: tuple[tuple[str, str], ...] | None = None


Publication = TellLeaderAndIsr | TellStopReplica | TellMetadata


@frozen
class Step:
    """One subject's part of a change: committed whole or not at all, then applied, then published.

    `subjects` are the partitions that the step is about. A step without writes is applied and published at once.
    """

    subjects: tuple[TopicPartition, ...] = ()
    writes: tuple[Op, ...] = ()
    facts: tuple[Fact, ...] = ()
    publications: tuple[Publication, ...] = ()


@frozen
class Read:
    """Observe znodes; answered by a list of Znode or None."""

    paths: tuple[str, ...]
    watch: bool


@frozen
class ReadAhead:
    """Let the store look for znodes that the handler will observe next; answered at once."""

    paths: tuple[str, ...]


@frozen
class Children:
    """Observe lists of children; answered by a list of names or None for each."""

    paths: tuple[str, ...]
    watch: bool


@frozen
class ChangeOutcome:
    """The steps that were not committed: some are stale, others can never be committed."""

    refused: tuple[Step, ...] = ()
    rejected: tuple[Step, ...] = ()


Decision = Callable[[], Sequence[Step]]


@frozen
class Change:
    """A named round's decision; answered by its ChangeOutcome.

    `later` decide on further steps, each while the store writes those before. They must be about other subjects, and
    depend on nothing that changes with those.
    """

    round: str
    steps: Sequence[Step]
    later: Sequence[Decision] = ()


@frozen
class Loaded:
    """The state in which a new controller found a moving partition, for the commit trace; changes nothing."""

    tp: TopicPartition
    zxid: int


Effect = Read | ReadAhead | Children | Change | Loaded
Rounds = Generator[Effect, object, T]


def read(paths: Iterable[str], *, watch: bool = False) -> Rounds[list[Znode | None]]:
    """Observe znodes; the result has None for each that does not exist."""
    wanted = tuple(paths)
    if not wanted:
        return []
    return cast("list[Znode | None]", (yield Read(wanted, watch)))


def read_ahead(paths: Iterable[str]) -> Rounds[None]:
    """Begin to observe znodes, for a `read` of the same paths that is the next call of the store."""
    if wanted := tuple(paths):
        yield ReadAhead(wanted)


def existing(path: Callable[[Key], str], keys: Iterable[Key], *, watch: bool = False) -> Rounds[dict[Key, Znode]]:
    """Observe the znode of each key; the result has those that exist."""
    wanted = tuple(keys)
    znodes = yield from read(map(path, wanted), watch=watch)
    return {key: znode for key, znode in zip(wanted, znodes, strict=True) if znode is not None}


def children(path: str, *, watch: bool = False) -> Rounds[list[str]]:
    """Observe the sorted names of a znode's children; see `lists`."""
    [names] = yield from lists([path], watch=watch)
    return names


def lists(paths: Sequence[str], *, watch: bool = False) -> Rounds[list[list[str]]]:
    """Observe the sorted names of the children of znodes together; [] for each that does not exist.

    Raises StoreError if an ACL keeps us from listing them.
    """
    found = cast("list[list[str] | None]", (yield Children(tuple(paths), watch)))
    return [require_listed(path, names) for path, names in zip(paths, found, strict=True)]


def descendants(roots: Sequence[str]) -> Rounds[list[list[str] | None]]:
    """Observe the paths of all znodes below each root, children before their parents.

    None for a root below which there is a znode whose children we may not list.
    """
    found: list[list[str] | None] = [[] for _ in roots]
    level = list(enumerate(roots))
    while level:
        lists = cast("list[list[str] | None]", (yield Children(tuple(path for _, path in level), watch=False)))
        below: list[tuple[int, str]] = []
        for (i, path), names in zip(level, lists, strict=True):
            known = found[i]
            # A list that we may not read can hide any number of znodes, so nothing complete is known of this root.
            if isinstance(names, Unlisted) or known is None:
                found[i] = None
                continue
            paths = [f"{path}/{name}" for name in names or ()]
            known += paths
            below += [(i, each) for each in paths]
        level = below
    return [None if known is None else known[::-1] for known in found]


# --- changing ---------------------------------------------------------------------------------------------------


def apply(name: str, steps: Sequence[Step]) -> Rounds[None]:
    """Apply and publish `steps` without writes as the round `name`. The store cannot reject them.

    Raises ValueError if a step has writes: those are for `commit`.
    """
    if any(step.writes for step in steps):
        raise ValueError(f"round {name} applies writes without a commit")
    if steps:
        yield Change(name, steps)


Rejections = Callable[[Sequence[Item]], None]
"""Takes what was rejected: collects it for the answer, or raises the error that is the answer."""


def commit(
    name: str, steps: Sequence[Step], *, on_rejected: Rejections[Step], later: Sequence[Decision] = ()
) -> Rounds[tuple[Step, ...]]:
    """Commit, apply and publish `steps` as the round `name`; return the stale ones, which are to be decided again.

    `on_rejected` is called with the steps that the store will never accept, if there are any. Their subjects stay as
    they are, and to repeat them at once is useless. For `later` see `Change`.
    """
    if not (steps or later):
        return ()
    outcome = cast("ChangeOutcome", (yield Change(name, steps, later)))
    if outcome.rejected:
        on_rejected(outcome.rejected)
    return outcome.refused


def commit_each(name: str, steps: Mapping[Key, Step], *, on_rejected: Rejections[Key]) -> Rounds[list[Key]]:
    """Do the same with a step for each key; return the keys of the stale ones, and pass on those of the rejected."""
    keys = {id(step): key for key, step in steps.items()}  # the driver answers with the steps that it was given

    def reject(rejected: Sequence[Step]) -> None:
        on_rejected([keys[id(step)] for step in rejected])

    stale = yield from commit(name, list(steps.values()), on_rejected=reject)
    return [keys[id(step)] for step in stale]


def logged(consequence: str) -> Rejections[object]:
    """Return what to do about rejected writes that need no other answer: log their `consequence`.

    The driver has logged which write was rejected, and why.
    """

    def log_consequence(rejected: Sequence[object]) -> None:
        log.error("a rejected write has a consequence", consequence=consequence, writes=len(rejected))

    return log_consequence


def until_none_is_left(
    name: str, items: Iterable[Item], attempt: Callable[[list[Item]], Rounds[list[Item]]]
) -> Rounds[None]:
    """Run `attempt` on the items, and again on those that it returns because of concurrent changes.

    Raises Contended after MAX_ATTEMPTS consecutive attempts without progress.
    """
    pending = list(items)
    in_vain = 0
    while pending:
        left = yield from attempt(pending)
        in_vain = in_vain + 1 if len(left) >= len(pending) else 0
        if in_vain == MAX_ATTEMPTS:
            raise Contended(f"{name}: {MAX_ATTEMPTS} attempts were overtaken, the last one at {left[0]}")
        pending = left


def immediately(result: T) -> Rounds[T]:
    """Return a result that needs no round."""
    yield from ()
    return result
