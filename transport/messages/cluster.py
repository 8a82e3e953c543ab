"""Messages between administrators and the active controller: a summary of the cluster in counts."""

from __future__ import annotations

from transport.messages.common import BrokerEndpoint, Message, Request


class DescribedBroker(Message, frozen=True):
    """A registered broker: its address, its broker epoch, and the numbers of partitions that it leads and holds.

    A registration that cannot be used has a `fault`. If it never could be, the host is "" and the port 0.
    """

    endpoint: BrokerEndpoint
    epoch: int
    leaders: int
    replicas: int
    is_shutting_down: bool = False
    fault: str = ""


class DescribeClusterResponse(Message, frozen=True):
    """The cluster as its controller knows it. All counts are of partitions, except the two of topics.

    `offline` counts the partitions without a leader, new ones included. `quarantined` lists the topics and kinds of
    requests that made the controller fail repeatedly and are not processed.
    """

    controller: BrokerEndpoint
    controller_epoch: int
    brokers: tuple[DescribedBroker, ...]
    topics: int
    topics_being_deleted: int
    partitions: int
    offline: int
    under_replicated: int
    under_min_isr: int
    without_preferred_leader: int
    being_reassigned: int
    quarantined: tuple[str, ...] = ()


class DescribeClusterRequest(Request[DescribeClusterResponse], frozen=True):
    """Ask the active controller for a summary of the cluster (KIP-700, with more in the response)."""
