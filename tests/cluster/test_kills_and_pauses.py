"""Kills and pauses of real processes for some seconds, and tests of the long run's checks.

`python -m tests.cluster.kills_and_pauses` is the long run; `make soak` does it.
"""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from attrs import evolve
from msgspec.structs import replace

from broker.reference.log_dir import TOPIC_ID_FILE
from controller.admin.client import AdminClient
from tests.cluster.kills_and_pauses import checks
from tests.cluster.kills_and_pauses.campaign import SKIPPED, Campaign, run
from tests.cluster.kills_and_pauses.chores import Chores
from tests.cluster.kills_and_pauses.load import Batch, Load, record
from tests.cluster.kills_and_pauses.nodes import ZOOKEEPER, Node, Nodes, broker_name
from tests.cluster.kills_and_pauses.picture import Picture, on_disk
from tests.cluster.kills_and_pauses.schedule import ACTIVE, MOST_BROKERS_AWAY, ONLY_PAUSED, Fault, Kind, draw
from transport.child_process import spawn
from transport.messages import BrokerEndpoint, MetadataResponse, PartitionState, Record
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper

SESSION_MS: Final = 2_000
SHORT: Final = (
    Fault(0.5, ACTIVE, Kind.PAUSE, 4),
    Fault(0.5, broker_name(1), Kind.KILL, 1),
    Fault(2, broker_name(2), Kind.PAUSE, 1),
    Fault(2, ZOOKEEPER, Kind.PAUSE, 1),
    Fault(4, broker_name(3), Kind.TERM, 0),
    Fault(5, broker_name(4), Kind.PAUSE, 4),
    Fault(6, ACTIVE, Kind.KILL, 0),
    Fault(12, ZOOKEEPER, Kind.KILL, 1),
)


@pytest.mark.soak
@pytest.mark.requirement("D1", "D5", "D7", "E1")
async def test_nothing_is_lost_when_processes_are_killed_and_paused(zookeeper: str, tmp_path: Path) -> None:
    assert zookeeper, "the fixture tells that there is a Java to run a ZooKeeper that goes away"
    campaign = await run(tmp_path, SHORT, random.Random(1), SESSION_MS)
    assert campaign.all_faults() == []
    assert campaign.happened.total() == len(SHORT)
    assert campaign.happened[SKIPPED] == 0
    assert campaign.settled_after is not None
    assert campaign.read_back >= campaign.load.total() > 0
    assert campaign.chores.answers.total() > 0
    assert campaign.epoch > 1


# --- what is drawn ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_schedule_leaves_a_quorum(seed: int) -> None:
    faults = draw(random.Random(seed), 900, 4)
    assert faults == draw(random.Random(seed), 900, 4)
    assert len(faults) > 150
    assert {(fault.node in ONLY_PAUSED, fault.kind) for fault in faults} == {
        *((False, kind) for kind in Kind),
        (True, Kind.PAUSE),
    }
    for fault in faults:
        away = [other.node for other in faults if other.at <= fault.at <= other.at + other.seconds]
        assert len(away) == len(set(away))
        assert sum(name.startswith("broker") for name in away) <= MOST_BROKERS_AWAY
        assert fault.at + fault.seconds <= 900


# --- records ----------------------------------------------------------------------------------------------------

TP = TopicPartition("steady", 0)
BATCHES = (Batch(0, 0, 2), Batch(4, 2, 2))
READ = tuple(record(TP, number) for number in (0, 1, 0, 1, 2, 3, 9))
"""The first batch was sent twice, and the last record was never acknowledged."""


def test_records_may_be_there_twice_and_unacknowledged() -> None:
    assert checks.record_faults(TP, BATCHES, READ) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (READ[:5], "1 acknowledged records are lost: steady-0 3"),
        ((*READ[:4], *READ[6:]), "2 acknowledged records are lost: steady-0 2, steady-0 3"),
        ((READ[5], *READ[1:5]), "2 records are not where they were acknowledged: steady-0 0 at offset 0"),
        (READ[1:], "4 records are not where they were acknowledged: steady-0 0 at offset 0"),
        ((*READ[:4], READ[5], READ[4]), "2 records are not where"),
        ((), "4 acknowledged records are lost"),
    ],
)
def test_a_record_that_is_lost_or_elsewhere_is_found(values: Sequence[bytes], said: str) -> None:
    assert said in " ".join(checks.record_faults(TP, BATCHES, values))


