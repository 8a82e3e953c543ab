"""The replicas for which brokers have failed to carry out orders, as a controller knows it (KIP-112).

A broker reports that in its answer to LeaderAndIsr. A controller collects answers, and takes them over in a round that
names the partitions but not the broker. If more than one broker may be meant, the replicas are in doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from attrs import define, field, frozen

from simulator.model.view import Standing
from transport.errors import ErrorCode
from transport.messages import LeaderAndIsrRequest, LeaderAndIsrResponse
from transport.metadata import TopicPartition

_REMEMBERED: Final = 1000
"""Number of orders without an answer to remember: a broken connection never brings one."""

_STALE: Final = (
    ErrorCode.STALE_CONTROLLER_EPOCH,
    ErrorCode.STALE_BROKER_EPOCH,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""Errors of orders that are out of date, or about another topic of that name: no service has failed."""

_ANY: Final = 1 << 31
"""Stands for a leader epoch that is not too old."""

Incarnation = tuple[int, int]
"""A broker's id and epoch."""


@frozen
class LogReport:
    """A broker's answer to an order to lead or follow; `failure` is the standing of a replica that failed.

    Of Kafka brokers the leader epoch is not given: their answers count whatever it is.
    """

    controller_epoch: int
    broker: Incarnation
    tp: TopicPartition
    topic_id: str
    leads: bool
    leader_epoch: int
    failure: Standing | None = None


@define
class OrdersInFlight:
    """The LeaderAndIsr requests that brokers have received and not answered."""

    are_kafkas: bool = False
    """Whether the brokers are Apache Kafka's, of which only unusable logs count."""

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
        states = {item.state.tp: item.state for item in request.partitions}
        broker = broker_id, request.broker_epoch
        for item in response.partitions if response is not None else ():
            state = states.get(item.tp)
            if state is None or (item.error is not ErrorCode.NONE and not self._is_failure(item.error)):
                continue
            leads, failure = state.leader == broker_id, None
            epoch = _ANY if self.are_kafkas else state.leader_epoch
            if item.error is not ErrorCode.NONE:
                failure = Standing.UNFIT if leads else Standing.STUCK
            if item.error is ErrorCode.KAFKA_STORAGE_ERROR:
                failure = Standing.LOGLESS
            yield LogReport(request.controller_epoch, broker, item.tp, state.topic_id, leads, epoch, failure)

    def _is_failure(self, error: ErrorCode) -> bool:
        return error is ErrorCode.KAFKA_STORAGE_ERROR if self.are_kafkas else error not in _STALE


@define
class FailedReplicas:
    """The standings of replicas that a controller takes to have failed, and those about which that is not certain.

    Each report that counts makes the controller name its partition in a round, once. While more reports about a
    partition wait than it was named, it is not certain which of them count already.
    """

    _reports: dict[TopicPartition, dict[Incarnation, LogReport]] = field(factory=dict, init=False)
    """The latest report of each broker that has not certainly been taken over."""

    _failed: dict[TopicPartition, dict[Incarnation, Standing]] = field(factory=dict, init=False)
    _unfit: dict[TopicPartition, dict[Incarnation, None]] = field(factory=dict, init=False)
    """Those that failed to lead and have not led or been forgiven since, whether they follow or not."""

    _doubted: dict[TopicPartition, dict[Incarnation, dict[Standing, None]]] = field(factory=dict, init=False)
    """The standings that replicas may have, if not only one."""

    _named: dict[TopicPartition, int] = field(factory=dict, init=False)
    """How often a partition was named since it was certain which reports count; -1 if that cannot become certain."""

    def clear(self) -> None:
        """Forget all: a new controller takes no replica to have failed."""
        self._reports.clear()
        self._failed.clear()
        self._unfit.clear()
        self._doubted.clear()
        self._named.clear()

    def reported(self, report: LogReport) -> None:
        """Record a report, which counts once the controller takes it over."""
        waiting = self._reports.setdefault(report.tp, {})
        if self._named.get(report.tp) and report.broker in waiting:
            self._named[report.tp] = -1
        waiting[report.broker] = report

    def taken_over(
        self, tp: TopicPartition, topic_id: str, leader_epoch: int, brokers: Collection[Incarnation]
    ) -> None:
        """Record that a controller takes over a report about a partition, of one of the brokers that it knows.

        That a broker has carried out an order of an earlier epoch than the current one does not count.
        """
        waiting = self._reports.setdefault(tp, {})
        news = [each for each in waiting.values() if each.topic_id == topic_id and each.broker in brokers]
        news = [each for each in news if self._counts(each, leader_epoch)]
        if not news:
            for broker in brokers:
                self._doubt(tp, broker, {Standing.LOGLESS: None, Standing.STUCK: None, Standing.UNFIT: None})
            return
        if self._named.get(tp, 0) >= 0:
            self._named[tp] = self._named.get(tp, 0) + 1
        if self._named[tp] != len(news):
            for each in news:
                may_be_unfit = {Standing.UNFIT: None} if each.broker in self._unfit.get(tp, {}) else {}
                self._doubt(tp, each.broker, {each.failure or Standing.LIVE: None, **may_be_unfit})
            return
        del self._named[tp]
        for each in news:
            del waiting[each.broker]
            self._doubted.get(tp, {}).pop(each.broker, None)
            self._failed.setdefault(tp, {}).pop(each.broker, None)
            unfit = self._unfit.setdefault(tp, {})
            if each.failure is Standing.UNFIT:
                unfit[each.broker] = None
            elif each.failure is None and each.leads:
                unfit.pop(each.broker, None)
            failure = each.failure or (Standing.UNFIT if each.broker in unfit else None)
            if failure is not None:
                self._failed[tp][each.broker] = failure

    def _counts(self, report: LogReport, leader_epoch: int) -> bool:
        """Return whether a report may change what the controller knows: each failure does."""
        if report.failure is not None or report.leader_epoch < leader_epoch:
            return report.failure is not None
        standings = {*self.standings(report.tp, report.broker)} - {Standing.LIVE}
        # A replica that failed to lead has not recovered when it follows.
        return bool(standings if report.leads else standings - {Standing.UNFIT})

    def forgiven(self, tp: TopicPartition, count: int, brokers: Collection[Incarnation]) -> None:
        """Record that so many replicas of a partition may lead again that failed to."""
        unfit = [broker for broker in brokers if Standing.UNFIT in self.standings(tp, broker)]
        for broker in unfit:
            if len(unfit) == count:
                for known in (self._failed, self._unfit, self._doubted):
                    known.get(tp, {}).pop(broker, None)
            else:
                self._doubt(tp, broker, {})

    def _doubt(self, tp: TopicPartition, broker: Incarnation, others: dict[Standing, None]) -> None:
        self._doubted.setdefault(tp, {})[broker] = {**self.standings(tp, broker), **others, Standing.LIVE: None}

    def left(self, tp: TopicPartition, broker_ids: Collection[int]) -> None:
        """Forget the replicas of a partition on brokers that it has left."""
        for known in (self._reports, self._failed, self._unfit, self._doubted):
            of_partition: dict[Incarnation, object] = known.get(tp, {})  # type: ignore[assignment]
            for broker in [broker for broker in of_partition if broker[0] in broker_ids]:
                del of_partition[broker]

    def standings(self, tp: TopicPartition, broker: Incarnation) -> dict[Standing, None]:
        """Return the standings that a replica may have as far as failures go: LIVE if it has not failed."""
        doubted = self._doubted.get(tp, {}).get(broker)
        if doubted is not None:
            return doubted
        return {self._failed.get(tp, {}).get(broker, Standing.LIVE): None}
