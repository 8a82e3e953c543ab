"""The file `meta.properties`, which says whose a log directory is and gives the storage an identity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

FILE_NAME: Final = "meta.properties"


class WrongLogDir(Exception):
    """A log directory belongs to another broker, or its `meta.properties` cannot be read."""


def load_storage_id(log_dir: Path, broker_id: int, new_id: Callable[[], str]) -> str:
    """Return the storage id of a log directory, which is made and marked as this broker's if it is new.

    A broker that comes back with another storage id has lost its data, whatever its broker id says.
    Raises WrongLogDir.
    """
    path = log_dir / FILE_NAME
    log_dir.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        storage_id = new_id()
        draft = path.with_suffix(".tmp")
        draft.write_text(f"version=0\nbroker.id={broker_id}\nstorage.id={storage_id}\n", encoding="utf-8")
        draft.replace(path)
        return storage_id
    lines = path.read_text(encoding="utf-8").splitlines()
    properties = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    if properties.get("broker.id") != str(broker_id):
        owner = properties.get("broker.id", "nobody")
        raise WrongLogDir(f"{path} says broker {owner}, not {broker_id}: give broker {broker_id} a log dir of its own")
    storage_id = properties.get("storage.id", "")
    if not storage_id:
        raise WrongLogDir(f"{path} has no storage.id: if the data may be lost, empty {log_dir}")
    return storage_id
