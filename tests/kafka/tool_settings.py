"""What administrators ask of a cluster's settings with kafka-configs: topics, brokers, users, quotas."""

from __future__ import annotations

from tests.kafka.tool_sides import Side

OF_TOPICS = """
    --describe --entity-type topics --entity-name s1
    --alter --entity-type topics --entity-name s1 --add-config retention.ms=1000,cleanup.policy=[compact,delete]
    --describe --entity-type topics --entity-name s1
    --describe --entity-type topics
    --alter --entity-type topics --entity-name s1 --add-config retention.ms=x
    --alter --entity-type topics --entity-name s1 --add-config foo=bar
    --alter --entity-type topics --entity-name s1 --delete-config foo
    --alter --entity-type topics --entity-name s1 --delete-config segment.bytes
    --alter --entity-type topics --entity-name s1 --delete-config retention.ms,cleanup.policy
    --alter --entity-type topics --entity-name s1
    --alter --entity-type topics --entity-name nosuch --add-config retention.ms=1000
    --describe --entity-type topics --entity-name nosuch
    --describe --all --entity-type topics --entity-name s1
    --alter --entity-type topics --entity-default --add-config retention.ms=1000
    --alter --entity-type topics --entity-name s1 --add-config-file {}/topic.properties
    --describe --topic s1
"""
OF_BROKERS = """
    --describe --entity-type brokers
    --describe --entity-type brokers --entity-name 1
    --describe --entity-type brokers --entity-default
    --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2
    --alter --entity-type brokers --entity-name 1 --add-config num.io.threads=3
    --alter --entity-type brokers --entity-default --add-config log.retention.ms=86400000
    --describe --entity-type brokers --entity-name 1 # until num.io.threads=3
    --describe --entity-type brokers --entity-default # until log.retention.ms
    --describe --entity-type brokers # until log.retention.ms
    --alter --entity-type brokers --entity-name 1 --add-config broker.id=7
    --alter --entity-type brokers --entity-name 1 --add-config log.retention.ms=x
    --alter --entity-type brokers --entity-name 1 --delete-config nosuch
    --alter --entity-type brokers --entity-name 1 --delete-config num.io.threads
    --alter --entity-type brokers --entity-default --delete-config log.retention.ms
    --alter --entity-type brokers --entity-name a --add-config num.io.threads=3
    --alter --entity-type broker-loggers --entity-name 1 --add-config kafka.log.LogManager=NOISE
    --alter --entity-type broker-loggers --entity-name 1 --add-config kafka.log.LogManager=DEBUG
    --alter --entity-type broker-loggers --entity-name 1 --delete-config kafka.log.LogManager
    --alter --entity-type broker-loggers --entity-name 1 --add-config nosuch=DEBUG
    --describe --entity-type broker-loggers
"""
OF_USERS = """
    --alter --entity-type users --entity-name bob --add-config SCRAM-SHA-256=[password=x]
    --alter --entity-type users --entity-name bob --add-config SCRAM-SHA-512=[iterations=8192,password=x]
    --describe --entity-type users --entity-name bob
    --describe --entity-type users
    --describe --entity-type users --entity-name nobody
    --alter --entity-type users --entity-name bob --add-config SCRAM-SHA-256=[iterations=10,password=x]
    --alter --entity-type users --entity-name bob --add-config SCRAM-SHA-256=[iterations=99999,password=x]
    --alter --entity-type users --entity-name bob --add-config SCRAM-SHA-256=[iterations=4096]
    --alter --entity-type users --entity-name bob --add-config SCRAM-SHA-1=[password=x]
    --alter --entity-type users --entity-default --add-config SCRAM-SHA-256=[password=x]
    --alter --entity-type users --entity-name bob --delete-config SCRAM-SHA-256
    --alter --entity-type users --entity-name bob --delete-config SCRAM-SHA-256
    --alter --entity-type users --entity-name nobody --delete-config SCRAM-SHA-256
    --alter --entity-type users --entity-name bob --add-config producer_byte_rate=5,SCRAM-SHA-256=[password=x]
    --describe --entity-type users --entity-name bob
"""
OF_QUOTAS = """
    --alter --entity-type users --entity-name ann --add-config producer_byte_rate=1024,consumer_byte_rate=2048
    --alter --user ann --client app --add-config request_percentage=50
    --alter --entity-type users --entity-default --add-config controller_mutation_rate=10
    --alter --entity-type clients --entity-name app --add-config producer_byte_rate=10
    --alter --entity-type clients --entity-default --add-config producer_byte_rate=10
    --alter --entity-type ips --entity-name 127.0.0.9 --add-config connection_creation_rate=10
    --alter --entity-type ips --entity-name not.an.address.invalid --add-config connection_creation_rate=10
    --alter --entity-type users --entity-name ann --add-config producer_byte_rate=-1
    --alter --entity-type users --entity-name ann --add-config foo=1
    --alter --entity-type users --entity-name ann --delete-config request_percentage
    --describe --entity-type users --entity-name ann
    --describe --entity-type users --entity-default
    --describe --user ann --client app
    --describe --entity-type clients
    --describe --entity-type ips
    --alter --entity-type users --entity-name ann --delete-config producer_byte_rate,consumer_byte_rate
    --alter --entity-type users --entity-default --delete-config controller_mutation_rate
    --alter --user ann --client app --delete-config request_percentage
    --alter --entity-type clients --entity-name app --delete-config producer_byte_rate
    --alter --entity-type clients --entity-default --delete-config producer_byte_rate
    --describe --entity-type users
    --describe --entity-type clients
"""


async def settings(side: Side) -> None:
    """Describe and change the settings of topics, brokers and users, and quotas."""
    await side.run("kafka-topics --create --topic s1 --replica-assignment 1:2")
    (side.directory / "topic.properties").write_text("retention.ms=7000\nsegment.ms=8000\n")
    await side.play(OF_TOPICS, "kafka-configs")
    await side.play(OF_BROKERS, "kafka-configs")
    await side.play(OF_USERS, "kafka-configs")
    await side.play(OF_QUOTAS, "kafka-configs")
