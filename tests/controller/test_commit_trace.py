"""The bound of the commit trace: a number of states, however many commits they came in."""

from __future__ import annotations

from controller.observation.commit_trace import MAX_PARTITIONS, CommitTrace
from controller.observation.observer import CommittedRound
from transport.messages import PartitionState, TracedCommit

STATE = PartitionState("orders", "id", 0, 1, 1, 0, (1,), 0, (1,))


def commit(zxid: int, partitions: int) -> CommittedRound:
    return CommittedRound("TopicChange", "create", 1, zxid, (STATE,) * partitions, ())


async def test_large_commits_push_older_ones_out() -> None:
    trace = CommitTrace(1001)
    for zxid in range(5):
        trace.committed(commit(zxid, MAX_PARTITIONS // 2))
    kept = (await trace.read(0, 0)).commits
    assert [one.zxid for one in kept] == [3, 4]


async def test_a_commit_is_read_as_it_was() -> None:
    trace = CommitTrace(1001)
    trace.committed(CommittedRound("TopicChange", "create", 7, 3, (STATE,), (("orders", 2),), "event"))
    read = (await trace.read(0, 0)).commits
    assert read == (TracedCommit(0, 1001, 7, "TopicChange", "create", 3, (("orders", 2),), (STATE,), "event"),)


async def test_the_last_commit_is_kept_however_large_it_is() -> None:
    trace = CommitTrace(1001)
    trace.committed(commit(1, MAX_PARTITIONS + 1))
    assert [one.zxid for one in (await trace.read(0, 0)).commits] == [1]
