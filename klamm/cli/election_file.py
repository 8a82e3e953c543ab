"""Kafka's election JSON, with an optional order of the replicas."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from attrs import field, frozen

from klamm.cli.names import broker_ids, is_broker_id
from klamm.cli.reassignment.files import LIMIT, FileFault, load_object
from transport.input_files import UnreadableFile, read_text
from transport.metadata import TopicPartition
from transport.settings import INT_MAX
from transport.store import formats


@frozen
class Wanted:
    """The partitions to elect leaders for: `plain` ones (None means all), and those with a new order."""

    plain: tuple[TopicPartition, ...] | None
    orders: Mapping[TopicPartition, tuple[int, ...]] = field(factory=dict)


def read(file: Path) -> Wanted:
    """Read `{"partitions":[{"topic":"t","partition":0,"replicas":[3,1,2]}]}`, where `replicas` is optional.

    A file for `klamm reassignment` has this form as well. Raises click.ClickException with the place of a mistake.
    """
    try:
        data = read_text(file, LIMIT).encode()
    except UnreadableFile as fault:
        raise click.ClickException(str(fault)) from None
    try:
        entries = load_object(data).get("partitions")
        tps = formats.decode_partitions(str(file), data)
    except FileFault as fault:
        raise click.ClickException(f"{file}: {fault}") from None
    except formats.UndecodableZnode as fault:
        raise click.ClickException(f"{file}: {fault.fault}") from None
    if not tps:
        raise click.ClickException(f"{file}: the list of partitions is empty")
    orders: dict[TopicPartition, tuple[int, ...]] = {}
    seen = set[TopicPartition]()
    for number, entry in enumerate(entries or ()):
        tp = TopicPartition(entry["topic"], entry["partition"])
        if not 0 <= tp.partition <= INT_MAX:
            text = f"partitions[{number}].partition must be from 0 to {INT_MAX}, is {tp.partition}"
            raise click.ClickException(f"{file}: {text}")
        if tp in seen:
            raise click.ClickException(f"{file}: partitions[{number}]: duplicate partition {tp}")
        seen.add(tp)
        if entry.get("replicas") is not None:
            orders[tp] = _order(f"{file}: partitions[{number}].replicas", entry["replicas"])
    return Wanted(tuple(tp for tp in tps if tp not in orders), orders)


def parse_order(text: str) -> tuple[int, ...]:
    """Return the order in an option such as `3,1,2`. Raises UsageError."""
    order = broker_ids(text)
    if order is None:
        text = f"--replicas {text}: name broker ids up to {INT_MAX}, the leader first: --replicas 3,1,2"
        raise click.UsageError(text)
    return order


def _order(where: str, replicas: object) -> tuple[int, ...]:
    if not isinstance(replicas, list) or not replicas or not all(map(is_broker_id, replicas)):
        raise click.ClickException(f"{where} must be a list of broker ids, the leader first")
    if len(set(replicas)) < len(replicas):
        raise click.ClickException(f"{where} {replicas} names a broker twice")
    return tuple(replicas)
