"""`klamm reassignment` as processes against a cluster in this process, as an administrator uses it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trio
from attrs import frozen
from click.testing import CliRunner

from controller.admin import move_throttles
from controller.admin.client import AdminClient
from klamm.cli.demo.task_cluster import task_cluster
from klamm.cli.reassignment import reassignment
from tests.cli.shell import Shell, bootstrap_of, register_deaf_broker, run_klamm
from transport.metadata import TopicPartition
from transport.network import TcpNetwork

EXECUTE = ("reassignment", "execute", "--reassignment-json-file")
VERIFY = ("reassignment", "verify", "--reassignment-json-file")
DEAF = 9
INTERRUPTED = 130


@frozen
class Desk:
    """A cluster with a topic of three partitions, and a broker that is registered and does not listen."""

    klamm: Shell
    admin: AdminClient
    place: Path

    def file(self, name: str, *targets: Sequence[int]) -> str:
        """Write the new replicas of partitions 0, 1, 2 to a file; an empty list leaves a partition out."""
        entries = [{"topic": "orders", "partition": p, "replicas": list(t)} for p, t in enumerate(targets) if t]
        path = self.place / name
        path.write_text(json.dumps({"version": 1, "partitions": entries}))
        return str(path)

    async def replicas(self) -> list[list[int]]:
        """Return the replicas of the partitions."""
        described = json.loads(await self.klamm("topic", "describe", "orders", "-o", "json"))
        return [partition["replicas"] for partition in described]

    async def until_only_these_move(self, *partitions: int) -> None:
        """Wait until what can move has moved."""
        while {move.partition for move in await self.admin.list_partition_reassignments()} != {*partitions}:
            await trio.sleep(0.01)

    async def interrupted(self, *arguments: str, stuck: Sequence[int]) -> tuple[int, str]:
        """Run a command, press Ctrl-C when only what is stuck moves; return its exit code and all that it printed."""
        command = [sys.executable, "-m", "klamm", *arguments, "--bootstrap-server", self.klamm.bootstrap]
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        printed = b""
        async for part in process.stdout:
            if b"waits for" in part and b"waits for" not in printed:
                await self.until_only_these_move(*stuck)
                process.send_signal(signal.SIGINT)
            printed += part
        assert b"Traceback" not in printed, printed.decode()
        return await process.wait(), printed.decode()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with task_cluster(tmp_path) as cluster:
        klamm = Shell(await bootstrap_of(cluster.store))
        await klamm("topic", "create", "orders", "--replica-assignment", "1:2:3,2:3:1,3:1:2")
        await register_deaf_broker(cluster.store, DEAF)
        yield Desk(klamm, AdminClient(TcpNetwork(), (), cluster.store, 30), tmp_path)


@pytest.mark.requirement("A1", "A2", "A3", "C3")
async def test_a_file_is_rehearsed_executed_verified_and_rolled_back(desk: Desk) -> None:
    klamm, back = desk.klamm, str(desk.place / "back.json")
    file = desk.file("move.json", (4, 5, 3), (3, 2, 1), (3, 1, 2))
    await klamm("produce", "orders", "--partition", "0", stdin=b"a record\n")
    rehearsed = (await klamm(*EXECUTE, file, "--dry-run")).splitlines()
    assert [" ".join(line.split()) for line in rehearsed[2:5]] == [
        f"orders-0 1,2,3 4,5,3 +4 +5 -1 -2 1 -> 4 {rehearsed[6].removeprefix('To copy: ')}",
        "orders-1 2,3,1 3,2,1 order only 2 0 bytes",
        "orders-2 3,1,2 3,1,2 nothing to do 3 0 bytes",
    ]
    assert rehearsed[5] == "3 partitions: 1 to move, 1 to reorder, 1 with nothing to do"
    assert rehearsed[6] not in {"To copy: 0 bytes", "To copy: unknown"}
    assert await desk.replicas() == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]

    said = await klamm(*VERIFY, file, "-o", "yaml", fails=True)
    assert said == ""
    executed = json.loads(await klamm(*EXECUTE, file, "--rollback-json-file", back, "-o", "json"))
    assert [(item["partition"], item["outcome"], item["replicas"]) for item in executed] == [
        (0, "complete", [4, 5, 3]),
        (1, "complete", [3, 2, 1]),
        (2, "complete", [3, 1, 2]),
    ]
    assert await klamm(*VERIFY, file) == "orders-0: complete\norders-1: complete\norders-2: complete\n"
    exists = (
        f"Error: {back} exists, and may be the rollback of an earlier move: name another with --rollback-json-file\n"
    )
    assert await klamm(*EXECUTE, file, "--rollback-json-file", back, fails=True) == exists

    await klamm(*EXECUTE, back)
    assert await desk.replicas() == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


async def test_verify_names_the_cluster_if_it_lifts_a_throttle_and_a_dry_run_lifts_none(desk: Desk) -> None:
    file, target = desk.file("move.json", (1, 2, 4)), {TopicPartition("orders", 0): (1, 2, 4)}
    await move_throttles.throttle(desk.admin, (await desk.admin.read_metadata()).partitions, target, 1_000_000)

    async def verify(*options: str) -> tuple[int, str, str]:
        at = ("--bootstrap-server", desk.klamm.bootstrap)
        done = await run_klamm(*VERIFY, file, *options, *at, whole=True)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    unmoved = "orders-0: has replicas [1, 2, 3], not [1, 2, 4]\n"
    would_lift = "would lift the throttle of moves that are over: of topic orders and brokers 1, 2, 3, 4\n"
    dry_run = "Nothing was changed: this was a dry run.\n"
    assert await verify("--preserve-throttles") == (1, unmoved, "")
    for _ in range(2):
        assert await verify("--dry-run") == (1, unmoved + dry_run, would_lift)
    code, shown, said = await verify()
    assert (code, shown) == (1, unmoved)
    assert said.startswith("cluster at 127.0.0.1:")
    assert said.endswith("\nthe throttle of moves that are over was lifted\n")
    assert await verify() == (1, unmoved, "")
    assert await verify("--dry-run") == (1, unmoved + dry_run, "")
    refused = "Error: --watch lifts throttles once moves are over, and --dry-run looks once: use only one\n"
    assert (await verify("--dry-run", "--watch"))[2].endswith(refused)


@pytest.mark.requirement("A2", "A3")
async def test_one_bad_target_keeps_all_others_from_beginning(desk: Desk) -> None:
    file = desk.file("move.json", (4, 5, 6), (1, 7))
    for mode in ((), ("--dry-run",)):
        assert await desk.klamm(*EXECUTE, file, *mode, fails=True) == (
            "orders-1: refused: replicas cannot be added on brokers [7], which are not alive\n"
            "none of the 2 moves was begun: correct the file first\n"
        )
    assert await desk.replicas() == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@pytest.mark.requirement("A2", "A11")
async def test_ctrl_c_tells_what_is_complete_and_a_cancel_restores_the_rest(desk: Desk) -> None:
    klamm = desk.klamm
    stuck = desk.file("stuck.json", (1, 2, DEAF), (2, 3, DEAF), (4, 5, 6))
    code, said = await desk.interrupted(*EXECUTE, stuck, stuck=[0, 1])
    assert code == INTERRUPTED
    assert "orders-0 waits for broker 9" in said
    assert "orders-0: not complete, continues by itself: in progress, waits for broker 9" in said
    assert "orders-2: complete" in said
    lines = (await klamm("reassignment", "list")).splitlines()
    assert [line.split()[:4] for line in lines[2:]] == [
        ["orders-0", "1,2,9,3", "9", "3"],
        ["orders-1", "2,3,9,1", "9", "1"],
    ]
    described = await klamm("reassignment", "describe", "--topic", "orders", "--partition", "0")
    assert "waits for     broker 9" in described
    verified = await klamm("reassignment", "verify", "--reassignment-json-file", stuck, fails=True)
    assert verified == ""

    one = await klamm("reassignment", "cancel", "--topic", "orders", "--partition", "0")
    assert one == "orders-0: cancelled, has replicas [1, 2, 3] again\n"
    rest = json.loads(await klamm("reassignment", "cancel", "--all", "-o", "json"))
    assert [(item["partition"], item["outcome"]) for item in rest] == [(1, "cancelled")]
    assert [sorted(replicas) for replicas in await desk.replicas()] == [[1, 2, 3], [1, 2, 3], [4, 5, 6]]
    none = await klamm("reassignment", "cancel", "--reassignment-json-file", stuck, fails=True)
    assert "orders-0: refused: orders-0 is not being reassigned: there is nothing to cancel" in none


@pytest.mark.requirement("A2", "A11")
async def test_ctrl_c_cancels_where_that_is_wished(desk: Desk) -> None:
    stuck = desk.file("stuck.json", (1, 2, DEAF), (), (4, 5, 6))
    code, said = await desk.interrupted(*EXECUTE, stuck, "--cancel-on-interrupt", stuck=[0])
    assert code == INTERRUPTED
    assert said.splitlines()[-3:] == [
        "cancelling 1 of 2 moves; Ctrl-C stops waiting",
        "orders-0: cancelled, has replicas [1, 2, 3] again",
        "orders-2: complete",
    ]
    assert await desk.klamm("reassignment", "list") == "no reassignment is in progress\n"


@pytest.mark.parametrize(
    ("command", "cure"),
    [
        ("execute --no-wait --cancel-on-interrupt", "--no-wait leaves nothing to interrupt"),
        ("cancel", "give either --reassignment-json-file, --topic and --partition, or --all"),
        ("cancel --all --topic orders", "give either --reassignment-json-file, --topic and --partition, or --all"),
        ("describe --partition 1", "--partition needs the topic: name it with --topic"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_with_the_cure(command: str, cure: str, tmp_path: Path) -> None:
    file = tmp_path / "move.json"
    file.write_text("{}")
    more = ["--reassignment-json-file", str(file)] if command.startswith("execute") else []
    done = CliRunner().invoke(reassignment, [*command.split(), *more])
    assert done.exit_code == 2
    assert cure in done.output
