"""The words for a file's changes, for the outcome of each partition, and for sizes and times."""

from __future__ import annotations

import json

import pytest

from controller.admin.moves import MoveStatus
from klamm.cli.formats import Format, show
from klamm.cli.reassignment import outcomes, preview
from klamm.cli.reassignment.outcomes import MoveOutcome, PartitionOutcome, judge
from klamm.cli.reassignment.preview import ChangePreview, faults, moving_elsewhere, rollback
from klamm.cli.units import duration, moment, rate, size
from transport.messages import (
    UNKNOWN,
    UNTHROTTLED,
    BrokerEndpoint,
    MetadataResponse,
    PartitionState,
    ReassignmentDescription,
)
from transport.metadata import LEADER_DURING_DELETE, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LIVE = tuple(BrokerEndpoint(id_, "h", 1) for id_ in range(1, 7))


def partition(
    number: int, replicas: tuple[int, ...], *, leader: int | None = None, adding: tuple[int, ...] = ()
) -> PartitionState:
    leader = replicas[-1] if leader is None else leader
    return PartitionState("t", "id", number, 1, leader, 1, replicas, 1, replicas, adding)


def change(state: PartitionState, target: tuple[int, ...], bytes_: int = UNKNOWN) -> ChangePreview:
    return ChangePreview(state.tp, state, target, bytes_)


# --- what would change ------------------------------------------------------------------------------------------


@pytest.mark.requirement("A1", "C3")
@pytest.mark.parametrize(
    ("target", "kind", "adding", "removing", "leader", "bytes_"),
    [
        ((4, 5, 6), "move", (4, 5, 6), (1, 2, 3), 4, 30),
        ((4, 3), "move", (4,), (1, 2), 3, 10),
        ((3,), "move", (), (1, 2), 3, 0),
        ((3, 2, 1), "order", (), (), 3, 0),
        ((1, 2, 3), "none", (), (), 3, 0),
    ],
)
def test_every_kind_of_change(
    target: tuple[int, ...], kind: str, adding: tuple[int, ...], removing: tuple[int, ...], leader: int, bytes_: int
) -> None:
    found = change(partition(0, (1, 2, 3)), target, 10)
    assert (found.kind, found.adding, found.removing) == (kind, adding, removing)
    assert (found.new_leader, found.bytes) == (leader, bytes_)


def test_a_partition_that_moves_already_counts_from_the_replicas_that_it_had() -> None:
    found = change(partition(0, (4, 1, 2), leader=1, adding=(4,)), (5, 1, 2))
    assert (found.adding, found.removing, found.bytes) == ((5,), (4,)[:0], UNKNOWN)
    metadata = MetadataResponse(None, 1, LIVE, (found.state,))
    assert rollback(metadata, {T0: (5, 1, 2)}) == {T0: (1, 2)}
    assert list(moving_elsewhere(metadata, {T0: (5, 1, 2)})) == [T0]
    assert moving_elsewhere(metadata, {T0: (4, 1, 2)}) == {}


def test_a_table_of_80_columns_and_a_sum(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    changes = [
        change(partition(0, (1, 2, 3), leader=-1), (4, 5, 6), 1_200_000_000),
        change(partition(1, (1, 2, 3)), (3, 2, 1)),
        change(partition(2, (4, 1, 2), adding=(4,)), (4, 1, 2)),
        change(partition(3, (1,)), (2,)),
    ]
    show(preview.view(changes), Format.TABLE)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "partition  replicas       target  change             leader    bytes",
        "─" * 68,
        "t-0        1,2,3          4,5,6   +4 +5 +6 -1 -2 -3  - -> 4   3.6 GB",
        "t-1        1,2,3          3,2,1   order only         3       0 bytes",
        "t-2        4,1,2 (moves)  4,1,2   +4                 2       unknown",
        "t-3        1              2       +2 -1              1 -> 2  unknown",
        "4 partitions: 3 to move, 1 to reorder, 0 with nothing to do",
        "To copy: 3.6 GB, not counting 2 partitions of unknown size",
        "Nothing was changed: this was a dry run.",
    ]
    show(preview.view(changes), Format.JSON)
    document = json.loads(capsys.readouterr().out)
    assert document[0] == {
        "topic": "t", "partition": 0, "change": "move", "replicas": [1, 2, 3], "target": [4, 5, 6],
        "adding": [4, 5, 6], "removing": [1, 2, 3], "leader": None, "new_leader": 4, "bytes": 3_600_000_000,
        "log_dirs": {}, "partial": None,
    }  # fmt: skip
    assert document[3]["bytes"] is None
    show(preview.view(changes[1:2]), Format.TABLE)
    assert "\n1 partition: 0 to move, 1 to reorder, 0 with nothing to do\n" in capsys.readouterr().out


