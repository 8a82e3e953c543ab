"""The request to plan and the plan: values, and their JSON between the two processes.

Imports no PySpark, so that a command line can name these types without paying for Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from attrs import asdict, field, frozen

from spark_bridge.errors import PlanError

__all__ = ["BrokerLoad", "Plan", "PlanError", "PlanRequest", "Reassignment"]


@frozen
class PlanRequest:
    """What to plan."""

    snapshot: str
    """Path of a cluster snapshot, the output of `klamm state dump`."""

    remove_brokers: tuple[int, ...]
    """Ids of the brokers that shall hold no replica any more."""

    def to_json(self) -> bytes:
        """Return the request as the planning process reads it."""
        return orjson.dumps(asdict(self))

    @classmethod
    def from_json(cls, data: bytes) -> PlanRequest:
        """Read a request.

        Raises:
            PlanError: It is not one.
        """
        try:
            document = orjson.loads(data)
            snapshot, brokers = document["snapshot"], document["remove_brokers"]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise PlanError(f'request: expected {{"snapshot": PATH, "remove_brokers": [ID, ...]}}: {error!r}') from None
        if not isinstance(snapshot, str) or not isinstance(brokers, list) or not all(type(b) is int for b in brokers):
            raise PlanError("request: snapshot must be a path and remove_brokers a list of broker ids")
        return cls(snapshot, tuple(brokers))


def as_ids(values: Iterable[int]) -> tuple[int, ...]:
    """Return broker ids as a tuple: JSON and Spark have lists."""
    return tuple(values)


@frozen
class Reassignment:
    """The new replica list of one partition, preferred leader first."""

    topic: str
    partition: int
    replicas: tuple[int, ...] = field(converter=as_ids)


@frozen
class BrokerLoad:
    """What one broker holds before and after the plan, in replicas and preferred leaderships."""

    id: int
    rack: str | None
    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int


@frozen
class Plan:
    """Partitions to reassign, by topic and partition, and every broker's load, by id."""

    partitions: tuple[Reassignment, ...]
    brokers: tuple[BrokerLoad, ...]

    @property
    def moved_replicas(self) -> int:
        """Return how many replicas get a new broker."""
        return sum(max(0, b.replicas_after - b.replicas_before) for b in self.brokers)

    @property
    def replica_spread(self) -> int:
        """Return the greatest minus the least number of replicas among the brokers that received any."""
        return _spread([b.replicas_after for b in self.brokers if b.replicas_after > b.replicas_before])

    @property
    def leader_spread(self) -> int:
        """Return the greatest minus the least number of preferred leaderships among those that received any."""
        return _spread([b.leaders_after for b in self.brokers if b.leaders_after > b.leaders_before])

    def reassignment_json(self) -> str:
        """Return Kafka's reassignment JSON (that of `kafka-reassign-partitions`), one partition a line."""
        rows = ",\n".join(orjson.dumps(asdict(p)).decode() for p in self.partitions)
        return f'{{"version":1,"partitions":[\n{rows}\n]}}\n' if rows else '{"version":1,"partitions":[]}\n'

    def to_json(self) -> bytes:
        """Return the plan as the planning process writes it: Kafka's form and, beside it, the broker loads."""
        return orjson.dumps({"version": 1, **asdict(self)})

    @classmethod
    def from_json(cls, data: bytes) -> Plan:
        """Read what `to_json` wrote."""
        document: dict[str, Any] = orjson.loads(data)
        return cls(
            partitions=tuple(Reassignment(**row) for row in document["partitions"]),
            brokers=tuple(BrokerLoad(**row) for row in document["brokers"]),
        )


def _spread(counts: list[int]) -> int:
    return max(counts) - min(counts) if counts else 0
