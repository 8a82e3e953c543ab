"""The measurements of a controller in Prometheus' text format.

Names are those produced by the JMX exporter's usual rules for Kafka (lower case, `PerSec` meters as `_total`), so that
dashboards and alerts for Kafka work. Metrics that Kafka's controller does not have are named `klamm_...`. All gauges of
the cluster are 0 on a standby.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import Final

from attrs import define, field
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from actors import EventStatistics
from actors.histogram import Histogram
from controller.model import deletion_progress
from controller.model.context import ControllerContext
from controller.model.deletion_progress import Pending
from controller.model.namesakes import that_wait
from controller.model.notable import Notable
from controller.monitoring.measurements import Measurements
from controller.monitoring.partition_counts import PartitionCounts
from controller.progress.report import Totals
from transport.store.protocol import SessionState

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

MAX_PARTITION_SERIES: Final = 1000
"""The most unavailable partitions with a series of their own; the totals count all of them."""

CONTROLLER: Final = "kafka_controller_kafkacontroller"
STATS: Final = "kafka_controller_controllerstats"
EVENTS: Final = "kafka_controller_controllereventmanager"
CHANNELS: Final = "kafka_controller_controllerchannelmanager"
SESSION: Final = "kafka_server_sessionexpirelistener"

Gauge = Callable[[ControllerContext, PartitionCounts], int]

_CLUSTER: Final[Mapping[str, tuple[str, Gauge]]] = {
    f"{CONTROLLER}_activecontrollercount": ("1 on the active controller.", lambda _c, _p: 1),
    f"{CONTROLLER}_offlinepartitionscount": ("Partitions without a leader.", lambda _c, p: p.count(Notable.OFFLINE)),
    f"{CONTROLLER}_preferredreplicaimbalancecount": (
        "Partitions not led by their preferred leader.",
        lambda _c, p: p.count(Notable.IMBALANCED),
    ),
    f"{CONTROLLER}_globaltopiccount": ("Topics.", lambda c, _p: len(c.topics)),
    f"{CONTROLLER}_globalpartitioncount": ("Partitions that have ever had a leader.", lambda c, _p: len(c.leadership)),
    f"{CONTROLLER}_topicstodeletecount": ("Topics that are being deleted.", lambda c, _p: len(c.deletions)),
    f"{CONTROLLER}_activebrokercount": ("Registered brokers, shutting down or not.", lambda c, _p: len(c.brokers)),
    "klamm_unusable_brokers": (
        "Live brokers with a registration that cannot be used: damaged, or without the controller's listener.",
        lambda c, _p: len(c.unusable),
    ),
    f"{CONTROLLER}_fencedbrokercount": ("Always 0: only KRaft fences brokers.", lambda _c, _p: 0),
    "klamm_controller_epoch": ("The epoch of the controllership.", lambda c, _p: c.epoch),
    "klamm_under_replicated_partitions": (
        "Partitions whose ISR is smaller than their replica set.",
        lambda _c, p: p.count(Notable.UNDER_REPLICATED),
    ),
    "klamm_under_min_isr_partitions": (
        "Partitions that have a leader and refuse acks=all.",
        lambda _c, p: p.count(Notable.UNDER_MIN_ISR),
    ),
    "klamm_reassigning_partitions": ("Partitions that are being moved.", lambda c, _p: len(c.reassigning)),
    "klamm_rollouts": ("Rollouts that run or wait for others.", lambda c, _p: len(c.rollouts.queue)),
    "klamm_held_rollouts": (
        "1 if the rollout that is to run is paused, by an operator or by itself.",
        lambda c, _p: int(c.rollouts.current is not None and c.rollouts.current.is_stopped),
    ),
    "klamm_unusable_rollouts": (
        "Rollouts that are set aside, because a row of them cannot be used.",
        lambda c, _p: len(c.rollouts.unusable),
    ),
    "klamm_rollout_moves_left": (
        "Moves of rollouts that have not ended.",
        lambda c, _p: sum(one.moves_left for one in c.rollouts.queue),
    ),
    "klamm_stray_replicas": ("Replicas still to be deleted after moves.", lambda c, _p: len(c.strays)),
    "klamm_waiting_replicas": (
        "Replicas that start once their broker has deleted the log of an earlier topic of the same name.",
        lambda c, _p: len(that_wait(c)),
    ),
    "klamm_offline_log_dir_replicas": (
        "Replicas of live brokers whose logs cannot be used.",
        lambda c, _p: sum(failure.is_of_log for failure in c.failures.values()),
    ),
    "klamm_failed_replicas": (
        "Replicas for which live brokers failed to carry out an order, and have not carried it out since.",
        lambda c, _p: sum(not failure.is_over for failure in c.failures.values()),
    ),
}
"""The gauges that only the active controller has: name, help text, and function of context and counts."""


@define(eq=False)
class ControllerMetrics(Collector):
    """Collects the metrics on demand, in time that depends on the number of problems, not on the cluster's size."""

    measurements: Measurements
    queue_size: Callable[[], int]
    events: Callable[[], Mapping[str, EventStatistics]]
    session_state: Callable[[], SessionState]
    quarantined: Callable[[], int]
    moves: Totals = field(factory=Totals, init=False)
    """The totals of all moves, from before the page was asked for: looking at many moves takes a while."""

    _registry: CollectorRegistry = field(factory=lambda: CollectorRegistry(auto_describe=False), init=False)

    def __attrs_post_init__(self) -> None:
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return the page that Prometheus scrapes."""
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """Describe nothing in advance."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from self._cluster()
        yield from self._deletions()
        yield from self._moves()
        yield from self._controller()
        yield from self._channels()
        yield from self._session()
        yield from self._availability()

    def _cluster(self) -> Iterator[Metric]:
        partitions = self.measurements.partitions
        for name, (text, gauge) in _CLUSTER.items():
            value = 0 if partitions is None else gauge(partitions.context, partitions)
            yield GaugeMetricFamily(name, text, value=value)

    def _deletions(self) -> Iterator[Metric]:
        partitions = self.measurements.partitions
        pending = Pending() if partitions is None else deletion_progress.pending(partitions.context)
        text = "Replicas of topics that are being deleted and may still have data."
        yield GaugeMetricFamily(f"{CONTROLLER}_replicastodeletecount", text, value=pending.replicas)
        text = "Topics whose deletion waits for a replica."
        yield GaugeMetricFamily(f"{CONTROLLER}_topicsineligibletodeletecount", text, value=pending.waiting_topics)
        text = "Replicas that deletions wait for: their brokers are not alive or failed to delete them."
        yield GaugeMetricFamily(f"{CONTROLLER}_replicasineligibletodeletecount", text, value=pending.ineligible)

    def _moves(self) -> Iterator[Metric]:
        moves = self.moves
        text = "Moves that make no progress: `klamm reassignment describe` gives the reason."
        yield GaugeMetricFamily("klamm_stalled_reassignments", text, value=moves.stalled)
        text = "Bytes still to be copied until all moves are in sync, as last reported by brokers."
        yield GaugeMetricFamily("klamm_reassignment_bytes_left", text, value=moves.bytes_left)
        text = "Bytes copied per second lately; 0 also while unknown."
        yield GaugeMetricFamily("klamm_reassignment_bytes_per_second", text, value=max(0, moves.rate))

    def _controller(self) -> Iterator[Metric]:
        seen = self.measurements
        yield GaugeMetricFamily(f"{CONTROLLER}_controllerstate", "The controller's state.", value=seen.state.number)
        text = "Elections of leaders that were not in the ISR: acknowledged records may be lost."
        yield CounterMetricFamily(f"{STATS}_uncleanleaderelections", text, value=seen.unclean_elections)
        for state, histogram in seen.timers.items():
            text = f"Processing time of events in the state {state.timer}, in ms."
            yield _histogram(f"{STATS}_{str(state.timer).lower()}rateandtimems", text, histogram)
        yield GaugeMetricFamily(f"{EVENTS}_eventqueuesize", "Waiting events.", value=self.queue_size())
        yield _histogram(f"{EVENTS}_eventqueuetimems", "Waiting time of events, in ms.", seen.queue_times)
        yield GaugeMetricFamily(
            "klamm_quarantined_subjects",
            "Topics and requests set aside after repeated faults.",
            value=self.quarantined(),
        )
        yield from _event_metrics(self.events())

    def _channels(self) -> Iterator[Metric]:
        channels = self.measurements.channels
        sizes = {} if channels is None else channels.queue_sizes()
        text = "Entries waiting to be sent to brokers."
        yield GaugeMetricFamily(f"{CHANNELS}_totalqueuesize", text, value=sum(sizes.values()))
        per_broker = GaugeMetricFamily(f"{CHANNELS}_queuesize", "The same by broker.", labels=["broker_id"])
        for broker_id, size in sizes.items():
            per_broker.add_metric([str(broker_id)], size)
        yield per_broker
        text = "Waiting time of requests to a broker, in ms."
        times = HistogramMetricFamily(f"{CHANNELS}_requestrateandqueuetimems", text, labels=["broker_id"])
        for broker_id, histogram in ({} if channels is None else channels.queue_times()).items():
            times.add_metric([str(broker_id)], histogram.cumulated(), histogram.sum_ms)
        yield times

    def _session(self) -> Iterator[Metric]:
        seen, now = self.measurements, self.session_state()
        name = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
        yield _histogram(name, "Latency of requests to ZooKeeper, in ms; one may be in bulk.", seen.store_requests)
        for event, state in _SESSION_COUNTERS.items():
            text = f"Times that the session with ZooKeeper became {state.value}."
            yield CounterMetricFamily(f"{SESSION}_zookeeper{event}", text, value=seen.sessions[state])
        states = GaugeMetricFamily("klamm_zookeeper_session_state", "1 for the current state.", labels=["state"])
        for state in SessionState:
            states.add_metric([state.value], int(state is now))
        yield states

    def _availability(self) -> Iterator[Metric]:
        """Yield a series for each partition that cannot be written to, judged by its leader and ISR."""
        partitions = self.measurements.partitions
        notable = {} if partitions is None else partitions.notable
        unavailable = [] if partitions is None else list(partitions.having(Notable.OFFLINE | Notable.UNDER_MIN_ISR))
        text = "0 for a partition that is offline or under min ISR; partitions without a series are available."
        series = GaugeMetricFamily("klamm_partition_available", text, labels=["topic", "partition", "reason"])
        for tp in nsmallest(MAX_PARTITION_SERIES, unavailable):
            series.add_metric([tp.topic, str(tp.partition), _reason(notable[tp])], 0)
        yield series
        text = f"Unavailable partitions without a series, beyond the first {MAX_PARTITION_SERIES}."
        omitted = max(0, len(unavailable) - MAX_PARTITION_SERIES)
        yield GaugeMetricFamily("klamm_partition_available_omitted", text, value=omitted)


_SESSION_COUNTERS: Final = {
    "disconnects": SessionState.SUSPENDED,
    "syncconnects": SessionState.CONNECTED,
    "expires": SessionState.EXPIRED,
}


def _reason(kinds: Notable) -> str:
    return "offline" if Notable.OFFLINE in kinds else "under_min_isr"


def _histogram(name: str, text: str, histogram: Histogram) -> HistogramMetricFamily:
    return HistogramMetricFamily(name, text, buckets=histogram.cumulated(), sum_value=histogram.sum_ms)


def _event_metrics(events: Mapping[str, EventStatistics]) -> Iterator[Metric]:
    counts = CounterMetricFamily("klamm_events", "Events processed, by name.", labels=["event"])
    seconds = CounterMetricFamily("klamm_event_seconds", "Seconds spent on events, by name.", labels=["event"])
    slowest = GaugeMetricFamily("klamm_event_max_seconds", "The slowest event since the start.", labels=["event"])
    for name, statistics in sorted(events.items()):
        counts.add_metric([name], statistics.count)
        seconds.add_metric([name], statistics.processing_seconds_total)
        slowest.add_metric([name], statistics.processing_seconds_max)
    yield from (counts, seconds, slowest)
