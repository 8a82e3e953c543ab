"""An append-only log of records in one file.

Each record is a frame: length of the value, CRC-32 of epoch and value, leader epoch, value. Offsets are not stored: the
offset of a record is its position in the log, and an index in memory has the byte at which each record starts. Writes
go directly to the operating system and so survive a crash of the process. Without fsync they do not survive a crash of
the machine.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final
from zlib import crc32

from broker.reference.epochs import LeaderEpochs
from transport.log import get_logger
from transport.messages import Record

_HEADER: Final = Struct(">IIi")

_log = get_logger(__name__)


class CorruptLog(OSError):
    """A record in the middle of a log is damaged. The log cannot be trusted, and is left as it is."""


class Log:
    """The records of one replica in a file. Implements `broker.reference.logs.ReplicaLog`."""

    def __init__(self, path: Path) -> None:
        """Open the log at `path`, or create an empty one. A torn record at the end is cut off. Raises CorruptLog."""
        self._path = path
        self._positions = array("Q")
        self._size = 0
        self._epochs = LeaderEpochs()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._recover()
        except BaseException:
            self.close()
            raise

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return len(self._positions)

    @property
    def size(self) -> int:
        """The size of the records in the file, in bytes."""
        return self._size

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record; -1 if there is none."""
        return self._epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` in the log and its end offset; see `LeaderEpochs.end_offset_for`."""
        return self._epochs.end_offset_for(epoch, self.end_offset)

    def append(self, records: Sequence[Record]) -> int:
        """Append records and return the offset of the first. Raises ValueError for impossible leader epochs."""
        base_offset = self.end_offset
        self._epochs.check_order(records)
        frames = [_frame(record) for record in records]
        self._write(b"".join(frames))
        for record, frame in zip(records, frames, strict=True):
            self._index(record.leader_epoch, len(frame))
        return base_offset

    def read(self, offset: int, max_bytes: int, end_offset: int) -> tuple[Record, ...]:
        """Return the records from `offset` up to `end_offset`, within `max_bytes` but at least one."""
        if offset >= end_offset:
            return ()
        start = self._positions[offset]
        limit = start + max_bytes
        last = end_offset
        if self._position(end_offset) > limit:
            last = max(bisect_right(self._positions, limit, lo=offset, hi=end_offset) - 1, offset + 1)
        return tuple(_parse(os.pread(self._fd, self._position(last) - start, start)))

    def truncate(self, end_offset: int) -> None:
        """Remove the records from `end_offset` on."""
        if end_offset >= self.end_offset:
            return
        position = self._positions[end_offset]
        os.ftruncate(self._fd, position)
        del self._positions[end_offset:]
        self._size = position
        self._epochs.truncate(end_offset)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _position(self, offset: int) -> int:
        return self._positions[offset] if offset < len(self._positions) else self._size

    def _index(self, epoch: int, length: int) -> None:
        self._epochs.assign(epoch, self.end_offset)
        self._positions.append(self._size)
        self._size += length

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        position = self._size
        try:
            while view:
                written = os.pwrite(self._fd, view, position)
                position += written
                view = view[written:]
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise

    def _recover(self) -> None:
        file_size = os.fstat(self._fd).st_size
        with self._path.open("rb") as file:
            for record in _records(file, file_size):
                self._index(record.leader_epoch, _HEADER.size + len(record.value))
        if self._size < file_size:
            _log.warning("torn record cut off", path=str(self._path), bytes=file_size - self._size)
            os.ftruncate(self._fd, self._size)


def _checksum(leader_epoch: int, value: bytes) -> int:
    return crc32(value, crc32(leader_epoch.to_bytes(4, "big", signed=True)))


def _frame(record: Record) -> bytes:
    header = _HEADER.pack(len(record.value), _checksum(record.leader_epoch, record.value), record.leader_epoch)
    return header + record.value


def _parse(data: bytes) -> Iterator[Record]:
    position = 0
    while position < len(data):
        length, _, leader_epoch = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        yield Record(leader_epoch, data[position : position + length])
        position += length


def read_records(path: Path) -> tuple[Record, ...]:
    """Return all complete records of a log file, without opening it for writing. Raises CorruptLog."""
    with path.open("rb") as file:
        return tuple(_records(file, os.fstat(file.fileno()).st_size))


def _records(file: BinaryIO, file_size: int) -> Iterator[Record]:
    """Read up to the end of the file, or up to a torn record at the end."""
    position = 0
    while len(header := file.read(_HEADER.size)) == _HEADER.size:
        length, checksum, leader_epoch = _HEADER.unpack(header)
        end = position + _HEADER.size + length
        if end > file_size:
            return
        value = file.read(length)
        if _checksum(leader_epoch, value) != checksum:
            # Only the last record can be torn by a crash while it was written.
            if end == file_size:
                return
            raise CorruptLog(f"{file.name}: the record at byte {position} is damaged, and is not the last")
        yield Record(leader_epoch, value)
        position = end
