"""Which log is whose: topic ids, deletion, and the identity of the storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.meta_properties import WrongLogDir, load_storage_id
from broker.reference.log_dir import LogDir, records_on_disk
from transport.errors import ApiError, ErrorCode
from transport.messages import Record
from transport.metadata import TopicPartition

TP = TopicPartition("a-topic", 7)


def write(logs: LogDir, topic_id: str = "id-1") -> None:
    log = logs.open(TP, topic_id)
    log.append([Record(0, b"x")])
    log.close()


def test_a_log_of_an_earlier_topic_of_that_name_is_refused(tmp_path: Path) -> None:
    logs = LogDir(tmp_path)
    write(logs)
    with pytest.raises(ApiError) as refusal:
        logs.open(TP, "id-2")
    assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_ID
    assert records_on_disk(tmp_path, TP) == (Record(0, b"x"),)


def test_only_the_log_of_the_topic_that_is_named_is_deleted(tmp_path: Path) -> None:
    logs = LogDir(tmp_path)
    write(logs)
    logs.delete(TP, "id-2")
    assert records_on_disk(tmp_path, TP) == (Record(0, b"x"),)
    logs.delete(TP, "id-1")
    assert list(tmp_path.iterdir()) == []
    logs.delete(TP, "id-1")


def test_a_deletion_that_was_cut_short_is_finished_at_the_next_start(tmp_path: Path) -> None:
    write(LogDir(tmp_path))
    logs = LogDir(tmp_path)
    logs.directory(TP).rename(tmp_path / "a-topic-7.deleted")
    LogDir(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_made_without_its_topic_id_is_used(tmp_path: Path) -> None:
    logs = LogDir(tmp_path)
    logs.directory(TP).mkdir()
    write(logs)
    assert logs.topic_id(TP) == "id-1"


@pytest.mark.parametrize("topic", ["../up", "a/b", "", "x" * 250, "nul\0"])
def test_a_topic_name_that_leads_elsewhere_is_refused(tmp_path: Path, topic: str) -> None:
    with pytest.raises(ApiError) as refusal:
        LogDir(tmp_path).open(TopicPartition(topic, 0), "id-1")
    assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_storage_id_stays_as_long_as_its_directory(tmp_path: Path) -> None:
    ids = iter(["first", "second"])
    assert load_storage_id(tmp_path / "data", 3, lambda: next(ids)) == "first"
    assert load_storage_id(tmp_path / "data", 3, lambda: next(ids)) == "first"
    (tmp_path / "data" / "meta.properties").unlink()
    assert load_storage_id(tmp_path / "data", 3, lambda: next(ids)) == "second"


@pytest.mark.parametrize(
    ("content", "fault"), [("broker.id=3\nstorage.id=s\n", "says broker 3, not 4"), ("broker.id=4\n", "no storage.id")]
)
def test_a_log_dir_of_another_broker_is_refused(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(WrongLogDir, match=fault):
        load_storage_id(tmp_path, 4, lambda: "new")
