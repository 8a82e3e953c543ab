"""What administrators ask of a cluster with Kafka's tools, right and wrong: each chapter leaves the brokers alive."""

from __future__ import annotations

from tests.kafka.tool_sides import Side

CREATION = """
    kafka-topics --create --topic c1 --replica-assignment 1:2,2:3
    kafka-topics --create --topic c2 --partitions 3 --replication-factor 3 --config retention.ms=5000
    kafka-topics --create --topic c3 --config cleanup.policy=compact,delete --config max.message.bytes=9
    kafka-topics --create --if-not-exists --topic c1
    kafka-topics --create --topic c1
    kafka-topics --create --topic 'bad name'
    kafka-topics --create --topic ''
    kafka-topics --create --topic .
    kafka-topics --create --topic x --partitions 0
    kafka-topics --create --topic x --replication-factor 0
    kafka-topics --create --topic x --replication-factor 4
    kafka-topics --create --topic x --replica-assignment 1:1
    kafka-topics --create --topic x --replica-assignment 1:2,3
    kafka-topics --create --topic x --replica-assignment 1:2,a
    kafka-topics --create --topic x --replica-assignment 1:2 --partitions 2
    kafka-topics --create --topic x --config retention.ms=x
    kafka-topics --create --topic x --config retention.ms=-5
    kafka-topics --create --topic x --config retention.ms
    kafka-topics --create --topic x --config foo=bar
    kafka-topics --create --topic x --config cleanup.policy=foo
    kafka-topics --create --topic x --config compression.type=foo
    kafka-topics --create --topic x --config min.insync.replicas=0
    kafka-topics --create --topic x --config preallocate=maybe
    kafka-topics --create --topic x --config min.cleanable.dirty.ratio=1.5
    kafka-topics --create --topic x --config segment.bytes=13
    kafka-topics --create --topic x --config leader.replication.throttled.replicas=a
    kafka-topics --create --topic x --config remote.storage.enable=true
    kafka-topics --create --topic x --config min.compaction.lag.ms=10 --config max.compaction.lag.ms=5
    kafka-topics --create --topic a.b
    kafka-topics --create --topic a_b
    kafka-topics --create --topic __cluster_metadata
"""
CHANGES = """
    kafka-topics --alter --topic c1 --partitions 1
    kafka-topics --alter --topic c1 --partitions 2
    kafka-topics --alter --topic c1 --partitions 0
    kafka-topics --alter --topic nosuch --partitions 2
    kafka-topics --alter --if-exists --topic nosuch --partitions 2
    kafka-topics --alter --topic c1 --partitions 3 --replica-assignment 1:2,2:3,3:9
    kafka-topics --alter --topic c1 --partitions 3 --replica-assignment 1:2,2:3,3
    kafka-topics --alter --topic c1 --partitions 3 --replica-assignment 1:2,2:3,3:3
    kafka-topics --alter --topic c1 --partitions 4 --replica-assignment 1:2,2:3,3:1
    kafka-topics --alter --topic c1 --partitions 3 --replica-assignment 1:2,2:3,3:1
    kafka-topics --alter --topic 'c[23]' --partitions 4
    kafka-topics --describe --topic c1
    kafka-topics --describe --topic nosuch
    kafka-topics --describe --topics-with-overrides --topic c2
    kafka-topics --describe --under-replicated-partitions
    kafka-topics --describe --unavailable-partitions
    kafka-topics --delete --topic nosuch
    kafka-topics --delete --if-exists --topic nosuch
    kafka-topics --delete --topic a.b
"""
FEATURES = """
    kafka-features describe
    kafka-features upgrade --feature metadata.version=1
    kafka-features upgrade --feature foo=1
    kafka-features downgrade --feature foo=0
"""


async def topics(side: Side) -> None:
    """Create, change, list and delete topics."""
    await side.play(CREATION)
    await side.play(CHANGES)
    await side.until_gone("a.b")
    await side.run("kafka-topics --create --topic a.b --replica-assignment 1")
    # The tool deletes what one of the brokers tells it of.
    await side.until_led("a.b", 0, 1, 1)
    await side.run("kafka-topics --delete --topic 'a.b|c[123]'")
    for topic in ("a.b", "c1", "c2", "c3"):
        await side.until_gone(topic)
    await side.run("kafka-topics --list")


