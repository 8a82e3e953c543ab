"""The stable hash of many partition names at once: `model.block.name_hash` over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_ALL_ONES: Final = np.uint32(0xFFFFFFFF)


def _table() -> NDArray[np.uint32]:
    """Return the table of CRC-32 for each value of a byte."""
    value = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        value = np.where(value & 1, (value >> 1) ^ np.uint32(0xEDB88320), value >> 1)
    return value


_TABLE: Final = _table()


def topic_states(topics: Sequence[str]) -> NDArray[np.uint32]:
    """Return the state of the hash after each topic's name and the dash behind it."""
    return np.array([crc32(f"{topic}-".encode()) for topic in topics], np.uint32) ^ _ALL_ONES


def name_hashes(states: NDArray[np.uint32], partition: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return the hashes of partitions, given the states of their topics: continue over the digits of their numbers."""
    state = states.copy()
    for place in range(len(str(partition.max(initial=0))) - 1, -1, -1):
        digits = partition // 10**place
        longer = np.flatnonzero(digits) if place else slice(None)
        byte = (digits[longer] % 10 + ord("0")).astype(np.uint32)
        state[longer] = _TABLE[(state[longer] ^ byte) & 0xFF] ^ (state[longer] >> 8)
    return state ^ _ALL_ONES
