"""The conditions that must hold within a stated time after the last fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from typing import Final, Protocol

from msgspec.structs import replace

from simulator.broker_process import BrokerProcess
from simulator.kafka.orders import as_told
from simulator.memory import Memory
from simulator.process import ControllerProcess, Process, ProcessState
from simulator.safety.rollouts import left_behind
from simulator.store.durable import Durable
from simulator.world import World
from transport.messages import MetadataRequest, PartitionState
from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths

_Leaderships = dict[TopicPartition, LeaderAndIsr | None]
_Assignments = dict[TopicPartition, ReplicaAssignment]

_IMBALANCE: Final = 0.1
"""Share of the partitions a broker should lead that others may lead: the controllers' default, and Kafka's."""


class CheckedCluster(Protocol):
    """The parts of a simulated cluster that are checked."""

    world: World
    controllers: dict[int, ControllerProcess]
    brokers: dict[int, BrokerProcess]
    durable: Durable
    absent: dict[int, None]
    """The brokers that are dead, as the others should know."""

    @property
    def active_controller(self) -> int | None:
        """The controller in `/controller`, alive or not; None if there is none."""

    def processes(self) -> tuple[Process, ...]:
        """Return all processes, controllers first."""


def faults(cluster: CheckedCluster) -> list[str]:
    """Return the faults of a cluster that nothing disturbs any more; an empty list if all is well.

    A partition whose ISR is empty, because all its members lost their disks, has to wait for an unclean election unless
    the settings allow that: it has no leader and no followers, and its reassignment makes no progress. Rows that were
    damaged on purpose have no faults.
    """
    return list(_visible(cluster)) or list(_memory(cluster)) or cluster.world.safety.lost()


def is_well(cluster: CheckedCluster) -> bool:
    """Return whether a cluster has no `faults`. Looks for the first only, as most looks are too early."""
    is_disturbed = any(next(found(cluster), None) is not None for found in (_visible, _memory))
    return not is_disturbed and not cluster.world.safety.lost()


def _visible(cluster: CheckedCluster) -> Iterator[str]:
    """Yield what is wrong with the store, the processes and what brokers believe."""
    exempt = cluster.world.safety.exempt
    assignments = {tp: of for tp, of in cluster.durable.partitions() if not exempt.has_topic(tp.topic)}
    leaderships = {tp: cluster.durable.leadership(tp) for tp in assignments}
    yield from _processes(cluster)
    yield from _partitions(cluster, assignments, leaderships)
    yield from _preferred(cluster, assignments, leaderships)
    yield from _requests(cluster, leaderships)
    yield from _identities(cluster, assignments)
    yield from () if cluster.absent else _rollouts(cluster)
    yield from _deletions(cluster)
    yield from _strays(cluster, assignments)
    yield from _metadata(cluster, assignments, leaderships)
    yield from _roles(cluster, assignments, leaderships)


def _processes(cluster: CheckedCluster) -> Iterator[str]:
    for process in [process for process in cluster.processes() if process.id not in cluster.absent]:
        if process.state is not ProcessState.RUNNING:
            yield f"{process.host} is {process.state.value}"
        elif not process.started.is_set():
            yield f"{process.host} is not in service yet"
    registered, expected = _sound(cluster, cluster.durable.brokers()), _sound(cluster, _present(cluster))
    if registered != expected:
        yield f"brokers {registered} are registered, not {expected}"
    active = [id_ for id_, process in cluster.controllers.items() if process.service and process.service.is_active]
    if active != [cluster.active_controller]:
        yield f"controllers {active} are active while {cluster.active_controller} holds /controller"


def _partitions(cluster: CheckedCluster, assignments: _Assignments, leaderships: _Leaderships) -> Iterator[str]:
    live = _live(cluster)
    for tp, assignment in assignments.items():
        is_unclean_allowed = cluster.world.safety.is_unclean_allowed(tp.topic)
        leadership = leaderships[tp]
        if leadership is None:
            if not live.isdisjoint(assignment.replicas):
                yield f"{tp} has no state, though it has live replicas in {assignment.replicas}"
            continue
        if not leadership.isr and not is_unclean_allowed:
            continue
        if leadership.leader not in live:
            able = assignment.replicas if is_unclean_allowed else leadership.isr
            if not live.isdisjoint(able):
                yield f"{tp} is led by {leadership.leader}, though some of {able} could lead"
            # While all that may lead are away, adding replicas have nobody to catch up with.
            continue
        if assignment.is_being_reassigned and live.issuperset(assignment.target_replicas):
            adding, removing = assignment.adding_replicas, assignment.removing_replicas
            yield f"{tp} is still being reassigned: adding {adding}, removing {removing}, ISR {leadership.isr}"
        missing = tuple(r for r in assignment.replicas if r in live and r not in leadership.isr)
        if missing:
            yield f"{tp}: live replicas {missing} are not in the ISR {leadership.isr}"


def _preferred(cluster: CheckedCluster, assignments: _Assignments, leaderships: _Leaderships) -> Iterator[str]:
    if cluster.world.settings.leader_rebalance_interval is None or cluster.absent:
        return
    led: defaultdict[int, list[tuple[TopicPartition, LeaderAndIsr]]] = defaultdict(list)
    for tp, leadership in leaderships.items():
        if leadership is not None and leadership.isr:
            led[assignments[tp].replicas[0]].append((tp, leadership))
    exempt = cluster.world.safety.exempt
    parents = [paths.topic_partitions(name) for name in cluster.durable.topics() if exempt.has_topic(name)]
    # Controllers count these partitions too, for whichever broker their damaged rows say.
    uncounted = sum(len(cluster.durable.tree.children(parent) or ()) for parent in parents)
    for preferred, partitions in led.items():
        elsewhere = [(tp, leadership.leader) for tp, leadership in partitions if leadership.leader != preferred]
        if len(elsewhere) > _IMBALANCE * (len(partitions) + uncounted):
            tp, leader = elsewhere[0]
            yield f"{tp} is led by {leader}, not by its preferred {preferred} (nor are {len(elsewhere) - 1} more)"


def _requests(cluster: CheckedCluster, leaderships: _Leaderships) -> Iterator[str]:
    tree, exempt = cluster.durable.tree, cluster.world.safety.exempt
    requested = None if exempt.has(paths.REASSIGN_PARTITIONS) else tree.read(paths.REASSIGN_PARTITIONS)
    for tp in formats.decode_reassign_partitions(requested.data) if requested is not None else ():
        leadership = leaderships.get(tp)
        if not exempt.has_topic(tp.topic) and (leadership is None or leadership.isr):
            yield f"{tp} is still in {paths.REASSIGN_PARTITIONS}"
    notices = [paths.PREFERRED_REPLICA_ELECTION] if tree.read(paths.PREFERRED_REPLICA_ELECTION) is not None else []
    for parent in (paths.ISR_CHANGE_NOTIFICATION, paths.LOG_DIR_EVENT_NOTIFICATION):
        notices += [f"{parent}/{name}" for name in tree.children(parent) or ()]
    yield from (f"{path} still exists" for path in notices if not exempt.has(path))


def _identities(cluster: CheckedCluster, assignments: _Assignments) -> Iterator[str]:
    durable, exempt = cluster.durable, cluster.world.safety.exempt
    moving: defaultdict[str, list[str]] = defaultdict(list)
    for tp, assignment in assignments.items():
        if assignment.is_being_reassigned:
            moving[tp.topic].append(str(tp.partition))
    for name in sorted({*moving, *(durable.tree.children(paths.REASSIGNMENTS) or ())}):
        path, expected = paths.topic_reassignments(name), sorted(moving.get(name, ())) or None
        found = durable.tree.children(path)
        if found != expected and not exempt.has_topic(name):
            yield f"{path} has {found}, although partitions {expected} of the topic are being moved"


def _rollouts(cluster: CheckedCluster) -> Iterator[str]:
    safety = cluster.world.safety
    return left_behind(cluster.durable, safety.exempt, are_rates_by_hand=safety.rollouts.are_rates_by_hand)


def _deletions(cluster: CheckedCluster) -> Iterator[str]:
    durable, exempt = cluster.durable, cluster.world.safety.exempt
    # Where topics cannot be deleted, controllers remove the markers, and the topics stay.
    stays = "exists" if cluster.world.settings.delete_topic_enable else "has its marker"
    for name in durable.tree.children(paths.DELETE_TOPICS) or ():
        if not exempt.has_topic(name):
            yield f"topic {name} is marked for deletion and still {stays}"
    for name in cluster.world.safety.undead():
        yield f"topic {name} was marked for deletion and still exists"
    topics = set(durable.topics())
    for name in durable.tree.children(paths.TOPIC_CONFIGS) or ():
        if name not in topics and not exempt.has_topic(name):
            yield f"{paths.topic_config(name)} still exists, though the topic does not"


def _strays(cluster: CheckedCluster, assignments: _Assignments) -> Iterator[str]:
    exempt = cluster.world.safety.exempt
    for name in cluster.durable.tree.children(paths.STRAYS) or ():
        stray = paths.parse_stray(name)
        # A stray on a broker that is away waits for it.
        may_wait = stray is not None and (exempt.has_topic(stray.topic) or stray.broker_id in cluster.absent)
        if not may_wait and not exempt.has(f"{paths.STRAYS}/{name}"):
            yield f"{paths.STRAYS}/{name} still exists"
    topics = {name: cluster.durable.topic(name) for name in cluster.durable.topics()}
    for broker in [broker for broker in cluster.brokers.values() if broker.id not in cluster.absent]:
        for tp, log in broker.disk.logs.items():
            if exempt.has_topic(tp.topic):
                continue
            topic = topics.get(tp.topic)
            is_wanted = tp in assignments and broker.id in assignments[tp].replicas
            if topic is None or not is_wanted or topic.topic_id != log.topic_id:
                yield f"broker {broker.id} has data of {tp} (topic id {log.topic_id}), which it must not have"


def _metadata(cluster: CheckedCluster, assignments: _Assignments, leaderships: _Leaderships) -> Iterator[str]:
    ids = {name: topic.topic_id or "" for name in cluster.durable.topics() if (topic := cluster.durable.topic(name))}
    registered, sound = cluster.durable.brokers(), _sound(cluster, _present(cluster))
    durable = {
        tp: _published(tp, ids[tp.topic], assignments[tp], leadership, registered)
        for tp, leadership in leaderships.items()
        if leadership is not None
    }
    yield from cluster.world.safety.told.differences(sound, durable)
    for id_ in sound:
        yield from _metadata_of(cluster, cluster.brokers[id_], registered, durable)


def _roles(cluster: CheckedCluster, assignments: _Assignments, leaderships: _Leaderships) -> Iterator[str]:
    """Yield the replicas that do not lead or follow as the store says, whatever their brokers were ordered.

    Kafka brokers that fail to carry out an order are not ordered again.
    """
    if cluster.world.settings.is_kafkas:
        return
    for broker in cluster.brokers.values():
        service = broker.service
        if service is None:
            continue
        for tp, leadership in leaderships.items():
            if leadership is None or broker.id not in assignments[tp].replicas:
                continue
            role, expected = service.role(tp), (leadership.leader_epoch, leadership.leader == broker.id)
            if role != expected and not cluster.world.safety.decisions.is_state_by_hand(tp):
                text = (
                    "neither leads nor follows" if role is None else f"is at leader epoch {role[0]}, leads: {role[1]}"
                )
                yield f"broker {broker.id} {text} of {tp}, not {expected}"


def _published(
    tp: TopicPartition, topic_id: str, assignment: ReplicaAssignment, leadership: LeaderAndIsr, live: Container[int]
) -> PartitionState:
    offline = tuple(r for r in assignment.replicas if r not in live)
    return PartitionState.of(tp, topic_id, assignment, leadership, offline)


def _metadata_of(
    cluster: CheckedCluster,
    broker: BrokerProcess,
    registered: dict[int, BrokerRegistration],
    durable: dict[TopicPartition, PartitionState],
) -> Iterator[str]:
    if broker.handle is None or broker.state is not ProcessState.RUNNING:
        return
    metadata = broker.handle.metadata
    live = tuple(registered)
    if metadata.live_brokers != live:
        yield f"broker {broker.id} considers brokers {metadata.live_brokers} alive, not {live}"
    for id_, registration in registered.items():
        endpoint, address = metadata.broker(id_), (registration.host, registration.port)
        if endpoint is not None and (endpoint.host, endpoint.port) != address:
            yield f"broker {broker.id} takes broker {id_} to be at {(endpoint.host, endpoint.port)}, not {address}"
    controller = metadata.controller and metadata.controller.id
    epoch = cluster.durable.controller_epoch()
    if (controller, metadata.controller_epoch) != (cluster.active_controller, epoch):
        believed = f"{controller} at epoch {metadata.controller_epoch}"
        yield f"broker {broker.id} obeys controller {believed}, not {cluster.active_controller} at epoch {epoch}"
    states = metadata.describe(MetadataRequest(None)).partitions
    exempt = cluster.world.safety.exempt
    known = {s.tp: _as_last_read(cluster, s, durable) for s in states if not exempt.has_topic(s.topic)}
    if cluster.world.settings.is_kafkas:
        durable = {tp: as_told(state) for tp, state in durable.items()}
        must_be_known, broker_epoch = cluster.world.safety.departures.must_be_known, broker.handle.broker_epoch
        known = {tp: state for tp, state in known.items() if tp in durable or must_be_known(tp, broker_epoch)}
    differing = [tp for tp in sorted({*known, *durable}) if known.get(tp) != durable.get(tp)]
    for tp in differing[:1]:
        others = f" (and {len(differing) - 1} more)" if differing[1:] else ""
        yield f"broker {broker.id} believes {_text(known.get(tp))} of {tp}, not {_text(durable.get(tp))}{others}"


def _as_last_read(
    cluster: CheckedCluster, state: PartitionState, durable: dict[TopicPartition, PartitionState]
) -> PartitionState:
    """Return a state with the epoch of the store if nobody could know that: an operator wrote it again as it was."""
    there = durable.get(state.tp)
    if there is None or not cluster.world.safety.decisions.is_state_by_hand(state.tp):
        return state
    return replace(state, partition_epoch=there.partition_epoch)


def _memory(cluster: CheckedCluster) -> Iterator[str]:
    process = cluster.controllers.get(cluster.active_controller or 0)
    service = None if process is None else process.service
    if service is not None and service.office is not None:
        exempt = cluster.world.safety.exempt
        by_hand = cluster.world.safety.decisions.is_state_by_hand
        waiting, absent = service.queue_size(), cluster.absent
        yield from Memory(service.office, waiting, cluster.durable, exempt, by_hand, absent).faults()


def _text(state: PartitionState | None) -> str:
    if state is None:
        return "nothing"
    where = f"leader epoch {state.leader_epoch}, partition epoch {state.partition_epoch}"
    moving = f" +{state.adding_replicas} -{state.removing_replicas}"
    offline = f", {state.offline_replicas} offline" if state.offline_replicas else ""
    return f"RS {state.replicas}{moving}, leader {state.leader}, ISR {state.isr}{offline}, {where}"


def _live(cluster: CheckedCluster) -> set[int]:
    registered = [cluster.brokers[id_] for id_ in cluster.durable.brokers() if id_ in cluster.brokers]
    return {broker.id for broker in registered if broker.state is ProcessState.RUNNING}


def _present(cluster: CheckedCluster) -> list[int]:
    return [id_ for id_ in cluster.brokers if id_ not in cluster.absent]


def _sound(cluster: CheckedCluster, broker_ids: Iterable[int]) -> list[int]:
    """Return the brokers whose registrations were not damaged on purpose."""
    return [id_ for id_ in broker_ids if not cluster.world.safety.exempt.has(paths.broker(id_))]
