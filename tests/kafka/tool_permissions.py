"""What users ask of a cluster that trusts nobody without proof, and what they may not."""

from __future__ import annotations

from tests.kafka.cluster_security import CLIENT, CONTROLLER
from tests.kafka.tool_sides import Side

OF_EVERYBODY = """
    kafka-topics --create --topic t2 --partitions 2 --replication-factor 2 --command-config {}/USER.properties
    kafka-topics --create --topic t1 --partitions 2 --command-config {}/USER.properties
    kafka-topics --alter --topic t1 --partitions 3 --replica-assignment 1:2,2:3,3:1 --command-config {}/USER.properties
    kafka-topics --alter --topic nosuch --partitions 4 --command-config {}/USER.properties
    kafka-topics --describe --topic t1 --command-config {}/USER.properties
    kafka-topics --list --command-config {}/USER.properties
    kafka-reassign-partitions --list --command-config {}/USER.properties
    kafka-reassign-partitions --execute --reassignment-json-file {}/move --command-config {}/USER.properties
    kafka-reassign-partitions --cancel --reassignment-json-file {}/move --command-config {}/USER.properties
    kafka-leader-election --election-type preferred --topic t1 --partition 0 --admin.config {}/USER.properties
    kafka-leader-election --election-type preferred --all-topic-partitions --admin.config {}/USER.properties
    kafka-configs --alter --user eve --add-config SCRAM-SHA-256=[password=x] --command-config {}/USER.properties
    kafka-configs --describe --user eve --command-config {}/USER.properties
    kafka-configs --alter --topic t1 --add-config retention.ms=5000 --command-config {}/USER.properties
    kafka-configs --describe --topic t1 --command-config {}/USER.properties
    kafka-configs --alter --broker 1 --add-config num.io.threads=3 --command-config {}/USER.properties
    kafka-features --command-config {}/USER.properties upgrade --feature foo=1
    kafka-consumer-groups --list --command-config {}/USER.properties
    kafka-log-dirs --describe --broker-list 1 --topic-list t1 --command-config {}/USER.properties
    kafka-topics --delete --topic t2 --command-config {}/USER.properties
"""


async def permissions(side: Side) -> None:
    """Ask as a user of topics and groups, and as one who may look at little."""
    assert side.security is not None
    await side.run("kafka-topics --create --topic t1 --replica-assignment 1:2,2:3")
    side.write("move", {"t1-0": (1, 3)})
    for user in (CLIENT, CONTROLLER):
        side.security.of_tools(side.directory, user)
        await side.play(OF_EVERYBODY.replace("USER", user))
    await side.until_moved()
    await side.run("kafka-topics --describe --topic t1")