async def features(side: Side) -> None:
    """Ask for features, which Kafka has none of in ZooKeeper mode."""
    await side.play(FEATURES)


MOVES = """
    kafka-reassign-partitions --execute --reassignment-json-file {}/none
    kafka-reassign-partitions --execute --reassignment-json-file {}/dead
    kafka-reassign-partitions --execute --reassignment-json-file {}/twice
    kafka-reassign-partitions --execute --reassignment-json-file {}/nosuch
    kafka-reassign-partitions --execute --reassignment-json-file {}/no-partition
    kafka-reassign-partitions --execute --reassignment-json-file {}/empty
    kafka-reassign-partitions --execute --reassignment-json-file {}/same
    kafka-reassign-partitions --verify --reassignment-json-file {}/same
    kafka-reassign-partitions --verify --reassignment-json-file {}/nosuch
    kafka-reassign-partitions --cancel --reassignment-json-file {}/first
    kafka-reassign-partitions --cancel --reassignment-json-file {}/nosuch
    kafka-reassign-partitions --generate --topics-to-move-json-file {}/topics --broker-list 1
    kafka-reassign-partitions --generate --topics-to-move-json-file {}/topics --broker-list 9
    kafka-reassign-partitions --list
    kafka-reassign-partitions --execute --reassignment-json-file {}/first --throttle 1000
    kafka-reassign-partitions --list
    kafka-reassign-partitions --execute --reassignment-json-file {}/second
    kafka-reassign-partitions --execute --additional --reassignment-json-file {}/second --throttle 2000
    kafka-reassign-partitions --execute --additional --reassignment-json-file {}/other
    kafka-reassign-partitions --list
    kafka-reassign-partitions --verify --reassignment-json-file {}/first
    kafka-reassign-partitions --verify --reassignment-json-file {}/other
    kafka-configs --describe --entity-type brokers --entity-name 3 # until leader.replication.throttled.rate=2000
    kafka-configs --describe --entity-type topics --entity-name m1 # until 0:3
    kafka-topics --alter --topic m1 --partitions 4
    kafka-reassign-partitions --cancel --reassignment-json-file {}/second --preserve-throttles
    kafka-reassign-partitions --cancel --reassignment-json-file {}/other
"""
LAST_MOVES = """
    kafka-topics --describe --topic m1
    kafka-reassign-partitions --verify --reassignment-json-file {}/first
    kafka-configs --describe --entity-type brokers --entity-name 3 # until no throttled
    kafka-configs --describe --entity-type topics --entity-name m1 # until no throttled
"""


async def moves(side: Side) -> None:
    """Move replicas, hold the moves by a throttle, change and cancel them."""
    await side.run("kafka-topics --create --topic m1 --replica-assignment 1:2,2:1")
    await side.run("kafka-topics --create --topic m2 --replica-assignment 1")
    await side.fill("m1", 0)
    await side.fill("m1", 1)
    side.write("first", {"m1-0": (3, 2)})
    side.write("second", {"m1-1": (2, 3)})
    side.write("other", {"m1-0": (1, 3)})
    side.write("same", {"m1-0": (1, 2)})
    side.write("dead", {"m1-0": (9, 2)})
    side.write("twice", {"m1-0": (2, 2)})
    side.write("empty", {"m1-0": ()})
    side.write("nosuch", {"nosuch-0": (1, 2)})
    side.write("no-partition", {"m1-9": (1, 2)})
    (side.directory / "none").write_text("{}")
    (side.directory / "topics").write_text('{"version": 1, "topics": [{"topic": "m2"}]}')
    await side.play(MOVES)
    await side.until_moved()
    side.write("first", {"m1-0": (3, 2), "m2-0": (2,)})
    await side.run("kafka-reassign-partitions --execute --reassignment-json-file {}/first --throttle 100000000")
    await side.until_moved()
    await side.play(LAST_MOVES)


