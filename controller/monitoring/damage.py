"""What cannot be decoded in the metadata store beside brokers, topics and moves, which `state_dump` reads anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from transport.metadata import number_in
from transport.store import formats, paths
from transport.store.protocol import MetadataStore


async def find(store: MetadataStore) -> list[str]:
    """Return what is wrong with each znode that cannot be decoded, with its path."""
    single = (paths.CONTROLLER, paths.CONTROLLER_EPOCH, paths.PREFERRED_REPLICA_ELECTION)
    lists = await store.children([*_PARENTS])
    below = [f"{parent}/{name}" for parent, names in zip(_PARENTS, lists, strict=True) for name in names or ()]
    wanted = [*single, *below]
    found = await store.read(wanted)
    there = {path: znode.data for path, znode in zip(wanted, found, strict=True) if znode is not None}
    return [fault for path, data in there.items() for fault in _faults(path, data)]


def _faults(path: str, data: bytes) -> Iterator[str]:
    try:
        _decode(path, data)
    except formats.UndecodableZnode as fault:
        yield str(fault)


def _decode(path: str, data: bytes) -> None:
    parent, _, name = path.rpartition("/")
    if path == paths.CONTROLLER:
        formats.decode_controller(data)
    elif path == paths.CONTROLLER_EPOCH:
        formats.decode_controller_epoch(data)
    elif path == paths.PREFERRED_REPLICA_ELECTION:
        formats.decode_partitions(path, data)
    else:
        _PARENTS[parent](path, name, data)


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
"""What is to be below which parents."""
