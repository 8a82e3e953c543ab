"""The display while moves are in progress: figures, stalled moves with their reason, and on a pipe only news."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence

import pytest
import trio
from attrs import evolve, field, frozen
from msgspec.structs import replace
from rich.console import Console

from controller.admin.active_controller import ClusterUnreachable
from controller.admin.client import AdminClient
from controller.admin.moves import MoveStatus, MoveWatch
from controller.admin.reassignments import Reassignment, ReassignmentDescriptions
from klamm.cli.reassignment.watching import FEW, NAMED, News, figures, panel, stalled_lines
from transport.messages import (
    UNKNOWN,
    UNTHROTTLED,
    DescribeReassignmentsResponse,
    MetadataResponse,
    PartitionState,
    ReassignmentDescription,
    ReplicaProgress,
)
from transport.metadata import TopicPartition
from transport.network import TcpNetwork

NOW_MS = 1_000_000
T0 = TopicPartition("orders", 0)
TARGETS = {TopicPartition("orders", p): (3,) for p in range(2 * FEW)}


def move(partition: int = 0, *, has: int = UNKNOWN, of: int = UNKNOWN, stalled_ms: int = UNKNOWN, rate: int = UNKNOWN,
         in_sync: bool = False, waits_for: str = "") -> ReassignmentDescription:  # fmt: skip
    progress = (ReplicaProgress(3, log_bytes=has, leader_bytes=of, in_sync=in_sync),)
    since = UNKNOWN if stalled_ms == UNKNOWN else NOW_MS - stalled_ms
    return ReassignmentDescription(
        "orders", partition, 7, 0, 1, UNTHROTTLED, (3, 1), (3,), (1,), (1,), (3,), progress,
        waits_for=waits_for, rate=rate, stalled_since_ms=since,
    )  # fmt: skip


def status(*ongoing: ReassignmentDescription, ended: int = 0, copied: int = 0, to_copy: int = 0, rate: int = UNKNOWN,
           left_s: int = UNKNOWN) -> MoveStatus:  # fmt: skip
    over = dict.fromkeys(list(TARGETS)[-ended:] if ended else [], (3,))
    eta_ms = UNKNOWN if left_s == UNKNOWN else left_s * 1000
    return MoveStatus(TARGETS, over, ongoing, copied, to_copy, rate, eta_ms)


def shown(seen: MoveStatus, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(panel(seen, NOW_MS))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


# --- on a terminal ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("A2", "A9")
def test_a_terminal_of_80_columns_shows_how_far_it_is_and_names_what_is_stalled() -> None:
    slow = move(0, has=40, of=100, rate=12_000_000, waits_for="broker 3 to copy")
    stuck = move(1, stalled_ms=90_000, waits_for="broker 3, which is not alive")
    lines = shown(
        status(slow, stuck, ended=5, copied=1_200_000_000, to_copy=5_000_000_000, rate=12_000_000, left_s=316)
    )
    assert len(lines) == 2
    assert lines[0].startswith("moved 5/20 ━")
    assert lines[0].endswith(" 1.2 GB of 5.0 GB, 12.0 MB/s, 5 min 16 s left")
    assert lines[1].rstrip() == "orders-1 stalled for 1 min 30 s: waits for broker 3, which is not alive"
    assert max(map(len, lines)) <= 80


def test_while_nothing_is_known_of_bytes_the_bar_counts_partitions() -> None:
    lines = shown(status(move(0), ended=10))
    assert lines[0].startswith("moved 10/20 ━")
    assert "left" not in lines[0]
    assert lines[1].rstrip() == "orders-0 waits for broker 3 to join the ISR"


def test_many_stalled_moves_are_counted() -> None:
    stuck = [move(p, stalled_ms=1000) for p in range(NAMED + 3)]
    lines = stalled_lines(status(*stuck), NOW_MS)
    assert len(lines) == NAMED + 1
    assert lines[-1] == "and 3 more are stalled: see `klamm reassignment describe`"


def test_a_large_move_fits_the_terminal_as_well() -> None:
    targets = dict.fromkeys([TopicPartition("t", p) for p in range(10_000)], (3,))
    seen = MoveStatus(targets, {}, (move(),), 999_900_000_000, 99_000_000_000_000, 999_000_000, 98_099_000)
    [line, _] = shown(seen)
    assert line.startswith("moved 0/10,000 ")
    assert line.endswith("1 d 3 h left")
    assert len(line) == 80


def test_what_is_not_known_is_not_shown() -> None:
    assert figures(status(move())) == ""
    assert figures(status(move(), copied=1, to_copy=2, rate=0)) == "1 byte of 2 bytes"


# --- on a pipe --------------------------------------------------------------------------------------------------


def few(*ongoing: ReassignmentDescription) -> MoveStatus:
    return MoveStatus({T0: (3,)}, {}, ongoing, 0, 0)


@pytest.mark.requirement("A2", "A9")
def test_a_pipe_gets_a_line_only_when_there_is_news() -> None:
    news = News()
    waiting = ["orders-0 waits for broker 3: 1.2 GB and 12 records behind"]
    first = move(waits_for="broker 3: 1.2 GB and 12 records behind")
    assert news.lines(few(first), 1, NOW_MS) == waiting
    assert news.lines(few(move(waits_for="broker 3: 900 MB and 9 records behind")), 2, NOW_MS) == []
    stuck = move(stalled_ms=5_000, waits_for="broker 3, which is not alive")
    assert news.lines(few(stuck), 3, NOW_MS) == ["orders-0 stalled for 5 s: waits for broker 3, which is not alive"]
    assert news.lines(few(stuck), 4, NOW_MS + 1000) == []
    changed = replace(stuck, waits_for="broker 3 to fetch")
    assert news.lines(few(changed), 5, NOW_MS) == ["orders-0 stalled for 5 s: waits for broker 3 to fetch"]
    assert news.lines(few(move(has=1, of=2)), 6, NOW_MS) == ["orders-0 waits for broker 3 to join the ISR"]
    assert news.lines(evolve(few(), setbacks=("orders-0 has less",)), 7, NOW_MS) == ["orders-0 has less"]


def test_a_pipe_hears_of_each_tenth_but_not_too_often() -> None:
    news = News()
    assert news.lines(status(move()), 100, NOW_MS) == []
    assert news.lines(status(move(), ended=2), 105, NOW_MS) == []
    said = news.lines(status(move(), ended=2, copied=50_000, to_copy=100_000, rate=1000, left_s=50), 110, NOW_MS)
    assert said == ["2 of 20 partitions moved, 50.0 kB of 100.0 kB, 1.0 kB/s, 50 s left"]
    assert news.lines(status(move(), ended=3, copied=50_000, to_copy=100_000), 200, NOW_MS) == []
    assert news.lines(status(ended=20, copied=1, to_copy=1), 300, NOW_MS) == []


def test_a_terminal_without_bars_hears_of_other_figures_every_few_seconds() -> None:
    news = News(is_watched=True)
    assert news.lines(status(move()), 100, NOW_MS) == []
    said = news.lines(status(move(), copied=1_000, to_copy=100_000), 105, NOW_MS)
    assert said == ["0 of 20 partitions moved, 1.0 kB of 100.0 kB"]
    assert news.lines(status(move(), copied=2_000, to_copy=100_000), 109, NOW_MS) == []
    assert news.lines(status(move(), copied=1_000, to_copy=100_000), 110, NOW_MS) == []
    said = news.lines(status(move(), copied=3_000, to_copy=100_000), 111, NOW_MS)
    assert said == ["0 of 20 partitions moved, 3.0 kB of 100.0 kB"]


def test_of_many_newly_stalled_moves_a_pipe_gets_a_few_lines() -> None:
    lines = News().lines(status(*(move(p, stalled_ms=0) for p in range(FEW + 2))), 1, NOW_MS)
    assert lines[NAMED:] == [f"and {FEW + 2 - NAMED} more are stalled"]


# --- from one look to the next ----------------------------------------------------------------------------------


@frozen
class ScriptedAdmin(AdminClient):
    """Answers from a script: what is under way at each look, and then which replicas the partitions have."""

    looks: list[DescribeReassignmentsResponse | Exception] = field(factory=list)
    replicas: dict[int, tuple[int, ...]] = field(factory=dict)

    async def read_metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        states = [
            PartitionState("orders", "id", p, 1, 1, 1, (1,), 1, replicas, (3,) if len(replicas) > 1 else ())
            for p, replicas in self.replicas.items()
            if topics == ["orders"]
        ]
        return MetadataResponse(None, 1, (), tuple(states))

    async def describe_reassignments(
        self, reassignments: Collection[Reassignment] | None = None
    ) -> ReassignmentDescriptions:
        look = self.looks.pop(0)
        if isinstance(look, Exception):
            raise look
        return ReassignmentDescriptions.of(look, reassignments)

    def then(self, *ongoing: ReassignmentDescription, rate: int = UNKNOWN, eta_ms: int = UNKNOWN) -> None:
        """Let this be under way at the next look."""
        self.looks.append(DescribeReassignmentsResponse(ongoing, rate=rate, eta_ms=eta_ms))


T1 = TopicPartition("orders", 1)


@pytest.fixture
def admin() -> ScriptedAdmin:
    return ScriptedAdmin(TcpNetwork(), (), None, 1)


def watching(admin: ScriptedAdmin, *partitions: TopicPartition) -> MoveWatch:
    return MoveWatch(admin, dict.fromkeys(partitions, (3,)))


async def test_bytes_of_a_finished_move_count_in_full_and_what_is_over_stays_over(admin: ScriptedAdmin) -> None:
    watch = watching(admin, T0, T1)
    admin.then(move(0, has=40, of=100), move(1, has=10, of=100))
    admin.then(move(1, has=20, of=100))
    admin.then(move(0, has=0, of=100), move(1, in_sync=True, of=100))
    admin.then()
    admin.replicas.update({0: (3,), 1: (3, 1)})
    seen = await watch.look()
    assert (seen.copied, seen.to_copy, dict(seen.ended)) == (50, 200, {})
    seen = await watch.look()
    assert (seen.copied, seen.to_copy, dict(seen.ended)) == (120, 200, {T0: (3,)})
    seen = await watch.look()
    assert (seen.copied, seen.to_copy, dict(seen.ended)) == (200, 200, {T0: (3,)})
    assert await watch.look() == evolve(seen, ongoing=()), "the metadata say that it moves: it is not over"
    admin.then()
    admin.replicas[1] = (3,)
    assert dict((await watch.look()).ended) == {T0: (3,), T1: (3,)}


async def test_what_nobody_can_tell_at_the_moment_is_as_it_was(admin: ScriptedAdmin) -> None:
    watch = watching(admin, T0)
    admin.then(move(has=90, of=100))
    admin.then(move())
    assert [(await watch.look()).copied for _ in range(2)] == [90, 90]


async def test_a_setback_is_told_once_and_not_what_was_before(admin: ScriptedAdmin) -> None:
    watch = watching(admin, T0, T1)
    old, new = replace(move(), setback="its target was changed"), replace(move(1), setback="broker 3 came back empty")
    admin.then(old, move(1, has=90, of=100))
    admin.then(old, new)
    admin.then(old, new)
    told = [(await watch.look()).setbacks for _ in range(3)]
    assert told == [(), ("orders-1 has to copy again: broker 3 came back empty",), ()]


async def test_rate_and_time_left_are_the_controllers_unless_others_move_too(admin: ScriptedAdmin) -> None:
    watch = watching(admin, T0)
    admin.then(move(0, has=40, of=100, rate=10), rate=12, eta_ms=5_500)
    seen = await watch.look()
    assert (seen.rate, seen.eta_ms) == (12, 5_500)
    admin.then(move(0, has=40, of=100, rate=10), move(1, rate=5), rate=15, eta_ms=90_000)
    seen = await watch.look()
    assert (seen.rate, seen.eta_ms) == (10, 6_000)


@pytest.mark.requirement("A2")
@pytest.mark.usefixtures("autojump_clock")
async def test_while_nobody_answers_it_goes_on_and_says_so(admin: ScriptedAdmin) -> None:
    watch, news = watching(admin, T0), News()
    admin.then(move(has=40, of=100))
    admin.looks.extend([ClusterUnreachable("no controller is active")] * 2)
    admin.then(move(has=50, of=100))
    admin.then()
    admin.replicas[0] = (3,)
    seen = [status async for status in watch.follow()]
    assert [status.copied for status in seen] == [40, 40, 40, 50, 100]
    trouble = "cannot see the progress, trying again: no controller is active"
    assert [news.lines(status, trio.current_time(), NOW_MS) for status in seen] == [
        ["orders-0 waits for broker 3 to join the ISR"], [trouble], [], [], [],
    ]  # fmt: skip
    assert shown(seen[1])[1].rstrip() == trouble


async def test_a_partition_that_is_gone_has_ended_without_replicas(admin: ScriptedAdmin) -> None:
    admin.then()
    assert dict((await watching(admin, T0).look()).ended) == {T0: ()}
