"""The settings of topics that a controller takes for Kafka's brokers are those that Kafka takes, refused in its words.

The messages are what the validation of Kafka 3.9.1 says.
"""

from __future__ import annotations

import pytest

from transport.kafka.topic_settings import topic_settings_fault

REPLICAS = "leader.replication.throttled.replicas"
FORM = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
THROTTLED = f"{REPLICAS} must be the literal '*' or a list of replicas in the following format: {FORM}"
TIERED = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
COPY = "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode."


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("retention.ms", "abc", "Not a number of type LONG"),
        ("retention.ms", "-5", "Value must be at least -1"),
        ("retention.bytes", "", "Not a number of type LONG"),
        ("retention.ms", "9223372036854775808", "Not a number of type LONG"),
        ("segment.bytes", "13", "Value must be at least 14"),
        ("segment.bytes", "99999999999", "Not a number of type INT"),
        ("cleanup.policy", "foo", "String must be one of: compact, delete"),
        ("cleanup.policy", "Delete", "String must be one of: compact, delete"),
        ("compression.type", "foo", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("compression.gzip.level", "x", "Not a number of type INT"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("preallocate", "maybe", "Expected value to be either true or false"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
        ("message.format.version", "9.9", "Version 9.9 is not a valid version"),
        ("message.timestamp.type", "foo", "String must be one of: CreateTime, LogAppendTime"),
    ],
)
def test_an_invalid_value_is_refused(name: str, value: str, reason: str) -> None:
    assert topic_settings_fault([(name, value)]) == f"Invalid value {value} for configuration {name}: {reason}"


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("foo", "bar", "Unknown topic config name: foo"),
        ("min.cleanable.dirty.ratio", "-1", "Invalid value -1.0 for {}: Value must be at least 0"),
        (REPLICAS, "x", f"Invalid value [x] for {{}}: {THROTTLED}"),
        ("remote.storage.enable", "true", TIERED),
        ("remote.log.copy.disable", "true", COPY),
    ],
)
def test_other_faults(name: str, value: str, fault: str) -> None:
    assert topic_settings_fault([(name, value)]) == fault.format(f"configuration {name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", " 5 "),
        ("flush.ms", "+7"),
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", ""),
        ("preallocate", "TRUE"),
        ("min.cleanable.dirty.ratio", "5e-1"),
        (REPLICAS, "*"),
        (REPLICAS, "0:1,1:2"),
        (REPLICAS, ""),
        ("compression.gzip.level", "-1"),
        ("compression.zstd.level", "-131072"),
        ("message.format.version", "2.8"),
        ("message.format.version", "0.10.1-IV2"),
        ("remote.storage.enable", "false"),
    ],
)
def test_a_valid_value_is_taken(name: str, value: str) -> None:
    assert topic_settings_fault([(name, value)]) is None


def test_settings_are_judged_in_kafkas_order_after_their_names() -> None:
    faults = [("retention.ms", "x"), ("segment.ms", "y"), ("foo", "z")]
    assert topic_settings_fault(faults) == "Unknown topic config name: foo"
    assert topic_settings_fault(faults[:2]) == "Invalid value y for configuration segment.ms: Not a number of type LONG"


def test_the_least_age_for_compaction_is_not_above_the_most() -> None:
    lags = [("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")]
    conflict = "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    assert topic_settings_fault(lags) == conflict


def test_tiered_storage_depends_on_the_brokers() -> None:
    enabled = ("remote.storage.enable", "true")
    assert topic_settings_fault([enabled], has_remote_storage=True) is None
    compacted = [enabled, ("cleanup.policy", "compact")]
    told = topic_settings_fault(compacted, has_remote_storage=True)
    assert told == "Remote log storage is unsupported for the compacted topics"