def test_offsets_that_go_back_are_found() -> None:
    [fault] = checks.record_faults(TP, (Batch(2, 0, 2), Batch(0, 2, 2)), [record(TP, n) for n in (2, 3, 0, 1)])
    assert "stands before" in fault


def test_logs_that_differ_are_found() -> None:
    log = (Record(0, b"a"), Record(1, b"b"))
    assert checks.differing_logs(TP, {1: log, 2: log}) == []
    for other in (log[:1], (log[0], Record(2, b"b")), (log[0], Record(1, b"c"))):
        assert checks.differing_logs(TP, {1: log, 2: other, 3: log})


# --- logs and exits ---------------------------------------------------------------------------------------------

PLAIN = """\
10:00:00.1 [info] registered
Traceback (most recent call last):
  File "a.py", line 1, in f
    g()
    ~^^
KeyError: 'x'
10:00:00.2 [info] more
"""
GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in f
  |     g()
  | ExceptionGroup: Exceptions from Trio nursery (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "b.py", line 1, in g
    | KeyError: 'x'
    +------------------------------------
"""


def test_a_traceback_is_found() -> None:
    assert checks.crashes("broker-1", "10:00:00.1 [error] the last call was refused\n") == []
    assert checks.crashes("broker-1", PLAIN * 2) == ["broker-1 logged 2 x a traceback: KeyError: 'x'"]
    assert [line.partition(": ")[2] for line in checks.crashes("broker-1", GROUP)] == [
        "ExceptionGroup: Exceptions from Trio nursery (1 sub-exception)",
        "KeyError: 'x'",
    ]
    assert checks.crashes("broker-1", "Fatal Python error: _enter_buffered_busy\n\n")


@pytest.mark.parametrize(
    ("code", "said", "told", "is_right"),
    [
        (0, "broker 1 listens on h:1\n", signal.SIGTERM, True),
        (-15, "", signal.SIGTERM, True),  # it had not started yet
        (-15, "broker 1 listens on h:1\n", signal.SIGTERM, False),
        (1, "broker 1 listens on h:1\nError: why\n", signal.SIGTERM, False),
        (None, "broker 1 listens on h:1\n", signal.SIGTERM, False),
        (0, "broker 1 listens on h:1\n", None, False),
        (1, "Error: why\n", None, False),
        (-6, "", None, False),
    ],
)
def test_an_exit_is_judged(code: int | None, said: str, told: signal.Signals | None, *, is_right: bool) -> None:
    fault = checks.exit_fault("broker-1", code, said, told)
    assert (fault is None) is is_right
    if fault is not None and "why" in said:
        assert "Error: why" in fault


async def test_a_process_that_ends_by_itself_is_noticed_and_started_again(tmp_path: Path) -> None:
    log = tmp_path / "broker-1.log"
    dying = Node("broker-1", log, lambda: spawn([sys.executable, "-c", "raise SystemExit('Error: why')"], log))
    async with trio.open_nursery() as nursery, MemoryZooKeeper(lambda: 0).session() as store:
        nodes = Nodes(tmp_path, SESSION_MS)
        nodes.by_name = {dying.name: dying}
        load = Load(nursery, ())
        campaign = Campaign(nodes, load, Chores(AdminClient(TcpNetwork(), (), store, 1), load, random.Random(1)), store)
        dying.start()
        nursery.start_soon(campaign.watch)
        while dying.lives < 2:
            await trio.sleep(0.05)
        nursery.cancel_scope.cancel()
    nodes.end()
    assert campaign.all_faults() == ["broker-1 ended by itself with code 1; its last words: Error: why"]


async def test_a_process_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cluster.kills_and_pauses.nodes.STOP_SECONDS", 0.2)
    log = tmp_path / "broker-1.log"
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    node = Node("broker-1", log, lambda: spawn([sys.executable, "-c", deaf], log))
    node.start()
    while "deaf" not in node.said():
        await trio.sleep(0.05)
    assert await node.stop() is None
    assert node.process.returncode == -signal.SIGKILL


# --- the cluster at its end -------------------------------------------------------------------------------------

STATE = PartitionState("steady", "id-1", 0, 3, 1, 7, (2, 1), 9, (1, 2))
ENDPOINTS = {id_: BrokerEndpoint(id_, "127.0.0.1", 9000 + id_) for id_ in (1, 2, 3)}
METADATA = MetadataResponse(BrokerEndpoint(1001, "127.0.0.1", 9), 3, tuple(ENDPOINTS.values()), (STATE,))
SETTLED = Picture(
    1001,
    3,
    ENDPOINTS,
    {TP: STATE},
    (),
    dict.fromkeys((1, 2, 3), METADATA),
    {1: {"steady-0": "id-1"}, 2: {"steady-0": "id-1"}, 3: {}},
)


def with_state(**changes: Any) -> Picture:
    """Return the picture with another state of the partition, which all brokers have heard of."""
    state = replace(STATE, **changes)
    metadata = replace(METADATA, partitions=(state,))
    return evolve(SETTLED, states={TP: state}, metadata=dict.fromkeys((1, 2, 3), metadata))


def with_metadata(**changes: Any) -> Picture:
    """Return the picture with another answer of broker 2."""
    return evolve(SETTLED, metadata={**SETTLED.metadata, 2: replace(METADATA, **changes)})


def with_disk(broker_id: int, disk: Mapping[str, str]) -> Picture:
    return evolve(SETTLED, disks={**SETTLED.disks, broker_id: disk})


def test_a_settled_cluster_is_taken_for_one() -> None:
    assert checks.unsettled(SETTLED, (1, 2, 3)) == []


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        (evolve(SETTLED, pending=["a stray: id-1:steady:0:3"]), "a stray"),
        (evolve(SETTLED, brokers={1: ENDPOINTS[1], 2: ENDPOINTS[2]}), "[1, 2] are registered instead of [1, 2, 3]"),
        (evolve(SETTLED, controller=None), "nobody is in office"),
        (with_state(leader=-1), "led by -1"),
        (with_state(isr=(1,)), "ISR [1] of replicas [1, 2]"),
        (with_state(adding_replicas=(2,)), "being moved: +[2] -[]"),
        (with_state(removing_replicas=(1,)), "being moved: +[] -[1]"),
        (evolve(SETTLED, metadata={1: METADATA, 3: METADATA}), "broker 2 does not answer"),
        (with_metadata(controller_epoch=2), "broker 2 takes 1001 with epoch 2 for the controller"),
        (with_metadata(controller=None), "broker 2 takes nobody"),
        (with_metadata(brokers=METADATA.brokers[:2]), "broker 2 takes [1, 2] for the live brokers"),
        (with_metadata(partitions=()), "broker 2 knows other things than ZooKeeper of steady-0"),
        (with_metadata(partitions=(replace(STATE, partition_epoch=8),)), "of steady-0"),
        (with_metadata(partitions=(STATE, replace(STATE, topic="gone"))), "of gone-0"),
        (with_disk(3, {"steady-0": "id-1"}), "broker 3 has on its disk what it should not: steady-0"),
        (with_disk(3, {"gone-0": "id-0"}), "gone-0"),
        (with_disk(1, {"steady-0": "id-1", "gone-0.deleted": "id-0"}), "gone-0.deleted"),
        (with_disk(1, {"steady-0": "id-0"}), "broker 1 has on its disk"),
        (with_disk(1, {}), "broker 1 lacks on its disk steady-0"),
    ],
)
def test_what_is_not_settled_is_found(picture: Picture, said: str) -> None:
    assert said in " ".join(checks.unsettled(picture, (1, 2, 3)))


def test_a_stray_on_a_disk_is_seen(tmp_path: Path) -> None:
    for name, topic_id in (("steady-0", "id-1"), ("gone-1.deleted", None)):
        (tmp_path / name).mkdir()
        if topic_id is not None:
            (tmp_path / name / TOPIC_ID_FILE).write_text(topic_id)
    (tmp_path / "meta.properties").touch()
    assert on_disk(tmp_path) == {"steady-0": "id-1", "gone-1.deleted": ""}
