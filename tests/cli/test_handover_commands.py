"""`klamm controller release` and `take-over` as an operator meets them; and Klamm's brokers beside Kafka's."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest
import trio

from klamm.cli.controller_check import CheckedController
from klamm.cli.formats import DRY_RUN
from klamm.cli.handover import NamedTopic, ReleasedOffice, TakenOffice
from klamm.interrupts import INTERRUPTED
from tests.cli.shell import run_klamm
from tests.kit import kafka_registrations
from tests.kit.officer import News, Officer, stand_as_kafka
from transport.metadata import Listener, ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore, ensure_paths
from transport.store.zookeeper import open_zookeeper

OURS = 9001


@pytest.fixture
def address(zookeeper: str, tmp_path: Path) -> str:
    return f"{zookeeper}/handover-{tmp_path.name}"


@pytest.fixture
async def store(address: str) -> AsyncIterator[MetadataStore]:
    """Open a session of a cluster."""
    async with open_zookeeper(address) as session:
        await ensure_paths(session, paths.PERSISTENT)
        yield session


async def until_there(store: MetadataStore, path: str) -> None:
    news = News(store)
    while await store.read([path], watch=True) == [None]:
        await news.wait()


async def interrupted(
    store: MetadataStore, verb: str, address: str, path: str, number: signal.Signals = signal.SIGINT
) -> str:
    """Send a signal, or press Ctrl-C, while a command waits, once a znode is there; return what it said."""
    command = [sys.executable, "-m", "klamm", "controller", verb, "--zookeeper", address]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    await until_there(store, path)
    process.send_signal(number)
    assert process.stdout is not None
    said = b"".join([part async for part in process.stdout]).decode()
    assert await process.wait() == INTERRUPTED, said
    return said


async def test_ctrl_c_leaves_a_release_to_be_completed(
    store: MetadataStore, address: str, nursery: trio.Nursery
) -> None:
    await nursery.start(Officer(store, OURS).run)
    said = await interrupted(store, "release", address, paths.RELEASED)
    lines = (f"cluster at {address}", "the release stands: repeat the command to wait for Kafka's controller\n")
    assert said == "\n".join(lines)
    nursery.start_soon(stand_as_kafka, store)
    done = await run_klamm("controller", "release", "--zookeeper", address, whole=True)
    assert (done.returncode, done.stderr.decode()) == (0, f"cluster at {address}\n")
    assert done.stdout.decode() == "the office is released, and Kafka's controller 3 is in office\n"
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_end_by_a_signal_withdraws_an_order_to_take_over(
    store: MetadataStore, address: str, number: signal.Signals
) -> None:
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"7"), Create(paths.controller_endpoint(OURS))])
    assert await interrupted(store, "take-over", address, paths.TAKE_OVER, number) == f"cluster at {address}\n"
    assert await store.read([paths.TAKE_OVER, paths.RELEASED]) == [None, None]


async def test_what_is_found_on_our_ids_is_listed_in_80_columns(
    store: MetadataStore, address: str, nursery: trio.Nursery
) -> None:
    await nursery.start(Officer(store, OURS).run)
    topic = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((1, OURS))}))
    await store.multi([Create(paths.topic("orders"), topic)])
    nursery.start_soon(stand_as_kafka, store)
    done = await run_klamm("controller", "release", "--zookeeper", address)
    assert done.stdout.decode().splitlines() == [
        "the office is released, and Kafka's controller 3 is in office",
        "",
        "move these partitions to brokers, they have replicas on Klamm's controllers:",
        "topic   partitions",
        "──────────────────",
        "orders  0",
    ]
    nursery.cancel_scope.cancel()


async def test_a_check_is_a_document_with_its_exit_code(store: MetadataStore, address: str) -> None:
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"7")])
    check = ("controller", "check", "--kafka", "--id", str(OURS), "--zookeeper", address)
    done = await run_klamm(*check, "-o", "json")
    found = msgspec.json.decode(done.stdout, type=CheckedController)
    assert (done.returncode, found.exit_code, found.findings[0].weight) == (4, 4, "danger")
    lines = (await run_klamm(*check)).stdout.decode().splitlines()
    assert lines == [f"{finding.weight}: {finding.text}" for finding in found.findings]


async def test_a_dry_run_of_a_release_writes_nothing(store: MetadataStore, address: str, nursery: trio.Nursery) -> None:
    release = ("controller", "release", "--zookeeper", address, "--dry-run")
    done = await run_klamm(*release)
    refusal = "Error: no controller has ever been in office here: there is nothing to release"
    assert (done.returncode, done.stderr.decode().splitlines()[-1]) == (1, refusal)
    await nursery.start(Officer(store, OURS).run)
    topic = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((1, OURS))}))
    await store.multi([Create(paths.topic("orders"), topic)])
    done = await run_klamm(*release, "-o", "json")
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout, type=ReleasedOffice) == ReleasedOffice(
        None, OURS, [NamedTopic("orders", (0,))], is_dry_run=True
    )
    said = (await run_klamm(*release)).stdout.decode()
    assert said.startswith(f"the office can be released, and controller {OURS} would leave it\n")
    assert said.endswith(f"\n{DRY_RUN}\n")
    assert await store.read([paths.RELEASED]) == [None]
    nursery.cancel_scope.cancel()


async def test_a_dry_run_of_taking_over_orders_nothing(store: MetadataStore, address: str) -> None:
    take_over = ("controller", "take-over", "--zookeeper", address, "--dry-run")
    done = await run_klamm(*take_over)
    refusal = "Error: no controller of Klamm's is running: start one with `klamm controller run --kafka`"
    assert (done.returncode, done.stderr.decode().splitlines()[-1]) == (1, refusal)
    await store.multi([Create(paths.CONTROLLER_EPOCH, b"7"), Create(paths.controller_endpoint(OURS))])
    done = await run_klamm(*take_over)
    assert (done.returncode, done.stdout.decode()) == (
        0,
        f"an order to take office can go to controller {OURS}\n{DRY_RUN}\n",
    )
    found = msgspec.json.decode((await run_klamm(*take_over, "-o", "json")).stdout, type=TakenOffice)
    assert found == TakenOffice(None, None, was_in_office=False, candidates=(OURS,), is_dry_run=True)
    assert await store.read([paths.TAKE_OVER, paths.RELEASED]) == [None, None]


@pytest.mark.parametrize("governs", [False, True])
async def test_a_broker_of_ours_stays_away_from_kafkas(
    store: MetadataStore, address: str, tmp_path: Path, governs: bool
) -> None:
    if governs:
        officer = Officer(store, OURS)
        async with trio.open_nursery() as nursery:
            await nursery.start(officer.run)
            nursery.cancel_scope.cancel()
        found = "/controller governs Apache Kafka's brokers here"
    else:
        await kafka_registrations.register(store, 1, Listener("PLAINTEXT", "h", 9092))
        found = "broker 1 is not of this kind of cluster (Apache Kafka's, perhaps)"
    own = ("--id", "5", "--port", "0", "--log-dir", str(tmp_path / "5"))
    done = await run_klamm("broker", "run", *own, "--zookeeper", address)
    remedy = "give --zookeeper HOST:PORT/CHROOT a chroot that nobody else uses"
    assert (done.returncode, done.stderr.decode()) == (1, f"Error: {found}: {remedy}\n")
    assert await store.read([paths.broker(5)]) == [None]


@pytest.mark.parametrize(
    ("options", "is_warned"), [((), True), (("--advertised-listeners", "PLAINTEXT://kafka.example:9093"), False)]
)
async def test_a_controller_that_other_hosts_cannot_reach_says_so(
    store: MetadataStore, address: str, options: Sequence[str], is_warned: bool
) -> None:
    await kafka_registrations.begin_cluster(store)
    command = [sys.executable, "-m", "klamm", "controller", "run", "--kafka", "--id", str(OURS), "--zookeeper", address]
    process = await trio.lowlevel.open_process([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    await until_there(store, paths.OFFICE_LOCK)
    assert process.stdout is not None
    said = b""
    while b"find it at" not in said and (more := await process.stdout.receive_some()):
        said += more
    process.terminate()
    said += b"".join([part async for part in process.stdout])
    await process.wait()
    warning = b"brokers on other hosts cannot reach 127.0.0.1: name an address with --host\n"
    assert (warning in said) is is_warned, said.decode()
