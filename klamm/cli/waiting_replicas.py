"""Why replicas of live brokers are offline.

They wait until earlier topics of the same name have been deleted, or their brokers failed to carry out an order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from transport.messages import MetadataResponse
from transport.metadata import TopicPartition


class FailedRow(Struct):
    """A replica that failed to carry out an order, with the reason."""

    broker_id: int
    order: str
    reason: str
    failures: int


def notes_of(found: MetadataResponse) -> Iterator[str]:
    """Yield a line for each replica that waits for a deletion or has failed."""
    yield from waiting_lines(found)
    yield from failed_lines(found)


def failed_lines(found: MetadataResponse) -> Iterator[str]:
    """Yield a line for each replica of a listed partition that has failed, with the reason."""
    listed = {state.tp for state in found.partitions}
    for one in found.failed:
        if one.tp in listed:
            times = "once" if one.failures == 1 else f"{one.failures} times"
            yield f"{one.tp}: broker {one.broker_id} failed to {one.order} {times}: {one.reason}"


def failed_rows(found: MetadataResponse, tp: TopicPartition) -> list[FailedRow]:
    """Return the failed replicas of a partition."""
    return [FailedRow(one.broker_id, one.order, one.reason, one.failures) for one in found.failed if one.tp == tp]


def waiting_lines(found: MetadataResponse) -> Iterator[str]:
    """Yield a line for each broker that has logs of an earlier topic in place of a later one's."""
    live = {broker.id for broker in found.brokers}
    counts = Counter((one.topic, one.broker_id) for one in found.waiting)
    for (topic, broker_id), count in sorted(counts.items()):
        deletion = "delete" if broker_id in live else "come back and delete"
        logs = f"{count} log{'' if count == 1 else 's'} of an earlier topic of that name"
        yield f"{topic} waits for broker {broker_id} to {deletion} {logs}"
