"""The size and the configuration of a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from attrs import Factory, field, frozen

from broker.kit import BrokerHandle
from broker.service import Service
from simulator.kafka.releases import RELEASES, Release
from transport.messages import Api
from transport.store.limits import DEFAULT_MAX_BUFFER, RequestLimits

PORT: Final = 9092
"""The port on which every broker and controller listens."""

KAFKA_PORT: Final = 9093
"""The port on which every controller listens for brokers of Apache Kafka's."""

CONTROLLERS: Final = range(101, 200)
"""The ids reserved for controllers."""


def _in_order(ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(ids))


@frozen
class Settings:
    """The cluster at the start of a simulation. Times are virtual seconds."""

    brokers: int = 3
    """Number of brokers; their ids are 1, 2, ..."""

    controllers: int = 2
    """Number of controllers; their ids are 101, 102, ..."""

    servers: int = 1
    """Servers of the ZooKeeper ensemble; all but the first may lag behind."""

    racks: tuple[str, ...] = ()
    """Broker n is in the rack at index n modulo their number; if empty, brokers have no rack."""

    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    """Whether a replica outside the ISR may lead when no member of the ISR can."""

    leader_rebalance_interval: int | None = None
    """Interval at which controllers return leadership to the preferred leaders; None for never, so that leaders stay
    where a script has put them."""

    session_timeout: float = 6.0
    request_timeout: float = 5.0
    """The timeout of requests on the controllers' channels, and of the socket."""

    controller_timeout: float = 30.0
    """The timeout of the brokers' requests to the controller."""

    replica_lag_time: float = 10.0
    fetch_wait: float = 5.0
    """Time that a follower's fetch waits at the leader for data."""

    fetch_timeout: float = 30.0
    """Additional time that a follower waits for the answer before it reconnects."""

    fetch_bytes: int = 1024 * 1024
    latency: float = 0.001
    """Latency of each network link, one way."""

    bytes_per_second: float = float("inf")
    """Bandwidth of each network link, one way; with `fetch_bytes`, it determines how fast a follower catches up."""

    store_latency: float = 0.001
    jute_maxbuffer: int = DEFAULT_MAX_BUFFER
    """The largest request that the ZooKeeper ensemble accepts, in bytes, as the controllers know."""

    chunk_operations: int = field(default=RequestLimits().operations, repr=False)
    """The most operations that controllers commit together, where they need not be."""

    service: Callable[[BrokerHandle], Service] | None = None
    """Makes the service of each broker; None for the reference service. Each start of a broker makes a new one, so
    anything that must survive a crash has to be kept outside."""

    own_apis: Sequence[Api] = ()
    """Apis that `service` answers in addition to ours; see `run_broker`."""

    delete_topic_enable: bool = True
    """Whether controllers let topics be deleted."""

    releases: tuple[str, ...] = field(default=(), repr=False)
    """If any, the brokers are Apache Kafka's: broker n is of the release at index n modulo their number."""

    first_controller: int | None = field(default=None)
    """The controller that starts first, and so is active at first; None if all start together."""

    broker_ids: tuple[int, ...] = field(
        default=Factory(lambda settings: tuple(range(1, settings.brokers + 1)), takes_self=True),
        converter=_in_order,
        repr=False,
    )
    """The ids of the brokers, in order; if given, they replace `brokers`."""

    @broker_ids.validator
    def _check_broker_ids(self, _: object, ids: tuple[int, ...]) -> None:
        reserved = [id_ for id_ in ids if id_ in CONTROLLERS]
        if reserved:
            raise ValueError(
                f"broker id {reserved[0]} is reserved: {CONTROLLERS[0]} to {CONTROLLERS[-1]} are controllers"
            )
        if len(set(ids)) < len(ids) or min(ids, default=-1) < 0:
            raise ValueError("broker_ids are one or more different numbers from 0")

    @releases.validator
    def _check_releases(self, _: object, names: tuple[str, ...]) -> None:
        unknown = [name for name in names if name not in RELEASES]
        if unknown:
            raise ValueError(f"release {unknown[0]} is not simulated: write some of {', '.join(RELEASES)}")

    @first_controller.validator
    def _check_first_controller(self, _: object, id_: int | None) -> None:
        if id_ is not None and id_ not in self.controller_ids:
            raise ValueError(f"first_controller {id_} is not a controller: write one of {self.controller_ids}")

    @property
    def controller_ids(self) -> tuple[int, ...]:
        """The ids of the controllers, in order."""
        return tuple(range(101, 101 + self.controllers))

    @property
    def is_kafkas(self) -> bool:
        """Whether the brokers are Apache Kafka's."""
        return bool(self.releases)

    def release(self, broker_id: int) -> Release:
        """Return the release of a broker of Kafka's."""
        return RELEASES[self.releases[broker_id % len(self.releases)]]

    def rack(self, broker_id: int) -> str | None:
        """Return the rack of a broker."""
        return self.racks[broker_id % len(self.racks)] if self.racks else None


def links_of(some: Iterable[int], others: Sequence[int], *, one_way: bool) -> list[tuple[str, str]]:
    """Return the links from the hosts of `some` nodes to those of `others` and, unless `one_way`, then those back."""
    links = [(host_of(a), host_of(b)) for a in some for b in others]
    return links if one_way else [*links, *((b, a) for a, b in links)]


def host_of(node_id: int) -> str:
    """Return the name of the host on which a broker or a controller runs."""
    return f"controller-{node_id}" if node_id in CONTROLLERS else f"broker-{node_id}"