@pytest.mark.requirement("A3")
def test_what_the_controller_would_refuse_is_known_before_it_is_asked() -> None:
    deleting = PartitionState("gone", "id", 0, 1, LEADER_DURING_DELETE, 1, (1,), 1, (1,))
    metadata = MetadataResponse(None, 1, LIVE, (partition(0, (9, 1)), partition(1, (1, 2)), deleting))
    gone, nowhere = TopicPartition("gone", 0), TopicPartition("t", 7)
    assert faults(metadata, {T0: (9, 2), T1: (2, 7), gone: (2,), nowhere: (1,)}) == {
        T1: "replicas cannot be added on brokers [7], which are not alive",
        gone: "topic gone is being deleted",
        nowhere: "there is no partition t-7",
    }


# --- what became of it ------------------------------------------------------------------------------------------


@pytest.mark.requirement("A2")
def test_every_outcome_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    def moving(number: int, new: tuple[int, ...]) -> ReassignmentDescription:
        return ReassignmentDescription("t", number, 1, 0, 1, UNTHROTTLED, (2, 1), (2,), (1,), (1,), new, (), "luck")

    tps = [TopicPartition("t", number) for number in range(6)]
    ended: dict[TopicPartition, tuple[int, ...]] = {tps[0]: (2,), tps[1]: (1,), tps[2]: ()}
    seen = MoveStatus(dict.fromkeys(tps, (2,)), ended, (moving(3, (2,)), moving(4, (3,))), 0, 0)
    judged = judge(seen)
    show(outcomes.view(judged, MoveOutcome.COMPLETE), Format.TABLE)
    printed = capsys.readouterr()
    assert printed.out == "t-0: complete\n"
    assert printed.err.splitlines() == [
        "t-1: has replicas [1], not [2]",
        "t-2: there is no such partition",
        "t-3: in progress, waits for luck",
        "t-4: is being moved to [3], not to [2]",
        "t-5: in progress",
    ]
    show(outcomes.view(judged[:1]), Format.YAML)
    assert capsys.readouterr().out == (
        "- topic: t\n  partition: 0\n  outcome: complete\n  replicas:\n  - 2\n  message: complete\n"
    )
    assert PartitionOutcome(T0, MoveOutcome.BEGUN, (2,), "begun").line == "t-0: begun"


# --- sizes and times --------------------------------------------------------------------------------------------


def test_units() -> None:
    assert [size(n) for n in (UNKNOWN, 0, 999, 20_480, 1_234_000_000)] == [
        "unknown", "0 bytes", "999 bytes", "20.5 kB", "1.2 GB",
    ]  # fmt: skip
    assert [rate(n) for n in (UNKNOWN, UNTHROTTLED, 12_000_000)] == ["unknown", "unthrottled", "12.0 MB/s"]
    spans = (UNKNOWN, -5, 999, 12_999, 60_000, 61_000, 7_500_000, 90_000_000)
    assert [duration(ms) for ms in spans] == [
        "unknown", "0 s", "0 s", "12 s", "1 min", "1 min 1 s", "2 h 5 min", "1 d 1 h",
    ]  # fmt: skip
    assert moment(UNKNOWN) == "unknown"
    assert len(moment(0)) == len("1970-01-01 00:00:00")
