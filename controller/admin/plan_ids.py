"""The ids in a plan: of the cluster that it was made on, and of the topics that it moves.

A plan names partitions by topic and number, which another cluster has as well, or a topic that was deleted and created
again. The ids tell whether a plan is carried out where it was made, as far as both sides know them: releases before
Klamm had them, other tools and brokers before Kafka 2.8 do not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Self

from attrs import field, frozen

from controller.admin.move_admin import MoveAdmin
from transport.messages import PartitionState
from transport.metadata import is_topic_id

CREATED_AGAIN: Final = "its topic was deleted and created again"
_NAMED: Final = 10
"""The topics that a message names."""


class PlanMismatch(Exception):
    """A plan is not one for this cluster as it is; the message says why."""


class OtherCluster(PlanMismatch):
    """A plan was made on another cluster."""


class TopicsCreatedAgain(PlanMismatch):
    """Topics of a plan were deleted and created again since it was made; `topics` names them."""

    def __init__(self, message: str, topics: tuple[str, ...]) -> None:
        super().__init__(message)
        self.topics = topics


@frozen
class Comparison:
    """The ids of a plan compared with those of a cluster.

    Attributes:
        other_cluster: Why the plan is one for another cluster; empty if it is not, or that is not known.
        created_again: The topics that were deleted and created again since the plan was made, in order.
        unchecked: What could not be compared, in words.
    """

    other_cluster: str = ""
    created_again: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


@frozen
class PlanIds:
    """The ids in a plan, as far as it has them: of its cluster, and of topics by name."""

    cluster_id: str | None = None
    topic_ids: Mapping[str, str] = field(factory=dict, repr=False)

    @classmethod
    def of(cls, document: Mapping[str, object]) -> Self:
        """Return the ids in a decoded file of Kafka's reassignment JSON, as `klamm plan` writes it.

        Raises ValueError.
        """
        cluster_id = document.get("cluster_id")
        if cluster_id is not None and (not isinstance(cluster_id, str) or not cluster_id.isprintable()):
            raise ValueError(f"cluster_id must be a string, is {cluster_id!r}")
        entries = document.get("partitions")
        topic_ids: dict[str, str] = {}
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            topic_id = entry.get("topic_id") if isinstance(entry, Mapping) else None
            if topic_id is None:
                continue
            where = f"partitions[{number}].topic_id"
            if not isinstance(topic_id, str) or not is_topic_id(topic_id):
                raise ValueError(f"{where} must be the id of a topic, is {topic_id!r}")
            if topic_ids.setdefault(entry["topic"], topic_id) != topic_id:
                raise ValueError(f"{where}: an earlier entry has another id of topic {entry['topic']}: plan anew")
        return cls(cluster_id or None, topic_ids)

    def together(self, other: PlanIds) -> PlanIds:
        """Return the ids of two files of one plan. Raises ValueError if they cannot be of one."""
        if None not in {self.cluster_id, other.cluster_id} and self.cluster_id != other.cluster_id:
            raise ValueError(
                f"it was made on cluster {other.cluster_id}, and another file of the plan on {self.cluster_id}"
            )
        for topic, topic_id in other.topic_ids.items():
            if self.topic_ids.get(topic, topic_id) != topic_id:
                raise ValueError(f"another file of the plan has another id of topic {topic}: plan anew")
        return PlanIds(self.cluster_id or other.cluster_id, {**self.topic_ids, **other.topic_ids})

    def compare(
        self, cluster_id: str | None, partitions: Iterable[PartitionState], *, other_cluster: bool = False
    ) -> Comparison:
        """Compare the ids with those of a cluster.

        Args:
            cluster_id: The id of the cluster, None if it has none.
            partitions: Those of the topics of the plan, as far as they exist.
            other_cluster: Whether the cluster may be another one than that of the plan. If it may be, topics are
                compared only if it is known to be the same.
        """
        is_known = None not in {self.cluster_id, cluster_id}
        if is_known and self.cluster_id != cluster_id and not other_cluster:
            return Comparison(f"the plan was made on cluster {self.cluster_id}, and this is cluster {cluster_id}")
        if other_cluster and (not is_known or self.cluster_id != cluster_id):
            return Comparison(unchecked=("whether topics were created again, as this may be another cluster",))
        now = {state.topic: state.topic_id for state in partitions}
        compared = {topic for topic, topic_id in now.items() if topic_id and topic in self.topic_ids}
        again = tuple(sorted(topic for topic in compared if now[topic] != self.topic_ids[topic]))
        # The ids of topics tell clusters apart, too.
        unchecked = () if len(compared) == len(now) else tuple(self._unchecked(now, compared, is_known=is_known))
        return Comparison("", again, unchecked)

    def _unchecked(self, now: Mapping[str, str], compared: Collection[str], *, is_known: bool) -> Iterable[str]:
        if not is_known and not compared:
            why = "the plan does not name it" if self.cluster_id is None else "this one does not tell its id"
            yield f"whether this is the cluster of the plan, as {why}"
        lacking = sorted(now.keys() - compared)
        why = "the plan does not have the ids of" if lacking[0] not in self.topic_ids else "the cluster has no ids for"
        yield f"whether topics were created again, as {why} {_named(lacking)}"

    async def require(self, admin: MoveAdmin, *, other_cluster: bool = False) -> tuple[str, ...]:
        """Require that a cluster is the one of the plan, and that topics are those of then.

        Returns what could not be checked, in words. Raises OtherCluster, unless the cluster may be another one, and
        TopicsCreatedAgain.
        """
        metadata = await admin.read_metadata(sorted(self.topic_ids))
        found = self.compare(await admin.cluster_id(), metadata.partitions, other_cluster=other_cluster)
        if found.other_cluster:
            raise OtherCluster(found.other_cluster)
        if found.created_again:
            raise TopicsCreatedAgain(created_again(found.created_again), found.created_again)
        return found.unchecked


def created_again(topics: Collection[str]) -> str:
    """Return the sentence that names topics which were created again."""
    were = "was" if len(topics) == 1 else "were"
    return f"{_named(sorted(topics))} {were} deleted and created again since the plan was made"


def _named(topics: Collection[str]) -> str:
    names = sorted(topics)
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"topic{'s' if len(names) > 1 else ''} {', '.join(names[:_NAMED])}{more}"
