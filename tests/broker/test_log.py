"""Logs compared with a list under any sequence of appends, truncations and reopenings; damage in a log file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.reference.log import CorruptLog, Log, read_records
from broker.reference.logs import RECORD_OVERHEAD_BYTES, ReplicaLog
from simulator.disk import Disk
from tests.simulation.disks import Unobserved
from transport.messages import Record
from transport.metadata import TopicPartition

TP = TopicPartition("t", 0)


class LogAgainstList(RuleBasedStateMachine):
    """The behaviour of every log; a subclass opens one."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Record] = []

    def opened(self) -> ReplicaLog:
        raise NotImplementedError

    def stored(self) -> Sequence[Record]:
        raise NotImplementedError

    @initialize()
    def open(self) -> None:
        self.log = self.opened()

    @rule(values=st.lists(st.binary(max_size=20), max_size=5), epoch_step=st.integers(0, 2))
    def append(self, values: list[bytes], epoch_step: int) -> None:
        epoch = max(0, self.log.latest_epoch) + epoch_step
        records = [Record(epoch, value) for value in values]
        assert self.log.append(records) == len(self.records)
        self.records += records

    @rule(fraction=st.floats(0, 1))
    def truncate(self, fraction: float) -> None:
        end_offset = round(fraction * (len(self.records) + 1))
        self.log.truncate(end_offset)
        del self.records[end_offset:]

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = self.opened()

    @rule(start=st.floats(0, 1), end=st.floats(0, 1), max_bytes=st.integers(0, 100))
    def read(self, start: float, end: float, max_bytes: int) -> None:
        offset = round(start * len(self.records))
        end_offset = round(end * len(self.records))
        found = list(self.log.read(offset, max_bytes, end_offset))
        wanted = self.records[offset:end_offset]
        assert found == wanted[: len(found)]
        sizes = [RECORD_OVERHEAD_BYTES + len(record.value) for record in wanted]
        assert len(found) == max(min(1, len(wanted)), sum(sum(sizes[: n + 1]) <= max_bytes for n in range(len(sizes))))

    @rule(epoch=st.integers(0, 8))
    def end_of_an_epoch(self, epoch: int) -> None:
        older = [record.leader_epoch for record in self.records if record.leader_epoch <= epoch]
        wanted = (older[-1], len(older)) if older else (epoch, 0)
        assert self.log.end_offset_for_epoch(epoch) == wanted

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        assert self.log.end_offset == len(self.records)
        assert self.log.latest_epoch == (self.records[-1].leader_epoch if self.records else -1)
        assert list(self.stored()) == self.records


class FileAgainstList(LogAgainstList):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())

    def opened(self) -> ReplicaLog:
        return Log(self.directory / "log")

    def stored(self) -> Sequence[Record]:
        return read_records(self.directory / "log")

    @rule(torn=st.binary(min_size=1, max_size=RECORD_OVERHEAD_BYTES - 1))
    def die_while_writing(self, torn: bytes) -> None:
        self.log.close()
        with (self.directory / "log").open("ab") as file:
            file.write(torn)
        self.log = self.opened()

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.directory)


class MemoryAgainstList(LogAgainstList):
    def __init__(self) -> None:
        super().__init__()
        self.disk = Disk(Unobserved(), broker_id=1)

    def opened(self) -> ReplicaLog:
        return self.disk.open(TP, "id-1")

    def stored(self) -> Sequence[Record]:
        return self.disk.logs[TP].records


TestFileAgainstList = FileAgainstList.TestCase
TestFileAgainstList.settings = settings(stateful_step_count=20)
TestMemoryAgainstList = MemoryAgainstList.TestCase
TestMemoryAgainstList.settings = settings(stateful_step_count=20)


@pytest.fixture(params=["file", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> ReplicaLog:
    """Open a log of two records of epoch 1."""
    log: ReplicaLog = Log(tmp_path / "log") if request.param == "file" else Disk(Unobserved(), 1).open(TP, "id-1")
    log.append([Record(1, b"first"), Record(1, b"second")])
    return log


def test_a_leader_epoch_never_goes_down(log: ReplicaLog) -> None:
    with pytest.raises(ValueError, match="epoch 0 after one of 1"):
        log.append([Record(0, b"x")])
    with pytest.raises(ValueError, match="epoch 2 after one of 3"):
        log.append([Record(3, b"x"), Record(2, b"y")])
    assert (log.end_offset, log.latest_epoch) == (2, 1)
    log.close()


def test_a_closed_log_can_be_neither_written_nor_read(log: ReplicaLog) -> None:
    log.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        log.append([Record(1, b"x")])
    with pytest.raises(OSError, match="Bad file descriptor"):
        log.read(0, 100, 2)
    with pytest.raises(OSError, match="Bad file descriptor"):
        log.truncate(1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    log = Log(tmp_path / "log")
    log.append([Record(1, b"first"), Record(1, b"second")])
    log.close()
    return tmp_path / "log"


def test_a_record_without_its_end_is_cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    log = Log(path)
    assert log.end_offset == 1
    assert log.append([Record(2, b"again")]) == 1
    log.close()
    assert [record.value for record in read_records(path)] == [b"first", b"again"]


def test_a_damaged_last_record_is_cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    log = Log(path)
    assert log.end_offset == 1
    log.close()


def test_damage_before_the_end_is_refused_and_left_alone(path: Path) -> None:
    damaged = path.read_bytes().replace(b"first", b"worst")
    path.write_bytes(damaged)
    with pytest.raises(CorruptLog, match="byte 0 is damaged"):
        Log(path)
    assert path.read_bytes() == damaged
