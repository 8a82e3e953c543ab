"""Undecodable znodes, except those of brokers, topics and moves, which `state_dump` reads anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from controller.model import rollout_rows
from transport.metadata import number_in
from transport.store import formats, paths
from transport.store.protocol import ReadableStore, Unlisted


async def find(store: ReadableStore) -> list[str]:
    """Return a line for each znode that cannot be decoded or listed, with its path and the fault."""
    parents = [*_PARENTS, *_LISTED]
    lists = dict(zip(parents, await store.children(parents), strict=True))
    closed = [parent for parent, names in lists.items() if isinstance(names, Unlisted)]
    below = [f"{parent}/{name}" for parent in _PARENTS for name in lists[parent] or ()]
    wanted = [*_SINGLE, *below]
    found = await store.read(wanted)
    there = {path: znode.data for path, znode in zip(wanted, found, strict=True) if znode is not None}
    strangers = [name for name in lists[paths.BROKER_IDS] or () if number_in(name) is None]
    return [
        *(f"{parent}: its children may not be listed: its ACL forbids it to this identity" for parent in closed),
        *(f"{paths.BROKER_IDS}/{name}: its name is not an id" for name in strangers),
        *(fault for path, data in there.items() for fault in _faults(path, data)),
        *(await _of_rollouts(store)),
    ]


async def _of_rollouts(store: ReadableStore) -> list[str]:
    """Return a line for each row of a rollout that cannot be used; of a plan with a bad state only for that."""
    [names] = await store.children([paths.ROLLOUTS])
    if isinstance(names, Unlisted):
        return [f"{paths.ROLLOUTS}: its children may not be listed: its ACL forbids it to this identity"]
    found = list[str]()
    for name in names or ():
        state, by_hand = await store.read([paths.rollout(name), paths.rollout_strangers(name)])
        if state is None or not state.data:
            continue  # its plan is being uploaded
        try:
            parts = rollout_rows.read_state(name, state.data).parts
        except formats.UndecodableZnode as fault:
            found.append(str(fault))
            continue
        if by_hand is not None:
            found += _fault_of(partial(rollout_rows.read_by_hand, name, by_hand.data))
        for part in parts:
            plan, marked = paths.rollout_plan(name, part.first), paths.rollout_marks(name, part.first)
            moves, marks = await store.read([plan, marked])
            found += _fault_of(partial(rollout_rows.read_moves, plan, b"" if moves is None else moves.data, part))
            if marks is not None:
                found += _fault_of(partial(rollout_rows.read_marks, marked, marks.data, part))
    return found


def _fault_of(read: Callable[[], object]) -> list[str]:
    try:
        read()
    except formats.UndecodableZnode as fault:
        return [str(fault)]
    return []


def _faults(path: str, data: bytes) -> Iterator[str]:
    parent, _, name = path.rpartition("/")
    try:
        if path in _SINGLE:
            _SINGLE[path](path, data)
        else:
            _PARENTS[parent](path, name, data)
    except formats.UndecodableZnode as fault:
        yield str(fault)


def _of_broker(decode: Callable[[int, bytes], object]) -> Callable[[str, str, bytes], None]:
    def judge(path: str, name: str, data: bytes) -> None:
        broker_id = number_in(name)
        if broker_id is None:
            raise formats.UndecodableZnode(path, "its name is not an id")
        decode(broker_id, data)

    return judge


def _stray(path: str, name: str, _: bytes) -> None:
    if paths.parse_stray(name) is None:
        raise formats.UndecodableZnode(path, "its name is not that of a replica")


_SINGLE: Final[dict[str, Callable[[str, bytes], object]]] = {
    paths.CONTROLLER: lambda _, data: formats.decode_controller(data),
    paths.CONTROLLER_EPOCH: lambda _, data: formats.decode_controller_epoch(data),
    paths.PREFERRED_REPLICA_ELECTION: formats.decode_partitions,
}
"""The decoder of each znode that stands for itself; called with path and data."""

_PARENTS: dict[str, Callable[[str, str, bytes], object]] = {
    paths.TOPIC_CONFIGS: lambda path, _, data: formats.decode_config(path, data),
    paths.BROKER_CONFIGS: lambda path, _, data: formats.decode_config(path, data),
    paths.ISR_CHANGE_NOTIFICATION: lambda path, _, data: formats.decode_partitions(path, data),
    paths.LOG_DIR_EVENT_NOTIFICATION: lambda path, _, data: formats.decode_log_dir_event(path, data),
    paths.CONFIG_CHANGES: lambda path, _, data: formats.decode_config_change(path, data),
    paths.STORAGE_IDS: _of_broker(formats.decode_storage_id),
    paths.KLAMM_CONTROLLERS: _of_broker(formats.decode_controller_endpoint),
    paths.STRAYS: _stray,
}
"""The decoder of the children of each parent; called with path, name and data."""

_LISTED: Final = (paths.BROKER_IDS, paths.TOPICS, paths.DELETE_TOPICS, paths.REASSIGNMENTS)
"""Further parents whose children are listed, but not decoded."""
