"""The replicas that brokers have reported to be unable to use, as a controller knows it (KIP-112).

A broker reports that in its answer to LeaderAndIsr. A controller collects answers, and takes them over in a round that
names the partitions but not the broker. If more than one broker may be meant, the replicas are in doubt from then on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from attrs import define, field, frozen

from transport.errors import ErrorCode
from transport.messages import LeaderAndIsrRequest, LeaderAndIsrResponse
from transport.metadata import TopicPartition

_REMEMBERED: Final = 1000
"""Number of orders without an answer to remember: a broken connection never brings one."""

Incarnation = tuple[int, int]
"""A broker's id and epoch."""


@frozen
class LogReport:
    """A broker's report whether it can use a replica."""

    controller_epoch: int
    broker: Incarnation
    tp: TopicPartition
    topic_id: str
    is_usable: bool


@define
class OrdersInFlight:
    """The LeaderAndIsr requests that brokers have received and not answered."""

    _orders: dict[tuple[int, int], tuple[int, LeaderAndIsrRequest]] = field(factory=dict, init=False)
    """By connection and number, with the broker's id."""

    def ordered(self, connection_id: int, number: int, broker_id: int, request: LeaderAndIsrRequest) -> None:
        """Record an order as a broker takes it from the network."""
        self._orders[connection_id, number] = broker_id, request
        if len(self._orders) > _REMEMBERED:
            del self._orders[next(iter(self._orders))]

    def request(self, connection_id: int, number: int) -> LeaderAndIsrRequest | None:
        """Return the LeaderAndIsr request to which an answer belongs; None if it belongs to another one."""
        found = self._orders.get((connection_id, number))
        return None if found is None else found[1]

    def answered(self, connection_id: int, number: int, response: LeaderAndIsrResponse | None) -> Iterator[LogReport]:
        """Yield the reports of an answer as a controller takes it from the network; None is a refusal."""
        broker_id, request = self._orders.pop((connection_id, number))
        topic_ids = {item.state.tp: item.state.topic_id for item in request.partitions}
        broker = broker_id, request.broker_epoch
        for item in response.partitions if response is not None else ():
            if item.tp in topic_ids and item.error in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR):
                is_usable = item.error is ErrorCode.NONE
                yield LogReport(request.controller_epoch, broker, item.tp, topic_ids[item.tp], is_usable)


@define
class UsableLogs:
    """The replicas that a controller takes to be unusable, and those about which that is not certain."""

    _reports: dict[TopicPartition, dict[Incarnation, LogReport]] = field(factory=dict, init=False)
    _failed: dict[TopicPartition, dict[Incarnation, None]] = field(factory=dict, init=False)
    _doubted: dict[TopicPartition, dict[Incarnation, None]] = field(factory=dict, init=False)

    def clear(self) -> None:
        """Forget all: a new controller takes every log to be usable."""
        self._reports.clear()
        self._failed.clear()
        self._doubted.clear()

    def reported(self, report: LogReport) -> None:
        """Record a report, which counts once the controller takes it over."""
        self._reports.setdefault(report.tp, {})[report.broker] = report

    def taken_over(self, tp: TopicPartition, topic_id: str, brokers: Collection[Incarnation]) -> None:
        """Record that a controller takes over a report about a partition, of one of the brokers that it knows."""
        failed = self._failed.setdefault(tp, {})
        reports = [report for report in self._reports.get(tp, {}).values() if report.topic_id == topic_id]
        news = [report for report in reports if report.is_usable == (report.broker in failed)]
        news = [report for report in news if report.broker in brokers]
        if len(news) != 1:
            self._doubted.setdefault(tp, {}).update(dict.fromkeys(brokers))
        elif news[0].is_usable:
            del failed[news[0].broker]
        else:
            failed[news[0].broker] = None

    def left(self, tp: TopicPartition, broker_ids: Collection[int]) -> None:
        """Forget the replicas of a partition on brokers that it has left."""
        for known in (self._reports, self._failed, self._doubted):
            of_partition = known.get(tp, {})
            for broker in [broker for broker in of_partition if broker[0] in broker_ids]:
                del of_partition[broker]

    def has_failed(self, tp: TopicPartition, broker: Incarnation) -> bool:
        """Return whether a replica's log cannot be used."""
        return broker in self._failed.get(tp, ())

    def is_doubted(self, tp: TopicPartition, broker: Incarnation) -> bool:
        """Return whether a replica's log may or may not be usable."""
        return broker in self._doubted.get(tp, ())
