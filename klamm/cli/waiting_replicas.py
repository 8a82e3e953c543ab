"""Why replicas of live brokers are offline: they wait until earlier topics of the same name have been deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from transport.messages import MetadataResponse


def tell_waiting(found: MetadataResponse) -> None:
    """Say on stderr which replicas wait for a deletion."""
    for line in waiting_lines(found):
        click.echo(line, err=True)


def waiting_lines(found: MetadataResponse) -> Iterator[str]:
    """Yield a line for each broker that has logs of an earlier topic in place of a later one's."""
    live = {broker.id for broker in found.brokers}
    counts = Counter((one.topic, one.broker_id) for one in found.waiting)
    for (topic, broker_id), count in sorted(counts.items()):
        deletion = "delete" if broker_id in live else "come back and delete"
        logs = f"{count} log{'' if count == 1 else 's'} of an earlier topic of that name"
        yield f"{topic} waits for broker {broker_id} to {deletion} {logs}"
