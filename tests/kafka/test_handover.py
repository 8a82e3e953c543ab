"""The office goes from a real broker of Apache Kafka to a controller of ours, and back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import klamm
from controller.node.service import ControllerService
from tests.cli.shell import run_klamm
from tests.kafka import jars
from tests.kafka.real_brokers import RealBroker, real_broker
from tests.kafka.releases import brokers_of
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.kafka_office import Writer, read_office
from transport.store.protocol import Create, Delete, MetadataStore
from transport.store.zookeeper import open_zookeeper

BROKER = 1
OURS = 9001
SECONDS = 30


@pytest.fixture
def address(zookeeper: str, tmp_path: Path) -> str:
    return f"{zookeeper}/kafka-{tmp_path.name}"


@pytest.fixture
async def broker(release: str, address: str, tmp_path: Path) -> AsyncIterator[RealBroker]:
    """Run a broker, which is its cluster's controller."""
    kind = brokers_of(release)
    [its_release] = kind.first(1)
    async with real_broker(jars.folder(its_release), address, BROKER, tmp_path, kind.settings) as running:
        async with open_zookeeper(address) as store:
            await until(partial(is_kafkas, store))
        yield running


async def handed(verb: str, address: str, *options: str) -> Any:
    done = await run_klamm("controller", verb, "--zookeeper", address, "-o", "json", *options)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


async def refused(verb: str, address: str, *options: str) -> str:
    done = await run_klamm("controller", verb, "--zookeeper", address, *options)
    assert done.returncode == 1
    return done.stderr.decode().strip()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(SECONDS):
        while not await condition():
            await trio.sleep(0.05)


async def create_topic(store: MetadataStore, name: str, *replicas: int) -> None:
    """Create a topic as an old tool does: whoever is the controller sees it."""
    topic = formats.TopicZnode({0: ReplicaAssignment(replicas)})
    await store.multi([Create(paths.topic(name), formats.encode_topic(topic))])


async def is_led(store: MetadataStore, name: str) -> bool:
    tp = TopicPartition(name, 0)
    [state] = await store.read([paths.partition_state(tp)])
    return state is not None and formats.decode_partition_state(tp, state.data, 0).leader == BROKER


async def is_kafkas(store: MetadataStore) -> bool:
    holder = (await read_office(store)).holder
    return holder is not None and holder.writer is Writer.KAFKA


async def epoch_of(store: MetadataStore) -> int:
    epoch = (await read_office(store)).epoch
    assert epoch is not None
    return epoch


async def resignations(broker: RealBroker, number: int) -> None:
    """Wait until the broker has logged that it resigned as the controller, for the `number`th time."""

    async def has_resigned() -> bool:
        return broker.log.read_text().count(f"[Controller id={BROKER}] Resigned") >= number

    await until(has_resigned)


@asynccontextmanager
async def our_controller(address: str) -> AsyncIterator[ControllerService]:
    """Run a controller of ours in this process until the end of the block."""
    config = klamm.ControllerConfig(OURS, zookeeper_connect=address, kafka=True)
    async with trio.open_nursery() as nursery:
        service: ControllerService = await nursery.start(klamm.run, config)
        yield service
        nursery.cancel_scope.cancel()


async def test_the_office_is_taken_from_a_broker_and_given_back(broker: RealBroker, address: str) -> None:
    async with open_zookeeper(address) as store:
        before = await epoch_of(store)
        await create_topic(store, "old", BROKER)
        await until(partial(is_led, store, "old"))
        async with our_controller(address) as service:
            foreign = "Error: controller 1 of Kafka's own is in office: there is nothing to release"
            assert await refused("release", address) == foreign
            taken = await handed("take-over", address)
            assert taken == {
                "controller": OURS,
                "epoch": before + 1,
                "was_in_office": False,
                "findings": [],
                "forced": False,
                "candidates": [],
                "is_dry_run": False,
            }
            assert service.is_active
            await resignations(broker, 1)
            await create_topic(store, "new", BROKER)
            await until(partial(is_led, store, "new"))
            assert await is_led(store, "old")
        # Nobody of ours is alive, and the broker stays away.
        await create_topic(store, "auto", BROKER, OURS)
        assert (await read_office(store)).lock is None
        given = await handed("release", address)
        topics = [{"topic": "auto", "partitions": [0]}]
        office = {"kafka_controller": BROKER, "released": OURS, "topics_that_name_it": topics}
        assert given == office | {"is_dry_run": False}
        await until(partial(is_led, store, "auto"))
        assert await epoch_of(store) == before + 2
        none = "Error: no controller of Klamm's is running: start one with `klamm controller run --kafka`"
        assert await refused("take-over", address) == none


async def test_a_controller_that_an_operator_deletes_goes_to_a_broker(broker: RealBroker, address: str) -> None:
    async with open_zookeeper(address) as store, our_controller(address) as service:
        await handed("take-over", address)
        await resignations(broker, 1)
        await store.multi([Delete(paths.CONTROLLER)])
        await until(partial(is_kafkas, store))

        async def is_released() -> bool:
            return "the office was released: `klamm" in service.readiness().reason

        await until(is_released)
        assert not service.is_active
        znodes = await read_office(store)
        assert (znodes.lock, znodes.is_released) == (None, True)
