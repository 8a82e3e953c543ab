"""The packing of all-or-nothing groups of operations into as few multis as the server's limits allow. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from transport.store.protocol import Op
from transport.store.requests import op_bytes, weight_of

Group = Sequence[Op]
"""Operations that take effect together or not at all."""


def plan_chunks(groups: Sequence[Group], *, max_ops: int = 500, max_bytes: int = 900_000) -> list[list[int]]:
    """Distribute groups, in order, into chunks for `commit_chunk`. Return the indexes of each chunk's groups.

    A group is never split. A group that exceeds a limit by itself gets a chunk of its own.
    """
    chunks: list[list[int]] = []
    room_ops = room_bytes = 0
    for index, group in enumerate(groups):
        weight = weight_of(group) if len(group) > 1 else op_bytes(group[0]) if group else 0
        if not chunks or len(group) > room_ops or weight > room_bytes:
            chunks.append([])
            room_ops, room_bytes = max_ops, max_bytes
        chunks[-1].append(index)
        room_ops -= len(group)
        room_bytes -= weight
    return chunks
