"""The reference service, which leads, follows and stops replicas by the controller's orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import trio

from broker.kit import BrokerHandle
from broker.metadata_cache import MetadataCache
from broker.reference.data_api import DataApi
from broker.reference.fetcher import Fetcher
from broker.reference.isr_updates import IsrUpdates
from broker.reference.leadership import Leadership, Settled
from broker.reference.logs import Logs
from broker.reference.replica import Replica
from transport.errors import ApiError, ErrorCode
from transport.log import get_logger
from transport.messages import (
    UNKNOWN,
    AlterPartitionItem,
    AlterPartitionResult,
    LogDir,
    LogDirReplica,
    PartitionState,
    StopReplicaPartition,
)
from transport.metadata import TopicPartition
from transport.wire import Handlers

_log = get_logger(__name__)


class ReferenceService:
    """The replicas of one reference broker. Implements `broker.service.Service` and `DescribesLogDirs`.

    It accesses the disk directly, without threads: data goes to the page cache, and a short stall affects only this
    broker.
    """

    def __init__(
        self, handle: BrokerHandle, logs: Logs, make_leadership: Callable[..., Leadership] = Leadership
    ) -> None:
        """Take over the logs. No replica leads or follows before the controller's orders."""
        self._make_leadership = make_leadership
        self._handle = handle
        self._logs = logs
        self._replicas: dict[TopicPartition, Replica] = {}
        self._fetchers: dict[int, Fetcher] = {}
        self._live_brokers: tuple[int, ...] = ()
        self._isr_updates = IsrUpdates(handle, self._settle)
        self._data_api = DataApi(handle.config, handle.topic_configs, handle.throttles, self._replicas, self._review)
        handle.nursery.start_soon(self._run)

    def handlers(self) -> Handlers:
        """Return the handlers of Produce and Fetch."""
        return self._data_api.handlers()

    async def describe_log_dirs(self, partitions: Sequence[TopicPartition] | None) -> Sequence[LogDir]:
        """Describe the logs and their sizes; see `DescribesLogDirs.describe_log_dirs`."""
        return describe_log_dirs(self._logs, self._replicas, partitions)

    async def become_leader(self, state: PartitionState, *, is_new: bool) -> None:
        """Lead a partition; see `Service.become_leader`."""
        replica = self._open(state, is_new=is_new)
        self._stop_fetching(replica.tp)
        replica.lead(state, partial(self._begin_leadership, state), trio.current_time())
        self._review(replica)

    async def become_follower(self, state: PartitionState, *, is_new: bool) -> None:
        """Follow a partition's leader; see `Service.become_follower`."""
        replica = self._open(state, is_new=is_new)
        self._stop_fetching(replica.tp)
        replica.follow(state)
        if state.leader >= 0:
            self._fetcher(state.leader).follow(replica)

    async def stop_replica(self, partition: StopReplicaPartition) -> None:
        """Stop a replica, and delete its log on request; see `Service.stop_replica`."""
        tp = partition.tp
        try:
            self._stop_fetching(tp)
            replica = self._replicas.pop(tp, None)
            if replica is not None:
                replica.close()
            is_deleted = False
            if partition.delete:
                self._handle.topic_configs.forget(tp.topic)
                is_deleted = self._logs.delete(tp, partition.topic_id)
        except OSError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp} cannot be stopped: {error}") from error
        _log.info("stopped", broker_id=self._handle.broker_id, partition=str(tp), deleted=is_deleted)

    async def lose(self, tps: Sequence[TopicPartition]) -> None:
        """Stop replicas whose logs can no longer be used, and notify the controller."""
        for tp in tps:
            self._stop_fetching(tp)
            replica = self._replicas.pop(tp, None)
            if replica is not None:
                replica.close()
        await self._handle.report_lost(tps)

    async def update_metadata(self, metadata: MetadataCache) -> None:
        """Reconnect to brokers with new addresses, review ISRs when brokers died, and renew overtaken leaderships."""
        for fetcher in self._fetchers.values():
            fetcher.metadata_changed()
        if metadata.live_brokers != self._live_brokers:
            self._live_brokers = metadata.live_brokers
            for replica in self._replicas.values():
                self._review(replica)
        for replica in self._replicas.values():
            if replica.leadership is not None and replica.leadership.is_overtaken:
                self._catch_up(replica, replica.leadership, metadata.partition(replica.tp))

    def _open(self, state: PartitionState, *, is_new: bool) -> Replica:
        tp = state.tp
        replica = self._replicas.get(tp)
        if replica is None:
            try:
                replica = Replica(tp, self._logs.open(tp, state.topic_id, is_new=is_new), state)
            except OSError as error:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {tp} cannot be opened: {error}") from error
            self._replicas[tp] = replica
            _log.info(
                "opened",
                broker_id=self._handle.broker_id,
                partition=str(tp),
                is_new=is_new,
                log_end=replica.log.end_offset,
            )
        return replica

    def _begin_leadership(self, state: PartitionState, log_end: int) -> Leadership:
        handle = self._handle
        return self._make_leadership(
            handle.broker_id,
            state,
            log_end,
            trio.current_time(),
            max_lag=handle.config.replica_lag_time_max_ms / 1000,
            is_live=lambda broker_id: handle.metadata.broker(broker_id) is not None,
        )

    def _fetcher(self, leader_id: int) -> Fetcher:
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = Fetcher(self._handle, leader_id)
            self._handle.nursery.start_soon(fetcher.run)
        return fetcher

    def _stop_fetching(self, tp: TopicPartition) -> None:
        replica = self._replicas.get(tp)
        if replica is not None and replica.state.leader in self._fetchers:
            self._fetchers[replica.state.leader].forget(tp)

    # --- ISR ----------------------------------------------------------------------------------------------------

    def _review(self, replica: Replica) -> None:
        """Advance the high watermark and propose the ISR that is due, if this broker leads the partition."""
        leadership = replica.leadership
        if leadership is None:
            return
        now = trio.current_time()
        replica.advance(now)
        item = leadership.propose(replica.high_watermark, replica.log.end_offset, now)
        if item is not None:
            self._isr_updates.submit(item)

    def _settle(self, item: AlterPartitionItem, result: AlterPartitionResult) -> Settled:
        replica = self._replicas.get(item.tp)
        if replica is None or replica.leadership is None:
            return Settled.DONE
        settled = replica.leadership.settle(item, result, trio.current_time())
        if result.error is not ErrorCode.NONE:
            _log.info("proposed ISR", partition=str(replica.tp), isr=item.new_isr, error=result.error.name)
        news = self._handle.metadata.partition(replica.tp)
        # The news travel on another connection, and may have arrived before this answer.
        if replica.leadership.is_overtaken and news is not None and news.partition_epoch > item.partition_epoch:
            self._catch_up(replica, replica.leadership, news)
        self._review(replica)
        return settled

    def _catch_up(self, replica: Replica, leadership: Leadership, news: PartitionState | None) -> None:
        """Adopt the state that overtook a proposal; the controller sends it along with its refusal."""
        state = leadership.state
        if news is not None and (news.topic_id, news.leader_epoch) == (state.topic_id, state.leader_epoch):
            leadership.renew(news, replica.log.end_offset, trio.current_time())
            self._review(replica)

    async def _run(self) -> None:
        """Run the background tasks, and close the logs at the end."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._isr_updates.run)
                nursery.start_soon(self._review_periodically)
        finally:
            for replica in self._replicas.values():
                replica.close()

    async def _review_periodically(self) -> None:
        """Review all ISRs twice per allowed lag, as Kafka does: followers that stop fetching trigger no review."""
        while True:
            await trio.sleep(self._handle.config.replica_lag_time_max_ms / 2000)
            for replica in self._replicas.values():
                self._review(replica)


def describe_log_dirs(
    logs: Logs, replicas: Mapping[TopicPartition, Replica], wanted: Sequence[TopicPartition] | None
) -> tuple[LogDir, ...]:
    """Return the log directories with their replicas, all or those of the partitions wanted.

    A directory that cannot be used has KAFKA_STORAGE_ERROR and no replicas. For a replica without orders since the
    start, only the size of its log is known.
    """
    usable = logs.directories()
    held: dict[str, list[LogDirReplica]] = {path: [] for path in usable}
    for tp in dict.fromkeys(sorted(logs.partitions()) if wanted is None else wanted):
        path = logs.directory_of(tp)
        described = None if path is None else _describe(logs, replicas.get(tp), tp)
        if path is not None and described is not None:
            held[path].append(described)
    return tuple(_directory(logs, path, tuple(held[path]), is_usable=is_usable) for path, is_usable in usable.items())


def _directory(logs: Logs, path: str, held: tuple[LogDirReplica, ...], *, is_usable: bool) -> LogDir:
    if not is_usable:
        return LogDir(path, ErrorCode.KAFKA_STORAGE_ERROR, held)
    volume = logs.volume(path)
    return LogDir(path, ErrorCode.NONE, held, volume.total, volume.usable)


def _describe(logs: Logs, replica: Replica | None, tp: TopicPartition) -> LogDirReplica | None:
    if replica is not None:
        log, topic_id = replica.log, replica.state.topic_id
        return LogDirReplica(tp.topic, topic_id, tp.partition, log.size, log.end_offset, replica.lag)
    # Its end offset would be known only after reading the whole log, which takes too long.
    try:
        return LogDirReplica(tp.topic, logs.topic_id(tp) or "", tp.partition, logs.size(tp), UNKNOWN, UNKNOWN)
    except OSError:
        return None
