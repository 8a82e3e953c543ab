"""The owners of logs: topic ids, deletion, and the identity of the storage."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from broker.meta_properties import WrongLogDir, load_storage_id
from broker.reference.log_dir import LogDir, deleted_name, records_on_disk
from broker.reference.log_dirs import LogDirs
from broker.reference.logs import Logs
from simulator.disk import Disk
from tests.simulation.disks import Unobserved
from transport.errors import ApiError, ErrorCode
from transport.messages import Record
from transport.metadata import TopicPartition

TP = TopicPartition("a-topic", 7)
X = Record(0, b"x")


SmallFiles = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def small_files() -> SmallFiles:
    """Return a function that keeps files from growing past so many bytes, as a full disk does."""

    @contextmanager
    def limit(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit


@pytest.fixture(params=["files", "memory"])
def restart(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Logs]:
    """Return what gives the next process of a broker its logs."""
    disk = Disk(Unobserved(), broker_id=1)
    return (lambda: LogDirs([tmp_path])) if request.param == "files" else (lambda: disk)


def write(logs: Logs, topic_id: str = "id-1") -> None:
    log = logs.open(TP, topic_id, is_new=False)
    log.append([X])
    log.close()


def read(logs: Logs, topic_id: str) -> tuple[Record, ...]:
    log = logs.open(TP, topic_id, is_new=False)
    records = log.read(0, 1000, log.end_offset)
    log.close()
    return records


def test_a_log_outlives_the_process(restart: Callable[[], Logs]) -> None:
    write(restart())
    assert restart().topic_id(TP) == "id-1"
    assert read(restart(), "id-1") == (X,)


def test_a_log_of_an_earlier_topic_of_that_name_is_refused(restart: Callable[[], Logs]) -> None:
    logs = restart()
    write(logs)
    with pytest.raises(ApiError) as refusal:
        logs.open(TP, "id-2", is_new=False)
    assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_ID
    assert read(logs, "id-1") == (X,)


def test_only_the_log_of_the_topic_that_is_named_is_deleted(restart: Callable[[], Logs]) -> None:
    logs = restart()
    write(logs)
    assert not logs.delete(TP, "id-2")
    assert read(logs, "id-1") == (X,)
    assert logs.delete(TP, "id-1")
    assert logs.topic_id(TP) is None
    assert not logs.delete(TP, "id-1")
    assert read(logs, "id-2") == ()


@pytest.mark.parametrize("topic", ["../up", "a/b", "", "x" * 250, "nul\0"])
def test_a_topic_name_that_leads_elsewhere_is_refused(restart: Callable[[], Logs], topic: str) -> None:
    with pytest.raises(ApiError) as refusal:
        restart().open(TopicPartition(topic, 0), "id-1", is_new=False)
    assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_deletion_leaves_nothing_behind(tmp_path: Path) -> None:
    logs = LogDirs([tmp_path])
    write(logs)
    logs.delete(TP, "id-1")
    assert list(tmp_path.iterdir()) == []


def test_a_deletion_that_was_cut_short_is_finished_at_the_next_start(tmp_path: Path) -> None:
    write(LogDirs([tmp_path]))
    LogDir(tmp_path).directory(TP).rename(tmp_path / "a-topic-7.deleted")
    LogDirs([tmp_path])
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_made_without_its_topic_id_is_used(tmp_path: Path) -> None:
    LogDir(tmp_path).directory(TP).mkdir()
    logs = LogDirs([tmp_path])
    write(logs)
    assert logs.topic_id(TP) == "id-1"


def test_what_is_on_disk_can_be_seen_while_the_broker_is_dead(tmp_path: Path) -> None:
    write(LogDirs([tmp_path]))
    assert records_on_disk(tmp_path, TP) == (X,)


@pytest.mark.parametrize(
    ("content", "fault"), [("broker.id=3\nstorage.id=s\n", "says broker 3, not 4"), ("broker.id=4\n", "no storage.id")]
)
def test_a_log_dir_of_another_broker_is_refused(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(WrongLogDir, match=fault):
        load_storage_id([tmp_path], 4, lambda: "new")


def test_a_topic_id_that_did_not_fit_on_the_disk_is_none(tmp_path: Path, small_files: SmallFiles) -> None:
    logs = LogDirs([tmp_path])
    with small_files(3), pytest.raises(OSError, match="File too large"):
        logs.open(TP, "id-1", is_new=True)
    assert LogDirs([tmp_path]).topic_id(TP) is None
    write(LogDirs([tmp_path]), "id-2")
    logs = LogDirs([tmp_path])
    logs.delete(TP, "id-2")
    assert list(tmp_path.iterdir()) == []


# --- names of any length ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [245, 246, 247, 248, 249])
@pytest.mark.parametrize("partition", [0, 99_999])
def test_a_topic_of_a_long_name_is_deleted_and_made_again(
    restart: Callable[[], Logs], length: int, partition: int
) -> None:
    tp = TopicPartition("x" * length, partition)
    logs = restart()
    for topic_id in ("id-1", "id-2"):
        log = logs.open(tp, topic_id, is_new=True)
        log.append([X])
        log.close()
        assert restart().topic_id(tp) == topic_id
        logs.delete(tp, topic_id)
        assert logs.topic_id(tp) is None


def test_deletions_that_were_cut_short_are_finished_though_their_names_were_cut_to_the_same(tmp_path: Path) -> None:
    log_dir = LogDir(tmp_path)
    alike = [TopicPartition("x" * 248 + last, 7) for last in "ab"]
    for tp in alike:
        log_dir.open(tp, "id-1").close()
    log_dir.directory(alike[0]).rename(tmp_path / deleted_name(alike[0]))
    log_dir.delete(alike[1], "id-1")
    LogDirs([tmp_path])
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_the_file_system_cannot_hold_is_a_fault_of_the_storage(restart: Callable[[], Logs]) -> None:
    with pytest.raises(OSError, match="File name too long"):
        restart().open(TopicPartition("x" * 249, 100_000), "id-1", is_new=True)
