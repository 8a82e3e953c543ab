"""What users and administrators ask of a cluster's records, consumer groups and log directories with Kafka's tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from confluent_kafka import Consumer

from tests.kafka.tool_sides import SECONDS, Side

READING = """
    kafka-console-consumer --topic g1 --partition 0 --offset earliest --max-messages 3
    kafka-console-consumer --topic g1 --partition 0 --offset earliest --max-messages 1 --property print.key=true
    kafka-console-consumer --topic g1 --group read --from-beginning --max-messages 4
    kafka-console-consumer --topic g1 --partition 0 --offset 9 --timeout-ms 500
    kafka-console-consumer --partition 0
"""
LIVE = """
    kafka-consumer-groups --list
    kafka-consumer-groups --list --state
    kafka-consumer-groups --describe --group live
    kafka-consumer-groups --describe --group live --members --verbose
    kafka-consumer-groups --describe --group live --state
    kafka-consumer-groups --describe --all-groups --state
    kafka-consumer-groups --describe --group nosuch
    kafka-consumer-groups --reset-offsets --group live --topic g1 --to-earliest --execute
    kafka-consumer-groups --delete --group live
    kafka-consumer-groups --delete --group nosuch
    kafka-consumer-groups --delete-offsets --group live --topic g1
    kafka-consumer-groups --delete-offsets --group nosuch --topic g1
"""
EMPTY = """
    kafka-consumer-groups --describe --group live
    kafka-consumer-groups --describe --group live --members
    kafka-consumer-groups --reset-offsets --group live --topic g1 --to-earliest --dry-run
    kafka-consumer-groups --reset-offsets --group live --topic g1:0 --to-offset 1 --execute
    kafka-consumer-groups --reset-offsets --group live --topic g1 --shift-by 99 --execute
    kafka-consumer-groups --reset-offsets --group live --all-topics --to-latest --export
    kafka-consumer-groups --reset-offsets --group live --topic nosuch --to-earliest --execute
    kafka-consumer-groups --reset-offsets --group fresh --topic g1 --to-earliest --execute
    kafka-consumer-groups --describe --offsets --group live
    kafka-consumer-groups --delete-offsets --group live --topic g1
    kafka-consumer-groups --delete --group live --group fresh
    kafka-consumer-groups --delete --group live
    kafka-consumer-groups --describe --group live
    kafka-consumer-groups --list
    kafka-log-dirs --describe --broker-list 1,2 --topic-list g1
    kafka-log-dirs --describe --topic-list nosuch --broker-list 1
    kafka-log-dirs --describe --broker-list 9
    kafka-log-dirs --describe --broker-list a
    kafka-log-dirs --describe --topic-list g1
"""


async def groups(side: Side) -> None:
    """Write and read with the console's tools, and look at groups that are alive, empty and gone."""
    await side.run("kafka-topics --create --topic g1 --replica-assignment 1:2,2:3")
    write = "kafka-console-producer --topic g1 --property parse.key=true --property key.separator=:"
    await side.run(f"{write} --sync", b"a:one\na:two\na:three\nb:four\n")
    await side.play(READING)
    async with _reading(side):
        await side.play(LIVE)
    await side.play(EMPTY)


@asynccontextmanager
async def _reading(side: Side) -> AsyncIterator[None]:
    """Keep a member of a group alive until the end of the block.

    When the block begins, it has read all and committed that.
    """
    consumer = Consumer(
        {"bootstrap.servers": side.tools.bootstrap, "group.id": "live", "client.id": "reader"}
        | {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe(["g1"])
    try:
        await trio.to_thread.run_sync(_read_and_commit, consumer)
        yield
    finally:
        await trio.to_thread.run_sync(consumer.close)


def _read_and_commit(consumer: Consumer) -> None:
    for _ in range(4):
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None, message.error()
    consumer.commit(asynchronous=False)