ELECTION_MISTAKES = """
    kafka-leader-election --election-type preferred --topic nosuch --partition 0
    kafka-leader-election --election-type preferred --topic e1 --partition 9
    kafka-leader-election --election-type preferred --topic e1
    kafka-leader-election --election-type foo --all-topic-partitions
    kafka-leader-election --all-topic-partitions
    kafka-leader-election --election-type preferred --all-topic-partitions --topic e1 --partition 0
    kafka-leader-election --election-type preferred --path-to-json-file {}/none
    kafka-leader-election --election-type preferred --path-to-json-file {}/elected-twice
    kafka-leader-election --election-type preferred --topic e1 --partition 0
    kafka-leader-election --election-type unclean --topic e1 --partition 0
    kafka-leader-election --election-type preferred --all-topic-partitions
    kafka-leader-election --election-type unclean --all-topic-partitions
"""
WITHOUT_PREFERRED = """
    kafka-leader-election --election-type preferred --topic e1 --partition 0
    kafka-leader-election --election-type preferred --all-topic-partitions
    kafka-leader-election --election-type unclean --topic e1 --partition 0
    kafka-leader-election --election-type unclean --topic alone --partition 0
    kafka-leader-election --election-type unclean --all-topic-partitions
    kafka-topics --describe --unavailable-partitions
    kafka-topics --describe --under-replicated-partitions
    kafka-topics --describe --under-min-isr-partitions
    kafka-topics --create --topic wide --replication-factor 3
    kafka-reassign-partitions --execute --reassignment-json-file {}/dead-target
    kafka-reassign-partitions --list
"""
PREFERRED = """
    kafka-leader-election --election-type preferred --topic e1 --partition 0
    kafka-leader-election --election-type preferred --path-to-json-file {}/elected
    kafka-leader-election --election-type preferred --all-topic-partitions
"""


async def elections(side: Side) -> None:
    """Elect leaders where there is nothing to elect, nobody to elect, and somebody."""
    await side.run("kafka-topics --create --topic e1 --replica-assignment 3:1,3:2,3:1")
    await side.run("kafka-topics --create --topic e2 --replica-assignment 1:2")
    await side.run("kafka-topics --create --topic alone --replica-assignment 3")
    side.write("elected", {"e1-1": (), "e2-0": ()})
    side.write("dead-target", {"e2-0": (2, 3)})
    twice = '{"partitions": [{"topic": "e1", "partition": 0}, {"topic": "e1", "partition": 0}]}'
    (side.directory / "elected-twice").write_text(twice)
    (side.directory / "none").write_text("{}")
    await side.play(ELECTION_MISTAKES)
    await side.brokers[3].terminate()
    await side.until_led("e1", 2, 1, 1)
    await side.until_led("alone", 0, -1, 3)
    await side.play(WITHOUT_PREFERRED)
    await side.brokers[3].start()
    for partition, leader in enumerate((1, 2, 1)):
        await side.until_led("e1", partition, leader, leader, 3)
    await side.until_led("alone", 0, 3, 3)
    await side.play(PREFERRED)
    await side.until_led("e1", 2, 3, 1, 3)


async def unclean_elections(side: Side) -> None:
    """Elect a replica outside the ISR, after the last one within it has died."""
    await side.run("kafka-topics --create --topic u1 --replica-assignment 2:3,2:1")
    await side.until_led("u1", 0, 2, 2, 3)
    await side.brokers[3].terminate()
    await side.until_led("u1", 0, 2, 2)
    await side.brokers[2].terminate()
    await side.until_led("u1", 0, -1, 2)
    await side.brokers[3].start()
    await side.until_led("u1", 0, -1, 2)
    await side.run("kafka-leader-election --election-type preferred --topic u1 --partition 0")
    await side.run("kafka-leader-election --election-type unclean --topic u1 --partition 0")
    await side.until_led("u1", 0, 3, 3)
    await side.run("kafka-leader-election --election-type unclean --topic u1 --partition 0")
    await side.brokers[2].start()
    await side.until_led("u1", 0, 3, 2, 3)


GHOSTS = """
    kafka-topics --create --topic later --replica-assignment 1:3
    kafka-topics --create --topic ghost --replica-assignment 1:9
    kafka-topics --describe --topic later
    kafka-topics --describe --topic ghost
"""


async def ghosts(side: Side) -> None:
    """Place replicas on a broker that is dead, and on one that never was."""
    await side.brokers[3].terminate()
    await side.until_led("u1", 0, 2, 2)
    await side.play(GHOSTS)
    await side.brokers[3].start()
