"""A store in which another process writes just before the controller does."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import define, evolve

from tests.kit.passing_store import PassingStore
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Check, Committed, Delete, Op, Set, Znode


@define
class Meddler(PassingStore):
    """A session whose first multi that writes `path`, but for `earlier` ones, comes after somebody's `ops`.

    An `endless` one lets somebody do that before each later one, too.
    """

    path: str
    ops: Sequence[Op]
    earlier: int = 0
    endless: bool = False
    overtaken: int = 0
    """The number of times that another write came first."""

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Do all of `ops` or nothing, but somebody else's first."""
        if self.ops and any(op.path == self.path for op in ops if not isinstance(op, Check)):
            self.earlier -= 1
            if self.earlier < 0:
                await self.store.multi(self.ops)
                self.ops = self.ops if self.endless else ()
                self.overtaken += 1
        return await super().multi(ops, known=known)


def set_state(tp: TopicPartition, state: LeaderAndIsr) -> Op:
    """Return the operation that writes a partition's state."""
    return Set(paths.partition_state(tp), formats.encode_partition_state(state), -1)


def set_assignments(
    name: str, znode: Znode | None, partitions: dict[int, ReplicaAssignment], topic_id: str | None = ""
) -> Op:
    """Return the operation that adds or replaces assignments in a topic's znode; `topic_id` "" keeps its id."""
    assert znode is not None
    topic = formats.decode_topic(name, znode.data)
    topic_id = topic.topic_id if topic_id == "" else topic_id
    topic = evolve(topic, partitions={**topic.partitions, **partitions}, topic_id=topic_id)
    return Set(paths.topic(name), formats.encode_topic(topic), -1)


def delete_topic(name: str, partitions: int) -> list[Op]:
    """Return the operations that delete a topic's znodes."""
    tps = [TopicPartition(name, number) for number in range(partitions)]
    below = [path for tp in tps for path in (paths.partition_state(tp), paths.partition(tp))]
    return [Delete(path) for path in (*below, paths.topic_partitions(name), paths.topic(name))]
