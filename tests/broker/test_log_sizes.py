"""DescribeLogDirs through the kit: the sizes of logs in files and in memory."""

from __future__ import annotations

from pathlib import Path
from shutil import disk_usage

import pytest

from broker.reference.log_dirs import LogDirs
from broker.reference.logs import Logs
from broker.reference.replica import Replica
from broker.reference.service import describe_log_dirs
from simulator.disk import Disk
from tests.broker.cluster import running_cluster, state_of, until
from tests.simulation.disks import Notes
from transport.errors import ErrorCode
from transport.messages import UNKNOWN, DescribeLogDirsRequest, FetchPartition, FetchResult, LogDirReplica, Record
from transport.metadata import TopicPartition

T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))
X = Record(0, b"x" * 10)


@pytest.fixture(params=["files", "memory"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Logs:
    """Make two log directories, which partitions go to in turn."""
    return LogDirs([tmp_path / "a", tmp_path / "b"]) if request.param == "files" else Disk(Notes(), 1)


def write(logs: Logs, tp: TopicPartition, records: int) -> Replica:
    log = logs.open(tp, "id-of-t", is_new=True)
    log.append(records * [X])
    return Replica(tp, log, state_of(partition=tp.partition))


def test_the_logs_are_described_by_directory(logs: Logs) -> None:
    replicas = {tp: write(logs, tp, number) for number, tp in enumerate((T0, T1, T2))}
    first, second = describe_log_dirs(logs, replicas, None)
    per_record = replicas[T1].log.size
    assert per_record > len(X.value)
    assert (first.error, second.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert first.path != second.path
    assert first.replicas == (
        LogDirReplica("t", "id-of-t", 0, 0, 0, 0),
        LogDirReplica("t", "id-of-t", 2, 2 * per_record, 2, 0),
    )
    assert second.replicas == (LogDirReplica("t", "id-of-t", 1, per_record, 1, 0),)


def test_only_what_is_wanted_and_here_is_described(logs: Logs) -> None:
    replicas = {tp: write(logs, tp, 1) for tp in (T0, T1, T2)}
    described = describe_log_dirs(logs, replicas, [T2, T3, T2])
    assert [[replica.partition for replica in log_dir.replicas] for log_dir in described] == [[2], []]


def test_of_a_log_that_nobody_opened_the_size_is_known(logs: Logs) -> None:
    replica = write(logs, T0, 3)
    size = replica.log.size
    replica.close()
    [only] = describe_log_dirs(logs, {}, [T0])[0].replicas
    assert only == LogDirReplica("t", "id-of-t", 0, size, -1, -1)


def test_a_truncated_log_is_smaller(logs: Logs) -> None:
    replica = write(logs, T0, 4)
    size = replica.log.size
    replica.log.truncate(1)
    assert replica.log.size == size / 4


def test_a_failed_directory_says_so(tmp_path: Path) -> None:
    disk = Disk(Notes(), 1)
    replicas = {tp: write(disk, tp, 1) for tp in (T0, T1)}
    disk.fail(0)
    failed, well = describe_log_dirs(disk, replicas, None)
    assert (failed.error, failed.replicas) == (ErrorCode.KAFKA_STORAGE_ERROR, ())
    assert [replica.partition for replica in well.replicas] == [1]

    (tmp_path / "a").write_text("no directory")
    failed, well = describe_log_dirs(LogDirs([tmp_path / "a", tmp_path / "b"]), {}, None)
    assert (failed.error, well.error) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE)


def test_a_follower_lags_behind_what_its_leader_has_committed(logs: Logs) -> None:
    replica = write(logs, T0, 0)
    replica.follow(replica.state)
    asked = FetchPartition(*T0, 0, 100, replica.state.leader_epoch)
    replica.take(asked, FetchResult(*T0, ErrorCode.NONE, 5, (X, X)))
    assert replica.lag == 3
    assert describe_log_dirs(logs, {T0: replica}, None)[0].replicas[0].offset_lag == 3


@pytest.mark.requirement("B5")
async def test_a_broker_answers_over_the_wire(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        await cluster.lead_and_follow(state_of((1, 2)), is_new=True)
        await cluster.produce(b"one", b"two")
        await until(lambda: len(cluster.values_on_disk(2, T0)) == 2)
        for broker_id in (1, 2):
            [log_dir] = (await cluster.call(broker_id, DescribeLogDirsRequest((T0, T1)))).log_dirs
            assert log_dir.path == str(cluster.log_dir(broker_id))
            [replica] = log_dir.replicas
            assert (replica.partition, replica.topic_id, replica.log_end_offset) == (0, "id-of-t", 2)
            assert replica.size == (cluster.log_dir(broker_id) / "t-0" / "records.log").stat().st_size


def test_the_file_system_of_a_directory_is_told_and_not_that_of_a_failed_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("no directory")
    failed, well = describe_log_dirs(LogDirs([tmp_path / "a", tmp_path / "b"]), {}, None)
    assert (failed.total, failed.usable) == (UNKNOWN, UNKNOWN)
    assert well.total == disk_usage(tmp_path).total > well.usable > 0
