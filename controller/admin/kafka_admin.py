"""The admin client of clusters of Apache Kafka's, KRaft's included, by Kafka's own protocol.

It does what `AdminClient` does in clusters of ours, in the same terms. A cluster of Kafka's tells less: what is not
known is UNKNOWN. One answer is put together from those of several nodes, which are not always of the same moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Final

import trio
from attrs import define, field, frozen
from msgspec.structs import replace

from controller.admin import kafka_elections, kafka_settings, kafka_summary
from controller.admin.active_controller import ClusterUnreachable
from controller.admin.broker_log_dirs import BrokerLogDirs, is_denial
from controller.admin.kafka_cluster import ATTEMPT_SECONDS, KafkaCluster, open_kafka_cluster
from controller.admin.kafka_progress import THROTTLES, Settings, Sizes, Throttles, copied, described
from controller.admin.klamm_only import KlammOnly, refuse
from controller.admin.log_mover import Directories, Replica
from controller.admin.reassignments import Reassignment, ReassignmentDescriptions, naming_dead
from controller.admin.visibility import PROBE, Visibility, judge
from controller.model.rate_window import RateWindow
from transport import messages
from transport.addresses import Address
from transport.errors import ApiError, ErrorCode, in_words, reason_of
from transport.kafka import changing, reading
from transport.kafka.log_dirs import LOG_DIRS_NEED
from transport.kafka.reading import Moves
from transport.messages import ConfigResource, ConfigResourceType
from transport.metadata import LEADER_DURING_DELETE, TopicPartition
from transport.network import Network
from transport.wire import UnsupportedApi, WireError

LAG_SECONDS: Final = 10.0
"""The time for a broker to learn what the controller has done."""

_AGAIN_SECONDS: Final = 0.1


@frozen
class _Expected:
    """The replicas that a change leads to; a cancel gives them some order."""

    replicas: tuple[int, ...]
    in_order: bool = True

    def is_met(self, shown: tuple[int, ...]) -> bool:
        """Return whether these are the replicas."""
        return shown == self.replicas or (not self.in_order and sorted(shown) == sorted(self.replicas))


@define(eq=False)
class KafkaAdmin(KlammOnly):
    """Describes and changes a cluster of Apache Kafka. Open one with `open_admin`."""

    cluster: KafkaCluster
    _moving: Moves = field(factory=dict, init=False)
    """The last known replicas of partitions that have been seen moving."""

    _expected: dict[TopicPartition, _Expected] = field(factory=dict, init=False)
    """The replicas that the changes made here lead to, until their end has been seen."""

    _rates: dict[TopicPartition, RateWindow] = field(factory=dict, init=False)
    _deleted: dict[str, tuple[messages.PartitionState, ...]] = field(factory=dict, init=False)
    """The topics that were deleted here, as they were before."""

    # --- reading ------------------------------------------------------------------------------------------------

    async def cluster_id(self) -> str | None:
        """Return the id of the cluster, None if it does not tell."""
        return await self.cluster.ask(reading.cluster_id())

    async def read_metadata(self, topics: Sequence[str] | None = None) -> messages.MetadataResponse:
        """Return brokers and partitions, of all topics or of those named that exist.

        A topic that was deleted here is shown with leader -2 while live brokers have logs of it. Raises ApiError if a
        named topic may not be described.
        """
        found = await self._read_settled(topics)
        if topics is not None:
            for refused in found.refused:
                raise ApiError(refused.error, refused.message)
        there = {state.topic for state in found.partitions}
        gone = [name for name in self._deleted if name not in there and (topics is None or name in topics)]
        left = [state for name in gone for state in await self._left_of(name)]
        return replace(found, partitions=(*found.partitions, *left), refused=())

    async def visibility(
        self, others: Mapping[str, int] = MappingProxyType({}), *, settings: bool = False
    ) -> Visibility:
        """Return how much of the cluster we may see, judged by the topic of an arbitrary name; see `AdminClient`.

        Whether we may see the `settings` of topics is asked only if it matters.
        """
        refused = (await self.cluster.ask(reading.metadata([PROBE, *others]))).refused
        moves, may = await self._may_see_moves(), not settings or await self._may_see_settings()
        return judge(refused, others, sees_moves=moves, sees_settings=may)

    async def find_controller(self) -> messages.BrokerEndpoint:
        """Return the node that brokers name as the controller; under KRaft, any broker. Raises ClusterUnreachable."""
        controller = (await self.cluster.ask(reading.metadata(()))).controller
        if controller is None:
            raise ClusterUnreachable("the brokers name no active controller: see whether one is elected")
        return controller

    async def describe_cluster(self) -> messages.DescribeClusterResponse:
        """Return the brokers, and counts of topics and partitions. Kafka does not tell the epochs of brokers."""
        return await kafka_summary.summarize(self.cluster, await self.read_metadata())

    async def describe_log_dirs(
        self, broker_ids: Sequence[int] | None = None, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[int, BrokerLogDirs]:
        """Return the contents of log directories, of all live brokers and partitions or of those named."""
        if broker_ids is None:
            wanted = {broker.id for broker in (await self.cluster.describe(())).brokers}
        else:
            wanted = set(broker_ids)
            await self.cluster.locate(wanted)
        answers: dict[int, BrokerLogDirs] = {}

        async def ask(broker_id: int) -> None:
            call = reading.log_dirs(partitions)
            try:
                told = await self.cluster.ask_broker(broker_id, call, ATTEMPT_SECONDS)
            except ApiError as error:
                fault = reason_of(error.code, error.message)
                answers[broker_id] = BrokerLogDirs(fault=fault, is_denied=is_denial(error))
            except WireError as error:
                answers[broker_id] = BrokerLogDirs(fault=str(error))
            else:
                # Releases before 2.8 refuse by telling of no directory.
                fault = f"broker {broker_id} tells of no log directory: {LOG_DIRS_NEED}"
                refused = BrokerLogDirs(fault=fault, is_denied=True)
                answers[broker_id] = BrokerLogDirs.of(told) if told else refused

        async with trio.open_nursery() as nursery:
            for broker_id in wanted:
                nursery.start_soon(ask, broker_id)
        return dict(sorted(answers.items()))

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[messages.OngoingReassignment, ...]:
        """Return the reassignments in progress, of all partitions or of those named."""
        moves = await self._moves(partitions)
        states = await self._states_of(moves)
        return tuple(
            messages.OngoingReassignment(
                *tp, move.replicas, move.adding_replicas, move.removing_replicas, states[tp].leader, states[tp].isr
            )
            for tp, move in sorted(moves.items())
            if tp in states
        )

    async def describe_reassignments(
        self, reassignments: Collection[Reassignment] | None = None
    ) -> ReassignmentDescriptions:
        """Return the progress of all reassignments. Rates are those since the calls of the last seconds.

        Raises UnsupportedApi if some are named: reassignments have no identity in Kafka.
        """
        if reassignments is not None:
            refuse("describe_reassignments of some reassignments", "describe all")
        moves = await self._moves()
        states = await self._states_of(moves)
        # The progress has the size and the throttle of each replica, so brokers that keep theirs are asked, too.
        brokers = {b for move in moves.values() for b in move.target_replicas}
        brokers |= {state.leader for state in states.values() if state.leader >= 0}
        sizes = Sizes.of(await self.describe_log_dirs(sorted(brokers), sorted(moves)) if moves else {})
        throttles = Throttles(await self._settings({tp.topic for tp in moves}, brokers))
        self._sample(copied(moves, sizes))
        rates = {tp: window.rate() for tp, window in self._rates.items()}
        answer = described(moves, states, sizes, throttles, rates)
        live = {broker.id for broker in (await self.read_metadata(())).brokers} if moves else set[int]()
        named = tuple(naming_dead(move, live) for move in answer.reassignments)
        return ReassignmentDescriptions.of(replace(answer, reassignments=named), None)

    async def describe_configs(self, resources: Sequence[ConfigResource]) -> tuple[messages.ResourceConfigs, ...]:
        """Return the settings in effect for topics and brokers, and the sources of their values."""
        return await kafka_settings.describe(self.cluster, resources)

    # --- changing -----------------------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Sequence[messages.NewTopic], *, validate_only: bool = False
    ) -> messages.CreateTopicsResponse:
        """Create topics, or only check whether they could be created. Raises OutcomeUnknown if the answer is lost."""
        call = changing.create_topics(topics, self.cluster.timeout_ms, validate_only=validate_only)
        return messages.CreateTopicsResponse(await self.cluster.change(call))

    async def create_partitions(
        self, topics: Sequence[messages.NewPartitions], *, validate_only: bool = False
    ) -> messages.CreatePartitionsResponse:
        """Add partitions to topics, or only check whether they could be added. Raises OutcomeUnknown."""
        call = changing.create_partitions(topics, self.cluster.timeout_ms, validate_only=validate_only)
        return messages.CreatePartitionsResponse(await self.cluster.change(call))

    async def delete_topics(self, names: Sequence[str]) -> messages.DeleteTopicsResponse:
        """Delete topics. An answer without error means that the deletion is durable. Raises OutcomeUnknown."""
        before = (await self.cluster.describe(names)).partitions
        outcomes = await self.cluster.change(changing.delete_topics(names, self.cluster.timeout_ms))
        for outcome in outcomes:
            if outcome.error is ErrorCode.NONE:
                self._deleted[outcome.name] = tuple(state for state in before if state.topic == outcome.name)
        return messages.DeleteTopicsResponse(outcomes)

    async def alter_partition_reassignments(
        self, partitions: Sequence[messages.ReassignablePartition]
    ) -> messages.AlterPartitionReassignmentsResponse:
        """Begin, override or cancel reassignments. Raises OutcomeUnknown if the answer is lost."""
        outcomes = await self.cluster.change(changing.reassign(partitions, self.cluster.timeout_ms))
        begun = {one.tp for one in outcomes if one.error is ErrorCode.NONE}
        for wanted in partitions:
            move = self._moving.get(wanted.tp)
            if wanted.tp in begun and wanted.replicas is not None:
                self._expected[wanted.tp] = _Expected(tuple(wanted.replicas))
            elif wanted.tp in begun and move is not None:
                self._expected[wanted.tp] = _Expected(move.origin_replicas, in_order=False)
        return messages.AlterPartitionReassignmentsResponse(outcomes)

    async def elect_leaders(
        self,
        election_type: messages.ElectionType,
        partitions: Sequence[TopicPartition] | None = None,
        *,
        orders: Mapping[TopicPartition, Sequence[int]] | None = None,
    ) -> tuple[messages.PartitionError, ...]:
        """Elect leaders for the partitions named, or for all that need it. Raises OutcomeUnknown.

        Partitions in `orders` first get their replicas in this order, by a reassignment that moves nothing.
        """
        if not orders:
            return await self.cluster.change(changing.elect(election_type, partitions, self.cluster.timeout_ms))
        before = await self.read_metadata(sorted({tp.topic for tp in orders}))
        return await kafka_elections.elect_in_order(self.cluster, partitions or (), orders, before)

    async def alter_replica_log_dirs(self, directories: Directories) -> dict[Replica, str]:
        """Let brokers move logs, or remember where to create them; return the reason for each that is refused."""
        by_broker: defaultdict[int, dict[TopicPartition, str]] = defaultdict(dict)
        for (tp, broker_id), path in directories.items():
            by_broker[broker_id][tp] = path
        refused: dict[Replica, str] = {}

        async def ask(broker_id: int, wanted: Mapping[TopicPartition, str]) -> None:
            try:
                answered = await self.cluster.ask_broker(broker_id, changing.move_logs(wanted), ATTEMPT_SECONDS)
            except (ApiError, WireError) as error:
                refused.update({(tp, broker_id): in_words(error) for tp in wanted})
                return
            # A broker without the replica remembers the directory, and says so by this error.
            faults = [one for one in answered if one.error not in (ErrorCode.NONE, ErrorCode.REPLICA_NOT_AVAILABLE)]
            refused.update({(one.tp, broker_id): reason_of(one.error, one.message) for one in faults})

        async with trio.open_nursery() as nursery:
            for broker_id, wanted in by_broker.items():
                nursery.start_soon(ask, broker_id, wanted)
        return refused

    async def incremental_alter_configs(
        self, resources: Sequence[messages.AlterConfigsResource], *, validate_only: bool = False
    ) -> tuple[messages.ResourceError, ...]:
        """Change settings of topics and brokers, those of one resource all or not at all, or only check the changes.

        Raises OutcomeUnknown if the answer is lost.
        """
        return await kafka_settings.alter(self.cluster, resources, validate_only=validate_only)

    # --- parts of answers ---------------------------------------------------------------------------------------

    async def _read_settled(self, topics: Sequence[str] | None) -> messages.MetadataResponse:
        """Return metadata with the reassignments in progress.

        A broker that still shows the replicas of a reassignment that the controller has ended, or does not show those
        that one begun here leads to, is behind: it is asked again, for a while.
        """
        if topics is not None and not topics:
            return await self.cluster.describe(topics)
        deadline = trio.current_time() + LAG_SECONDS
        while True:
            moves = await self._moves_if_permitted()
            found = await self.cluster.describe(topics)
            shown = {state.tp: state.replicas for state in found.partitions}
            ended = {tp: move for tp, move in self._moving.items() if tp not in moves}
            over = {tp: wanted for tp, wanted in self._expected.items() if tp in shown and tp not in moves}
            late = any(shown.get(tp) == move.replicas != move.target_replicas for tp, move in ended.items())
            late = late or not all(wanted.is_met(shown[tp]) for tp, wanted in over.items())
            if not late or trio.current_time() >= deadline:
                self._expected = {tp: wanted for tp, wanted in self._expected.items() if tp not in over}
                return replace(found, partitions=tuple(_moved(state, moves) for state in found.partitions))
            await trio.sleep(_AGAIN_SECONDS)

    async def _moves(self, partitions: Sequence[TopicPartition] | None = None) -> Moves:
        moves = await self.cluster.ask_controller(reading.reassignments(partitions, self.cluster.timeout_ms))
        self._moving |= moves
        return moves

    async def _moves_if_permitted(self) -> Moves:
        """Return the reassignments in progress; none if we may not see them, which `visibility` says."""
        try:
            return await self._moves()
        except ApiError as error:
            if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
        except UnsupportedApi:
            pass  # a broker before 2.4
        return {}

    async def _may_see_moves(self) -> bool:
        try:
            await self.cluster.ask_controller(reading.reassignments((), self.cluster.timeout_ms))
        except ApiError as error:
            if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
            return False
        except UnsupportedApi:
            pass  # a broker before 2.4, where nobody sees them
        return True

    async def _may_see_settings(self) -> bool:
        try:
            [told] = await self.cluster.ask(reading.configs([ConfigResource(ConfigResourceType.TOPIC, PROBE)], ()))
        except UnsupportedApi:
            return True
        return told.error is not ErrorCode.TOPIC_AUTHORIZATION_FAILED

    async def _states_of(self, moves: Moves) -> dict[TopicPartition, messages.PartitionState]:
        topics = sorted({tp.topic for tp in moves})
        found = (await self.cluster.describe(topics)).partitions if topics else ()
        return {state.tp: state for state in found}

    async def _settings(self, topics: Collection[str], brokers: Collection[int]) -> Settings:
        """Return the settings that throttle replicas; those that cannot be read are missing."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(topics)]
        resources += [ConfigResource(ConfigResourceType.BROKER, str(id_)) for id_ in sorted(brokers)]
        told = await kafka_settings.describe(self.cluster, resources, THROTTLES)
        return {
            one.resource: {entry.name: entry.value for entry in one.entries}
            for one in told
            if one.error is ErrorCode.NONE
        }

    def _sample(self, sizes: Mapping[TopicPartition, int]) -> None:
        """Remember the sizes of copies, and forget those of ended moves."""
        self._rates = {tp: self._rates.get(tp, RateWindow()) for tp in sizes}
        for tp, size in sizes.items():
            self._rates[tp].add(trio.current_time(), size)

    async def _left_of(self, topic: str) -> list[messages.PartitionState]:
        """Return the partitions of a deleted topic of which live brokers still have logs."""
        before = {state.tp: state for state in self._deleted[topic]}
        told = await self.describe_log_dirs(None, sorted(before))
        left = {log.tp for answer in told.values() for one in answer.log_dirs for log in one.replicas}
        return [replace(before[tp], leader=LEADER_DURING_DELETE, offline_replicas=()) for tp in sorted(left)]


def _moved(state: messages.PartitionState, moves: Moves) -> messages.PartitionState:
    """Return a partition with its reassignment, if one is in progress."""
    move = moves.get(state.tp)
    if move is None:
        return state
    return replace(
        state,
        replicas=move.replicas,
        adding_replicas=move.adding_replicas,
        removing_replicas=move.removing_replicas,
    )


@asynccontextmanager
async def open_kafka_admin(
    network: Network,
    bootstrap: Sequence[Address],
    timeout: float = 30.0,  # noqa: ASYNC109  of each call
) -> AsyncIterator[KafkaAdmin]:
    """Open an admin client of the cluster of Kafka's that has brokers at `bootstrap`."""
    async with open_kafka_cluster(network, bootstrap, timeout) as cluster:
        yield KafkaAdmin(cluster)
