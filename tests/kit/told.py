"""Orders to brokers about one partition each, and publications made of one."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from controller.channels.backlog import BrokerBacklog
from controller.channels.blocks import Orders, Stops
from controller.model.rounds import Publication, TellLeaderAndIsr, TellMetadata, TellStopReplica
from transport.messages import LeaderAndIsrPartition, PartitionState, StopReplicaPartition
from transport.messages.shared import SharedRows


@frozen
class Order:
    """An order to brokers to lead or follow a partition."""

    brokers: tuple[int, ...]
    state: PartitionState
    is_new: bool = False


@frozen
class Stop:
    """An order to brokers to stop their replica of a partition."""

    brokers: tuple[int, ...]
    partition: StopReplicaPartition


Single = Order | Stop | TellMetadata


def singly(publication: Publication | Single) -> Iterable[Single]:
    """Divide a publication into one order for each partition. Metadata stay whole."""
    match publication:
        case TellLeaderAndIsr(recipients=recipients, states=states, is_new=is_new):
            return [Order(brokers, state, is_new) for brokers, state in zip(recipients, states, strict=True)]
        case TellStopReplica(recipients=recipients, partitions=partitions):
            return list(map(Stop, recipients, partitions))
        case _:
            return [publication]


def tell_order(brokers: tuple[int, ...], state: PartitionState, *, is_new: bool = False) -> TellLeaderAndIsr:
    """Return the publication about one partition to lead or follow."""
    return TellLeaderAndIsr([brokers], [state], is_new)


def tell_stop(brokers: tuple[int, ...], partition: StopReplicaPartition) -> TellStopReplica:
    """Return the publication about one replica to stop."""
    return TellStopReplica([brokers], [partition])


def add_singly(backlog: BrokerBacklog, *publications: Publication | Single) -> None:
    """Let publications wait for a broker, one partition at a time."""
    for publication in publications:
        for each in singly(publication):
            match each:
                case Order(state=state, is_new=is_new):
                    backlog.add(Orders.of([SharedRows((LeaderAndIsrPartition(state, is_new),))]))
                case Stop(partition=partition):
                    backlog.add(Stops.of([SharedRows((partition,))]))
                case TellMetadata():
                    backlog.add(each)
