"""The file `meta.properties`, which names the broker of a log directory and identifies the storage.

The directories of one broker share a storage id. Each also has an id of its own, and all of them list these ids. This
distinguishes an added directory from one that came back empty, and an unreadable directory from a missing one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from transport.input_files import Limit, UnreadableFile, read_text
from transport.log import get_logger

FILE_NAME: Final = "meta.properties"
LIMIT: Final = Limit(1, "no broker has written it")

_log = get_logger(__name__)


class WrongLogDir(Exception):
    """A log directory belongs to another broker, or its `meta.properties` cannot be read."""


@frozen
class _Directory:
    """The content of the file: the storage id, the directory's own id, and the ids of all directories of the broker."""

    storage_id: str
    own_id: str
    all_ids: tuple[str, ...]


def load_storage_id(log_dirs: Sequence[Path], broker_id: int, new_id: Callable[[], str]) -> str:
    """Return the storage id of a broker's log directories; missing ones are created and marked as this broker's.

    A broker that restarts with another storage id has lost data, even if its broker id is the same. Directories that
    cannot be used are left out. Raises WrongLogDir, or OSError if no directory can be used.
    """
    found: dict[Path, _Directory | None] = {}
    faults: list[OSError] = []
    for path in log_dirs:
        try:
            path.mkdir(parents=True, exist_ok=True)
            found[path] = _read(path, broker_id)
        except OSError as error:
            _log.error("a log directory is offline: its replicas cannot be used", path=str(path), reason=str(error))
            faults.append(error)
    if not found:
        raise faults[0]
    known = [directory for directory in found.values() if directory is not None]
    listed = dict.fromkeys(id_ for directory in known for id_ in directory.all_ids)
    missing = listed.keys() - {directory.own_id for directory in known}
    storage_ids = {directory.storage_id for directory in known}
    # The storage is whole if each missing directory may be one of those that cannot be read now.
    is_whole = len(storage_ids) == 1 and len(missing) <= len(faults)
    storage_id = min(storage_ids) if is_whole else new_id()
    ids = {path: new_id() if directory is None else directory.own_id for path, directory in found.items()}
    all_ids = tuple(dict.fromkeys((*(listed if is_whole else ()), *ids.values())))
    for path, own_id in ids.items():
        _write(path, broker_id, _Directory(storage_id, own_id, all_ids), found[path])
    return storage_id


def _read(log_dir: Path, broker_id: int) -> _Directory | None:
    path = log_dir / FILE_NAME
    if not path.exists():
        return None
    try:
        properties = _parse(read_text(path, LIMIT))
    except UnreadableFile as error:
        if error.os_error is not None:
            raise error.os_error from None
        raise WrongLogDir(f"{error}: if the data may be lost, empty {log_dir}") from None
    if properties.get("broker.id") != str(broker_id):
        owner = properties.get("broker.id", "nobody")
        raise WrongLogDir(f"{path} says broker {owner}, not {broker_id}: give broker {broker_id} a log dir of its own")
    storage_id = properties.get("storage.id", "")
    if not storage_id:
        raise WrongLogDir(f"{path} has no storage.id: if the data may be lost, empty {log_dir}")
    own_id = properties.get("directory.id", storage_id)
    return _Directory(storage_id, own_id, tuple(properties.get("directory.ids", own_id).split(",")))


def _parse(text: str) -> Mapping[str, str]:
    pairs = [line.partition("=") for line in text.splitlines()]
    return {key.strip(): value.strip() for key, _, value in pairs}


def _write(log_dir: Path, broker_id: int, directory: _Directory, before: _Directory | None) -> None:
    if directory == before:
        return
    lines = [
        "version=0",
        f"broker.id={broker_id}",
        f"storage.id={directory.storage_id}",
        f"directory.id={directory.own_id}",
        f"directory.ids={','.join(directory.all_ids)}",
    ]
    path = log_dir / FILE_NAME
    draft = path.with_suffix(".tmp")
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    draft.replace(path)
