"""Between administrators and the active controller: the cluster at a glance, in counts instead of partitions."""

from __future__ import annotations

from attrs import frozen

from transport.messages.common import BrokerEndpoint, Request


@frozen
class DescribedBroker:
    """A registered broker: where it listens, its broker epoch, and how many partitions it leads and holds."""

    endpoint: BrokerEndpoint
    epoch: int
    leaders: int
    replicas: int
    is_shutting_down: bool = False


@frozen
class DescribeClusterResponse:
    """The cluster as its controller knows it. Counts are of partitions, but for those of topics.

    Offline are those without a leader, new ones included. `quarantined` are the topics and kinds of requests that made
    the controller fail repeatedly and are not processed.
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


@frozen
class DescribeClusterRequest(Request[DescribeClusterResponse]):
    """Ask the active controller how the cluster is (KIP-700, with more in the answer)."""
