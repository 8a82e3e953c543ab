"""Files that name log directories: what brokers are asked, what is waited for, and what is refused."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest
import trio
from attrs import define, field

from klamm.interrupts import INTERRUPTED
from tests.kafka.scripted_nodes import ScriptedNodes, scripted_nodes
from tests.kafka.test_kafka_admin import NO_MOVES, moving
from tests.kafka.test_kafka_throttles import Settings
from tests.kafka.test_move_records import output
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.alter_partition_reassignments_response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from transport.kafka.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirTopicResult,
)
from transport.kafka.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

TOPIC = "orders"


def end_connection(_: object) -> None:
    """Answer nothing."""


@define
class Directories:
    """The log directories of a broker that obeys: a log is copied by the time that somebody looks `looks` times."""

    at: str | None = "/a"
    copies_to: str | None = None
    looks: int = 1
    refuses: ErrorCode = ErrorCode.NONE
    failed: tuple[str, ...] = ()
    forgets: int = 0
    """How often an order is taken without being carried out."""

    ordered: list[str] = field(factory=list)

    def describe(self, _: kafka.DescribeLogDirsRequest) -> kafka.DescribeLogDirsResponse:
        """Tell of both directories, and go on copying."""
        if self.copies_to is not None:
            self.looks -= 1
        if self.copies_to is not None and self.looks < 0:
            self.at, self.copies_to = self.copies_to, None
        return kafka.DescribeLogDirsResponse(results=tuple(map(self._told, ("/a", "/b"))))

    def _told(self, path: str) -> DescribeLogDirsResult:
        logs = [DescribeLogDirsPartition(0, 10, 0)] if self.at == path else []
        logs += [DescribeLogDirsPartition(0, 5, 5, is_future_key=True)] if self.copies_to == path else []
        topics = (DescribeLogDirsTopic(TOPIC, tuple(logs)),) if logs else ()
        error = ErrorCode.KAFKA_STORAGE_ERROR if path in self.failed else ErrorCode.NONE
        return DescribeLogDirsResult(error, path, () if error else topics)

    def move(self, request: kafka.AlterReplicaLogDirsRequest) -> kafka.AlterReplicaLogDirsResponse:
        """Begin to copy, or remember the directory of a log that is not there."""
        [one] = request.dirs
        self.ordered.append(one.path)
        error = self.refuses
        if error is ErrorCode.NONE and self.at is None:
            error, self.copies_to = ErrorCode.REPLICA_NOT_AVAILABLE, one.path
        elif error is ErrorCode.NONE and self.forgets:
            self.forgets -= 1
        elif error is ErrorCode.NONE and one.path == self.at:
            self.copies_to = None
        elif error is ErrorCode.NONE:
            self.copies_to = one.path
        rows = (AlterReplicaLogDirPartitionResult(0, error),)
        return kafka.AlterReplicaLogDirsResponse(results=(AlterReplicaLogDirTopicResult(TOPIC, rows),))


def script(nodes: ScriptedNodes, **disks: Directories) -> None:
    """Give the topic the replicas {1, 2}, and each broker its directories: `on_1`, `on_2`."""
    begun = (ReassignableTopicResponse(TOPIC, (ReassignablePartitionResponse(0),)),)
    nodes.show(TOPIC, (1, 2))
    for id_, node in nodes.nodes.items():
        disk = disks.get(f"on_{id_}", Directories())
        node.answers[kafka.DescribeConfigsRequest] = Settings().describe
        node.answers[kafka.DescribeLogDirsRequest] = disk.describe
        node.answers[kafka.AlterReplicaLogDirsRequest] = disk.move
        node.answers[kafka.AlterPartitionReassignmentsRequest] = kafka.AlterPartitionReassignmentsResponse(
            responses=begun
        )


def named(folder: Path, *log_dirs: str) -> Path:
    """Write a file that leaves the replicas where they are, in these directories."""
    file = folder / "dirs.json"
    entry = {"topic": TOPIC, "partition": 0, "replicas": [1, 2], "log_dirs": log_dirs}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return file


async def told(nodes: ScriptedNodes, verb: str, file: Path, *words: str, code: int = 0) -> str:
    """Run a command with a file on the nodes, and return all that it prints."""
    with trio.fail_after(60):
        return await output(nodes, verb, "--reassignment-json-file", str(file), *words, code=code)


async def test_a_partition_is_complete_when_its_logs_are_in_their_directories(tmp_path: Path) -> None:
    file = named(tmp_path, "any", "/b")
    async with scripted_nodes(1, 2) as nodes:
        disk = Directories(looks=2)
        script(nodes, on_2=disk)
        text = await told(nodes, "verify", file, code=1)
        assert "orders-0: in progress: broker 2 has its log in /a, not in /b" in text
        text = await told(nodes, "execute", file)
        assert nodes.nodes[1].questions(kafka.AlterReplicaLogDirsRequest) == []
    assert disk.ordered == ["/b"]
    assert '"log_dirs":["/a","/a"]' in text, "the way back"
    assert "0 of 1 logs are in their directories\n1 of 1 logs are in their directories" in text
    assert "orders-0: complete" in text


async def test_a_broker_that_has_forgotten_is_told_again(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2) as nodes:
        disk = Directories(forgets=2)
        script(nodes, on_2=disk)
        text = await told(nodes, "execute", named(tmp_path, "any", "/b"), "--timeout", "2")
    assert disk.ordered == ["/b"] * 3
    assert "orders-0: complete" in text


async def test_what_was_seen_last_is_told_when_no_broker_answers_any_more(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2, 3) as nodes:
        disk, last = Directories(), Directories()
        script(nodes, on_2=disk, on_3=last)

        def describe(request: kafka.DescribeLogDirsRequest) -> kafka.DescribeLogDirsResponse:
            told = disk.describe(request)
            if disk.at == "/b":
                for node in nodes.nodes.values():
                    node.answers |= dict.fromkeys(node.answers, end_connection)
            return told

        nodes.nodes[2].answers[kafka.DescribeLogDirsRequest] = describe
        text = await told(nodes, "execute", named(tmp_path, "any", "/b"), "--timeout", "2")
    assert text.endswith(
        "1 of 1 logs are in their directories\nno broker tells where the logs are: this is where they were seen last\n"
    )
    assert "orders-0: complete\n" in text


async def test_a_throttle_that_cannot_be_lifted_any_more_hides_no_outcome(tmp_path: Path) -> None:
    settings = Settings()
    begun = (ReassignableTopicResponse(TOPIC, (ReassignablePartitionResponse(0),)),)
    file = tmp_path / "moves.json"
    entry = {"topic": TOPIC, "partition": 0, "replicas": [3, 1]}
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    async with scripted_nodes(1, 2, 3) as nodes:
        nodes.show(TOPIC, (1, 2))

        def reassign(_: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
            nodes.show(TOPIC, (3, 1))
            for node in nodes.nodes.values():
                node.answers[kafka.DescribeConfigsRequest] = end_connection
            return kafka.AlterPartitionReassignmentsResponse(responses=begun)

        for node in nodes.nodes.values():
            node.answers.update(settings.answers())
            node.answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        text = await told(nodes, "execute", file, "--throttle", "4000", "--timeout", "2", code=1)
    assert "orders-0: complete\n" in text
    assert "throttles stay, " in text
    assert f": `klamm reassignment verify --reassignment-json-file {file}` lifts those of moves that are over\n" in text


# --- cancelling ---------------------------------------------------------------------------------------------------


NOT_MOVING = (
    ReassignableTopicResponse(TOPIC, (ReassignablePartitionResponse(0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no"),)),
)


def script_copy(nodes: ScriptedNodes, **disks: Directories) -> None:
    """Give brokers their directories, and the partition no move."""
    script(nodes, **disks)
    for node in nodes.nodes.values():
        node.answers[kafka.AlterPartitionReassignmentsRequest] = kafka.AlterPartitionReassignmentsResponse(
            responses=NOT_MOVING
        )


STOPPED = "orders-0: cancelled, broker 2 keeps its log in /a\n"


async def test_a_cancel_stops_the_copies_that_its_file_names(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2) as nodes:
        copied, another = Directories(copies_to="/b", looks=9), Directories(copies_to="/b", looks=9)
        script_copy(nodes, on_2=copied, on_1=another)
        assert await told(nodes, "cancel", named(tmp_path, "/c", "/b")) == STOPPED
        text = await told(nodes, "cancel", named(tmp_path, "/c", "/b"), code=1)
    assert text == "orders-0: refused: no\n"
    assert (copied.ordered, copied.at, copied.copies_to) == (["/a"], "/a", None)
    assert (another.ordered, another.copies_to) == ([], "/b")


@pytest.mark.parametrize("words", [("--topic", TOPIC), ("--topic", TOPIC, "--partition", "0"), ("--all",)])
async def test_a_cancel_without_a_file_stops_all_copies(words: tuple[str, ...]) -> None:
    async with scripted_nodes(1, 2) as nodes:
        disk = Directories(copies_to="/b", looks=9)
        script_copy(nodes, on_2=disk)
        assert await output(nodes, "cancel", *words) == STOPPED
        text = await output(nodes, "cancel", *words, code=int("--all" not in words))
    assert (disk.ordered, disk.copies_to) == (["/a"], None)
    assert "no reassignment" in text or "orders-0: refused: no\n" in text


async def test_a_log_that_was_copied_before_it_could_be_stopped_stays_where_it_is(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2) as nodes:
        disk = Directories(copies_to="/b", looks=1)
        script_copy(nodes, on_2=disk)

        def move(request: kafka.AlterReplicaLogDirsRequest) -> kafka.AlterReplicaLogDirsResponse:
            if disk.copies_to == "/b":
                disk.at, disk.copies_to, disk.looks = "/b", None, 9
            return disk.move(request)

        nodes.nodes[2].answers[kafka.AlterReplicaLogDirsRequest] = move
        text = await told(nodes, "cancel", named(tmp_path, "any", "/b"), code=1)
    assert text == "orders-0: not cancelled in full, broker 2 has already its log in /b\n"
    assert (disk.ordered, disk.at, disk.copies_to) == (["/a", "/b"], "/b", None)


async def test_a_copy_that_cannot_be_stopped_is_named(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2) as nodes:
        disk = Directories(copies_to="/b", looks=9, refuses=ErrorCode.KAFKA_STORAGE_ERROR)
        script_copy(nodes, on_2=disk)
        text = await told(nodes, "cancel", named(tmp_path, "any", "/b"), code=1)
        del nodes.nodes[2]
        unknown = await told(nodes, "cancel", named(tmp_path, "any", "/b"), code=1)
    fault = "the disk or the log directory has failed"
    assert text == f"orders-0: not cancelled in full, broker 2 copies its log from /a to /b: {fault}\n"
    assert unknown == (
        "orders-0: not cancelled in full, the log directories of broker 2 are not known: broker 2 is not alive\n"
    )


async def test_a_move_and_a_copy_are_cancelled_together(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2, 3) as nodes:
        disk = Directories(copies_to="/b", looks=9)
        script(nodes, on_2=disk)
        nodes.show(TOPIC, (3, 1, 2))
        for node in nodes.nodes.values():
            node.answers[kafka.ListPartitionReassignmentsRequest] = moving(3, 1, 2, adding=3, removing=1)

        def reassign(_: kafka.AlterPartitionReassignmentsRequest) -> kafka.AlterPartitionReassignmentsResponse:
            nodes.show(TOPIC, (1, 2))
            for node in nodes.nodes.values():
                node.answers[kafka.ListPartitionReassignmentsRequest] = NO_MOVES
            return kafka.AlterPartitionReassignmentsResponse(
                responses=(ReassignableTopicResponse(TOPIC, (ReassignablePartitionResponse(0),)),)
            )

        nodes.nodes[1].answers[kafka.AlterPartitionReassignmentsRequest] = reassign
        text = await told(nodes, "cancel", named(tmp_path, "any", "/b"))
    order = "perhaps in another order than before"
    assert text == f"orders-0: cancelled, has replicas [1, 2], {order}, broker 2 keeps its log in /a\n"
    assert disk.ordered == ["/a"]


async def test_an_interrupt_stops_the_copies(tmp_path: Path) -> None:
    file = named(tmp_path, "any", "/b")
    async with scripted_nodes(1, 2) as nodes:
        disk = Directories(looks=10_000)
        script(nodes, on_2=disk)
        words = ["execute", "--reassignment-json-file", str(file), "--cancel-on-interrupt"]
        command = [sys.executable, "-m", "klamm", "reassignment", *words, "--bootstrap-server"]
        at = ",".join(f"{host}:{port}" for host, port in nodes.bootstrap)
        process = await trio.lowlevel.open_process([*command, at], stdout=PIPE, stderr=STDOUT)
        assert process.stdout is not None
        said = b""
        with trio.fail_after(60):
            async for part in process.stdout:
                said += part
                if b"0 of 1 logs are in their directories" in said and disk.copies_to == "/b":
                    process.send_signal(signal.SIGINT)
                    break
            said += b"".join([part async for part in process.stdout])
        await process.wait()
    text = said.decode()
    assert text.endswith("cancelling 1 of 1 moves; Ctrl-C stops waiting\n" + STOPPED), text
    assert (process.returncode, disk.ordered, disk.copies_to) == (INTERRUPTED, ["/b", "/a"], None)


# --- beginning ----------------------------------------------------------------------------------------------------


async def test_a_new_replica_gets_its_directory_before_its_move(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2) as nodes:
        script(nodes, on_2=Directories(at=None))
        text = await told(nodes, "execute", named(tmp_path, "any", "/b"), "--timeout", "2")
        asked = [type(one) for one in nodes.nodes[1].asked + nodes.nodes[2].asked]
    assert "orders-0: complete" in text
    assert kafka.AlterPartitionReassignmentsRequest in asked


@pytest.mark.parametrize(
    ("disk", "path", "fault"),
    [
        (Directories(), "/c", "refused: broker 2 has no log directory /c, only /a, /b"),
        (
            Directories(failed=("/b",)),
            "/b",
            "refused: /b of broker 2 cannot be used: the disk or the log directory has failed",
        ),
    ],
    ids=["unknown", "failed"],
)
async def test_a_directory_that_cannot_be_used_is_refused_before_anything(
    disk: Directories, path: str, fault: str, tmp_path: Path
) -> None:
    async with scripted_nodes(1, 2) as nodes:
        script(nodes, on_2=disk)
        text = await told(nodes, "execute", named(tmp_path, "any", path), code=1)
        asked = {type(one) for node in nodes.nodes.values() for one in node.asked}
    assert f"orders-0: {fault}" in text
    assert disk.ordered == []
    assert kafka.AlterPartitionReassignmentsRequest not in asked


async def test_a_broker_that_refuses_keeps_its_partition_from_moving(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2) as nodes:
        script(nodes, on_2=Directories(refuses=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        text = await told(nodes, "execute", named(tmp_path, "any", "/b"), code=1)
        asked = {type(one) for node in nodes.nodes.values() for one in node.asked}
    assert "orders-0: refused: no log directory: broker 2: our principal needs Alter on the cluster" in text
    assert kafka.AlterPartitionReassignmentsRequest not in asked


async def test_a_dry_run_shows_the_directories(tmp_path: Path) -> None:
    async with scripted_nodes(1, 2) as nodes:
        disk = Directories()
        script(nodes, on_2=disk)
        assert "orders-0: broker 2 keeps its log in /b" in await told(
            nodes, "execute", named(tmp_path, "any", "/b"), "--dry-run"
        )
        text = await told(nodes, "execute", named(tmp_path, "any", "/b"), "--dry-run", "-o", "json")
    assert json.loads(text)[0]["log_dirs"] == {"2": "/b"}
    assert disk.ordered == []
