"""How much of a cluster a client may see: the one place that judges whether an answer is complete. Pure.

Kafka leaves out of lists the topics that a client may not describe, without a word. Two facts show that it does:

1. A topic with an arbitrary name, `PROBE`. If it may be described, the answer is that there is no such topic, and all
   others are visible, except for those that an ACL denies one by one. If not, only some topics are visible, or none.
2. The logs that brokers have. Those of topics that metadata do not show belong to hidden topics, or to topics that were
   created or deleted in between: the answer to a question for the topic by its name tells them apart.

Reassignments in progress are visible to those who may describe the cluster, and so are log directories; these have a
`fault` where they are hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from attrs import field, frozen

from controller.admin.broker_log_dirs import BrokerLogDirs
from transport.acls import Operation, needs
from transport.errors import ErrorCode
from transport.messages import UNKNOWN, MetadataResponse, TopicError

PROBE: Final = "q7x0-may-klamm-describe-every-topic"
"""The name of a topic that need not exist. It begins so that no ACL for a prefix is about it by chance."""

PARTIAL: Final = "this is only a part of the cluster"
_NAMED: Final = 3
"""The number of hidden topics that are named."""


@frozen
class Visibility:
    """The part of a cluster that a client may see; by default, all of it."""

    sees_all_topics: bool = True
    """Whether topics of any name may be described."""

    hidden: Mapping[str, int] = field(factory=dict)
    """Topics that may not be described though brokers have logs of them, with the number of their partitions."""

    sees_moves: bool = True
    sees_settings: bool = True
    """Whether the settings of topics of any name may be described."""

    @property
    def lacking_topics(self) -> str | None:
        """A line that says that topics are hidden, and which permission is missing; None if all are visible."""
        if self.sees_all_topics and not self.hidden:
            return None
        others = ""
        if self.hidden:
            count, partitions = len(self.hidden), sum(self.hidden.values())
            topics = "topic" if count == 1 else "topics"
            others = f" (brokers have {partitions:,} partitions of {count:,} other {topics})"
        return f"{PARTIAL}{others}: our principal needs {Operation.DESCRIBE.value} on {self._where}"

    @property
    def lacking_moves(self) -> str | None:
        """A line that says that moves in progress are hidden; None if they are visible."""
        return None if self.sees_moves else f"moves in progress are not known: {needs(Operation.DESCRIBE)}"

    @property
    def lacking_sizes(self) -> str | None:
        """A line that says that sizes and moves in progress are hidden; None if they are visible."""
        return None if self.sees_moves else f"sizes and moves in progress are not known: {needs(Operation.DESCRIBE)}"

    @property
    def lacking(self) -> tuple[str, ...]:
        """A line for each thing that is hidden."""
        return tuple(line for line in (self.lacking_topics, self.lacking_moves) if line is not None)

    def lacking_counts(self, under_min_isr: int) -> tuple[str, ...]:
        """Return a line for each thing that is hidden from counts, of which `under_min_isr` needs settings."""
        if self.sees_settings or under_min_isr != UNKNOWN:
            return self.lacking
        need = f"our principal needs {Operation.DESCRIBE_CONFIGS.value} on all topics"
        return (*self.lacking, f"partitions under min ISR are not known: {need}")

    @property
    def partial(self) -> str | None:
        """The lines in one, for documents; None if nothing is hidden."""
        return "; ".join(self.lacking) or None

    @property
    def _where(self) -> str:
        if not self.sees_all_topics:
            return "all topics"
        names = sorted(self.hidden)
        more = len(names) - _NAMED
        return f"topic {', '.join(names[:_NAMED])}" + (f" and {more:,} more" if more > 0 else "")


WHOLE: Final = Visibility()


def undescribed(metadata: MetadataResponse, dirs: Mapping[int, BrokerLogDirs]) -> dict[str, int]:
    """Return the topics that brokers have logs of and that metadata do not show, with their numbers of partitions."""
    described = {state.topic for state in metadata.partitions}
    logs = {log.tp for told in dirs.values() for one in told.log_dirs for log in one.replicas}
    return dict(Counter(tp.topic for tp in logs if tp.topic not in described))


def judge(
    refused: Iterable[TopicError],
    others: Mapping[str, int],
    *,
    sees_moves: bool = True,
    sees_settings: bool = True,
) -> Visibility:
    """Return what a client may see.

    Args:
        refused: The errors of the topics that were asked for: `PROBE`, and the others.
        others: The topics that brokers have logs of and that metadata do not show; see `undescribed`.
        sees_moves: Whether reassignments in progress may be listed.
        sees_settings: Whether the settings of `PROBE` may be described.
    """
    denied: Collection[str] = {one.name for one in refused if one.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    hidden = {name: count for name, count in others.items() if name in denied}
    return Visibility(PROBE not in denied, hidden, sees_moves, sees_settings)
