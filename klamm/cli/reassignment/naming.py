"""`--topic` and `--partition`: the moves that a command applies to."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import wraps
from typing import TypeVar

import click
from attrs import frozen

from klamm.cli.decorators import with_options
from klamm.cli.names import PARTITION, TOPIC
from klamm.cli.topic_filters import has_patterns
from transport.metadata import TopicPartition

T = TypeVar("T")


@frozen
class Naming:
    """The moves that a command applies to: those of all topics, of one or of a pattern, or of one of its partitions."""

    topic: str | None
    partition: int | None

    @property
    def is_pattern(self) -> bool:
        """Whether the topic is a pattern, which may match none or many."""
        return self.topic is not None and has_patterns([self.topic])

    @property
    def one(self) -> TopicPartition | None:
        """The partition, if one is named."""
        if self.topic is None or self.partition is None or self.is_pattern:
            return None
        return TopicPartition(self.topic, self.partition)

    @property
    def of_what(self) -> str:
        """The topic or partition, as part of a sentence; empty if all are meant."""
        if self.topic is None:
            return ""
        if self.is_pattern and self.partition is not None:
            return f" of partition {self.partition} of {self.topic}"
        return f" of {self.one or self.topic}"

    @property
    def nothing(self) -> str:
        """The line if there is no such move."""
        return f"no reassignment{self.of_what} is in progress"

    def has(self, tp: TopicPartition) -> bool:
        """Return whether the command applies to the move of a partition."""
        if self.partition not in {None, tp.partition}:
            return False
        if self.topic is None or self.topic == tp.topic:
            return True
        return self.is_pattern and fnmatchcase(tp.topic, self.topic)


def naming_options(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command --topic and --partition, passed to it as `naming`."""

    @wraps(command)
    def with_naming(*, topic: str | None, partition: int | None, **options: object) -> T:
        if partition is not None and topic is None:
            raise click.UsageError("--partition needs the topic: name it with --topic")
        return command(naming=Naming(topic, partition), **options)

    options = (
        click.option("--topic", type=TOPIC, help="Only partitions of this topic, or of a pattern such as 'orders-*'."),
        click.option("--partition", type=PARTITION, help="Only this partition of --topic."),
    )
    return with_options(with_naming, options)
