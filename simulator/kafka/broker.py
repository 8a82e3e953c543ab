"""A simulated broker of Apache Kafka's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from broker.config import BrokerConfig
from broker.kit import BrokerHandle, LostReplicas
from broker.replication_throttles import ReplicationThrottles
from broker.topic_configs import TopicConfigs
from simulator.disk import Disk
from simulator.kafka.link import KafkaLink
from simulator.kafka.metadata import KafkaMetadata
from simulator.kafka.registration import KafkaRegistration
from simulator.kafka.releases import Release
from simulator.kafka.requests import KafkaRequests
from simulator.kafka.server import KafkaServer, of_two_protocols
from simulator.kafka.service import KafkaService
from transport.host import Host
from transport.messages import MetadataRequest, MetadataResponse
from transport.network import Network
from transport.store import paths
from transport.store.protocol import MetadataStore, ensure_paths
from transport.store.reachability import until_answered
from transport.wire import Handlers, serve

_CREATED: Final = tuple(path for path in paths.PERSISTENT if not path.startswith("/klamm"))


async def run_kafka_broker(  # noqa: PLR0913  a broker's parts and how it is started
    config: BrokerConfig,
    release: Release,
    make_service: Callable[[BrokerHandle], KafkaService],
    disk: Disk,
    *,
    store: MetadataStore,
    network: Network,
    host: Host,
    task_status: trio.TaskStatus[BrokerHandle] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a broker of a release until cancelled or shut down; reports as started when registered."""
    await until_answered(partial(ensure_paths, store, _CREATED))
    metadata = KafkaMetadata()
    registration = KafkaRegistration(store, host, config, "")
    timeout = config.controller_socket_timeout_ms / 1000
    link = KafkaLink(store, network, host, metadata, registration, timeout, release=release)

    async def describe(request: MetadataRequest) -> MetadataResponse:
        return metadata.describe(request)

    async with trio.open_nursery() as nursery:
        topic_configs = TopicConfigs(store, config, host)
        nursery.start_soon(topic_configs.keep_fresh)
        throttles = ReplicationThrottles(store, config.broker_id, host)
        nursery.start_soon(throttles.keep_fresh, topic_configs.changed)
        handle = BrokerHandle(config, metadata, link, topic_configs, throttles, network, host, nursery, registration)
        service = make_service(handle)
        requests = KafkaRequests(release, service, disk, metadata, registration)
        handle.lost = LostReplicas(store, host, config.broker_id, requests)
        server = KafkaServer(release, requests.handlers())
        both = of_two_protocols(network, server.serve)
        handlers: Handlers = {MetadataRequest: describe, **service.handlers()}
        handle.port = await nursery.start(partial(serve, both, handlers, config.host, config.port))
        await registration.register(handle.port)
        task_status.started(handle)
        await registration.keep()
