"""Kafka's reassignment JSON. A file with a mistake is refused as a whole, with the place of the mistake."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click
import orjson
from attrs import field, frozen

from controller.admin.log_mover import Directories, Replica
from controller.admin.plan_ids import PlanIds
from controller.model.faults import replicas_fault
from klamm.cli.names import NOTHING_TO_CHANGE, is_broker_id
from spark_bridge.inputs.json_words import fault_of
from transport.input_files import Limit, UnreadableFile, read_text
from transport.metadata import TopicPartition
from transport.settings import INT_MAX
from transport.store import formats

LIMIT: Final = Limit(64, "split it")
"""The largest file, enough for half a million partitions."""

NOTHING_TO_DO: Final = "the plan changes nothing: there is nothing to do"
_LONGEST_FAULT: Final = 200
_ANY: Final = "any"

_NO_IDS: Final = PlanIds()

Targets = Mapping[TopicPartition, tuple[int, ...]]


def json_file(*, required: bool) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Add the option that names a file; it is passed to the command as `file`."""
    return click.option(
        "--reassignment-json-file",
        "file",
        required=required,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help='{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [4, 5, 6]}]}',
    )


class FileFault(Exception):
    """A mistake in a file, and its place."""


@frozen
class MoveFile:
    """The content of a file: the new replicas of each partition, and those it starts from if the file has them.

    `log_dirs` has the log directories of those replicas for which the file names one.
    """

    targets: Targets
    starts: Targets = field(factory=dict)
    log_dirs: Directories = field(factory=dict)
    ids: PlanIds = _NO_IDS
    """Those of the cluster and of topics, as far as the file has them."""


def read_document(file: Path, *, may_be_empty: bool = False) -> MoveFile:
    """Return the content of a file, one without partitions only if it `may_be_empty`. Raises click.ClickException."""
    try:
        return decode_document(read_text(file, LIMIT).encode(), may_be_empty=may_be_empty)
    except FileFault as fault:
        raise click.ClickException(f"{file}: {_shortened(str(fault))}") from None
    except UnreadableFile as fault:
        raise click.ClickException(str(fault)) from None


def encode_targets(targets: Targets, log_dirs: Directories = MappingProxyType({}), ids: PlanIds = _NO_IDS) -> str:
    """Return Kafka's reassignment JSON in one line, with log_dirs as Kafka's tool writes them, and the known ids."""
    entries = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": replicas,
            "log_dirs": [log_dirs.get((tp, broker_id), _ANY) for broker_id in replicas],
            **({"topic_id": ids.topic_ids[tp.topic]} if tp.topic in ids.topic_ids else {}),
        }
        for tp, replicas in targets.items()
    ]
    cluster = {} if ids.cluster_id is None else {"cluster_id": ids.cluster_id}
    return orjson.dumps({"version": 1, **cluster, "partitions": entries}).decode()


def decode_document(data: bytes, *, may_be_empty: bool = False) -> MoveFile:
    """Decode Kafka's reassignment JSON, with the fields that `klamm plan` adds. Raises FileFault.

    Only a plan that says so `may_be_empty`: a list without partitions is a mistake of the one who wrote it.
    """
    value = load_object(data)
    if value.get("version", 1) != 1:
        raise FileFault(f"version must be 1, is {value['version']!r}")
    try:
        targets = formats.reassign_targets(value)
    except formats.UndecodableZnode as fault:
        raise FileFault(fault.fault) from None
    if not targets and not (may_be_empty and value.get(NOTHING_TO_CHANGE) is True):
        raise FileFault("the list of partitions is empty")
    starts: dict[TopicPartition, tuple[int, ...]] = {}
    directories: dict[Replica, str] = {}
    for number, (tp, entry) in enumerate(zip(targets, value["partitions"], strict=True)):
        _check(f"partitions[{number}]", tp, targets[tp])
        named = _log_dirs(f"partitions[{number}].log_dirs", targets[tp], entry.get("log_dirs"))
        directories |= {(tp, broker_id): path for broker_id, path in named.items()}
        if "before" in entry:
            starts[tp] = _start(f"partitions[{number}].before", entry["before"])
    try:
        ids = PlanIds.of(value)
    except ValueError as fault:
        raise FileFault(str(fault)) from None
    return MoveFile(targets, starts, directories, ids)


def load_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in a file. Raises FileFault, also for a duplicate key."""
    if not data.strip():
        raise FileFault("the file is empty")
    try:
        value = json.loads(data, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise FileFault(f"not JSON: line {error.lineno} column {error.colno}: {fault_of(error)}") from None
    except UnicodeDecodeError as error:
        raise FileFault(f"not UTF-8: byte {error.start}") from None
    except RecursionError:
        raise FileFault("nested too deeply") from None
    except ValueError as error:
        raise FileFault(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise FileFault("not a JSON object")
    return value


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises FileFault for a duplicate key: JSON does not say which of its values counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        about = {name: value for name, value in pairs if name in {"topic", "partition"}}
        raise FileFault(f'duplicate key "{twice}" in an object{f", the one with {about}" if about else ""}')
    return found


def _check(where: str, tp: TopicPartition, replicas: tuple[int, ...]) -> None:
    if not tp.topic.isprintable():
        raise FileFault(f"{where}.topic is not the name of a topic: {tp.topic!a}")
    if tp.partition < 0:
        raise FileFault(f"{where}.partition must not be negative, is {tp.partition}")
    if tp.partition > INT_MAX:
        raise FileFault(f"{where}.partition must be at most {INT_MAX}, is {tp.partition}")
    fault = replicas_fault(replicas)
    if fault is not None:
        raise FileFault(f"{where}.replicas: {fault}")


def _log_dirs(where: str, replicas: tuple[int, ...], log_dirs: object) -> dict[int, str]:
    """Return the directory of each broker for which one is named."""
    if log_dirs is None:
        return {}
    if not isinstance(log_dirs, list) or len(log_dirs) != len(replicas):
        raise FileFault(f"{where} must be a list of {len(replicas)}, one for each replica, is {log_dirs!r}")
    for name in log_dirs:
        is_path = isinstance(name, str) and name.startswith("/") and name.isprintable()
        if name != _ANY and not is_path:
            raise FileFault(f'{where} must have the absolute path of a log directory or "any", not {name!r}')
    return {broker_id: name for broker_id, name in zip(replicas, log_dirs, strict=True) if name != _ANY}


def _start(where: str, before: object) -> tuple[int, ...]:
    """Return the replicas that a partition had when the plan was made. Kafka's tools ignore this field."""
    if isinstance(before, list) and before and all(map(is_broker_id, before)):
        return tuple(before)
    raise FileFault(f"{where} must be a list of broker ids, is {before!r}")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_FAULT else f"{text[:_LONGEST_FAULT]}…"
