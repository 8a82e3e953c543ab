"""Several log directories: the place of new logs, the effect of a failed directory, and of a lost one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker.config import BrokerConfig
from broker.meta_properties import FILE_NAME, load_storage_id
from broker.reference.log_dirs import AllLogDirsFailed, LogDirs
from tests.broker.cluster import break_down
from transport.messages import Record
from transport.metadata import TopicPartition

X = Record(0, b"x")


@pytest.fixture
def new_id() -> Callable[[], str]:
    ids = count(1)
    return lambda: f"id-{next(ids)}"


@pytest.fixture
def paths(tmp_path: Path, new_id: Callable[[], str]) -> list[Path]:
    paths = [tmp_path / name for name in "abc"]
    load_storage_id(paths, 1, new_id)
    return paths


def tp(number: int) -> TopicPartition:
    return TopicPartition("a-topic", number)


def write(logs: LogDirs, number: int, *, is_new: bool = True) -> None:
    log = logs.open(tp(number), "id", is_new=is_new)
    log.append([X])
    log.close()


def held(path: Path) -> list[str]:
    return sorted(child.name for child in path.iterdir() if child.is_dir())


# --- where logs are ---------------------------------------------------------------------------------------------


def test_directories_are_those_of_log_dirs_or_else_log_dir() -> None:
    assert BrokerConfig(1, Path("one")).directories == (Path("one"),)
    assert BrokerConfig(1, Path("one"), log_dirs="a, b,a,").directories == (Path("a"), Path("b"))


def test_a_new_log_goes_where_the_fewest_are_and_is_found_there_again(paths: list[Path]) -> None:
    logs = LogDirs(paths)
    for number in range(5):
        write(logs, number)
    assert [held(path) for path in paths] == [["a-topic-0", "a-topic-3"], ["a-topic-1", "a-topic-4"], ["a-topic-2"]]
    logs = LogDirs(paths)
    assert logs.topic_id(tp(4)) == "id"
    assert logs.open(tp(4), "id", is_new=False).end_offset == 1
    logs.delete(tp(0), "id")
    logs.delete(tp(0), "id")
    logs.delete(tp(3), "another")
    write(logs, 5)
    write(logs, 6)
    assert [held(path) for path in paths] == [
        ["a-topic-3", "a-topic-5"],
        ["a-topic-1", "a-topic-4"],
        ["a-topic-2", "a-topic-6"],
    ]


# --- a directory that fails -------------------------------------------------------------------------------------


@pytest.mark.requirement("D9")
def test_a_directory_that_fails_takes_its_replicas_along_and_the_others_go_on(paths: list[Path]) -> None:
    logs = LogDirs(paths)
    for number in range(4):
        write(logs, number)
    assert logs.check() == ()
    break_down(paths[0])
    with capture_logs() as logged:
        assert logs.check() == (tp(0), tp(3))
    assert [entry["path"] for entry in logged] == [str(paths[0])]
    assert logs.check() == ()
    for is_new in (False, True):
        with pytest.raises(OSError, match="is offline"):
            logs.open(tp(0), "id", is_new=is_new)
    with pytest.raises(OSError, match="is offline"):
        logs.delete(tp(3), "id")
    write(logs, 1, is_new=False)
    write(logs, 4)
    write(logs, 5)
    assert [held(path) for path in paths[1:]] == [["a-topic-1", "a-topic-4"], ["a-topic-2", "a-topic-5"]]


@pytest.mark.requirement("D9")
def test_a_log_that_may_be_in_a_directory_that_is_offline_is_not_made_anew_elsewhere(paths: list[Path]) -> None:
    write(LogDirs(paths), 0)
    break_down(paths[0])
    logs = LogDirs(paths)
    with pytest.raises(OSError, match="may be in a log directory that is offline"):
        logs.open(tp(0), "id", is_new=False)
    assert logs.topic_id(tp(0)) is None
    write(logs, 1)


def test_two_logs_of_one_partition_are_not_chosen_from(paths: list[Path]) -> None:
    write(LogDirs([paths[0]]), 0)
    write(LogDirs([paths[1]]), 0)
    with pytest.raises(OSError, match=r"more than one directory has its log .*: remove the older"):
        LogDirs(paths).open(tp(0), "id", is_new=True)


def test_without_any_directory_there_is_no_broker(paths: list[Path]) -> None:
    logs = LogDirs(paths)
    for path in paths:
        break_down(path)
    with pytest.raises(AllLogDirsFailed), capture_logs():
        logs.check()
    with pytest.raises(OSError, match="File exists"):
        LogDirs(paths)


@pytest.mark.requirement("D9")
def test_a_directory_without_its_mark_has_failed_such_as_an_empty_mount_point(paths: list[Path]) -> None:
    logs = LogDirs(paths)
    (paths[1] / FILE_NAME).unlink()
    with capture_logs():
        assert logs.check() == ()
    write(logs, 0)
    write(logs, 1)
    assert [held(path) for path in (paths[0], paths[2])] == [["a-topic-0"], ["a-topic-1"]]


# --- the identity of the storage --------------------------------------------------------------------------------


def test_a_storage_id_stays_as_long_as_its_directory(tmp_path: Path, new_id: Callable[[], str]) -> None:
    path = tmp_path / "data"
    first = load_storage_id([path], 3, new_id)
    assert load_storage_id([path], 3, new_id) == first
    (path / FILE_NAME).unlink()
    assert load_storage_id([path], 3, new_id) != first


def test_a_storage_keeps_its_id_when_a_directory_is_added_or_is_offline(
    paths: list[Path], new_id: Callable[[], str], tmp_path: Path
) -> None:
    first = load_storage_id(paths, 1, new_id)
    paths.append(tmp_path / "d")
    assert load_storage_id(paths, 1, new_id) == first
    break_down(paths[1])
    with capture_logs():
        assert load_storage_id(paths, 1, new_id) == first
    paths[1].unlink()
    paths[1].with_suffix(".broken").rename(paths[1])
    assert load_storage_id(paths, 1, new_id) == first


@pytest.mark.parametrize("lost", ["replaced", "left out"])
def test_a_storage_that_lost_a_directory_is_another(paths: list[Path], new_id: Callable[[], str], lost: str) -> None:
    first = load_storage_id(paths, 1, new_id)
    if lost == "replaced":
        (paths[1] / FILE_NAME).unlink()
    else:
        del paths[1]
    second = load_storage_id(paths, 1, new_id)
    assert second != first
    assert load_storage_id(paths, 1, new_id) == second


def test_directories_of_two_storages_make_a_third(tmp_path: Path, new_id: Callable[[], str]) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    ids = {load_storage_id([path], 1, new_id) for path in (a, b)}
    both = load_storage_id([a, b], 1, new_id)
    assert both not in ids
    assert load_storage_id([a, b], 1, new_id) == both


def test_a_directory_that_was_marked_before_there_could_be_several_is_kept(
    tmp_path: Path, new_id: Callable[[], str]
) -> None:
    (tmp_path / FILE_NAME).write_text("version=0\nbroker.id=1\nstorage.id=s\n")
    assert load_storage_id([tmp_path], 1, new_id) == "s"
    assert load_storage_id([tmp_path, tmp_path / "more"], 1, new_id) == "s"
