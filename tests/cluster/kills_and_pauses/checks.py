"""Checks of a run: pure functions over its records, which return a line for each fault."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.cluster.kills_and_pauses.load import Batch, record
from tests.cluster.kills_and_pauses.picture import Picture
from transport.messages import MetadataResponse, PartitionState, Record
from transport.metadata import TopicPartition

LISTENS: Final = " listens on "
"""The words of a service's log line once it has started."""

_CRASH: Final = re.compile(r"Traceback \(most recent call last\)|Fatal Python error")
_WITHOUT_BAR: Final = re.compile(r"^\s*[|+] ?")
SHOWN: Final = 5
"""The most examples named for one kind of fault."""


def record_faults(tp: TopicPartition, batches: Sequence[Batch], values: Sequence[bytes]) -> list[str]:
    """Compare what was read back with what was acknowledged: each record is there, where it was said to be.

    Records that were not acknowledged may be there as well, and one that was sent twice may be there twice.
    """
    faults = []
    offsets = [batch.base_offset for batch in batches]
    if offsets != sorted(set(offsets)):
        faults.append(f"{tp}: what was acknowledged later stands before what was acknowledged earlier")
    there = set(values)
    wanted = [
        (batch.base_offset + place, record(tp, batch.first + place))
        for batch in batches
        for place in range(batch.count)
    ]
    lost = [_name(value) for _, value in wanted if value not in there]
    if lost:
        faults.append(f"{tp}: {len(lost)} acknowledged records are lost: {_some(lost)}")
    elsewhere = [
        f"{_name(value)} at offset {offset}"
        for offset, value in wanted
        if value in there and (offset >= len(values) or values[offset] != value)
    ]
    if elsewhere:
        faults.append(f"{tp}: {len(elsewhere)} records are not where they were acknowledged: {_some(elsewhere)}")
    return faults


def differing_logs(tp: TopicPartition, logs: Mapping[int, Sequence[Record]]) -> list[str]:
    """Compare the logs of the replicas of a partition, by broker, when nothing is written any more."""
    different = Counter(tuple(log) for log in logs.values())
    if len(different) <= 1:
        return []
    return [f"{tp}: the logs differ: {', '.join(f'broker {id_} has {len(log)} records' for id_, log in logs.items())}"]


def crashes(name: str, text: str) -> list[str]:
    """Return a line for each kind of traceback in a log, with how often it is there."""
    ends = Counter(_cause(text[found.end() :]) for found in _CRASH.finditer(text))
    return [f"{name} logged {count} x a traceback: {cause}" for cause, count in ends.items()]


def _cause(text: str) -> str:
    """Return the line that ends a traceback, the first that is not indented, without the bar of an exception group."""
    lines = [_WITHOUT_BAR.sub("", line) for line in text.splitlines()[1:]]
    return next((line for line in lines if line and not line[0].isspace()), "(it has no end)")


def exit_fault(name: str, code: int | None, said: str, told: signal.Signals | None = None) -> str | None:
    """Judge how a process ended, and whether it was told to: None if that is right.

    A process that gets SIGTERM ends with code 0, or by the signal if it had not started yet. `code` is None if it never
    ended.
    """
    last = (said.strip().splitlines() or ["nothing"])[-1]
    if told is None:
        return f"{name} ended by itself with code {code}; its last words: {last}"
    if code is None:
        return f"{name} did not end after {told.name}; its last words: {last}"
    if code == 0 or (code == -told and LISTENS not in said):
        return None
    return f"{name} ended with code {code} after {told.name}; its last words: {last}"


def unsettled(picture: Picture, brokers: Iterable[int]) -> list[str]:
    """Return what is still to come, or wrong, in a cluster in which everything has been started."""
    ids = sorted(brokers)
    faults = list(picture.pending)
    if sorted(picture.brokers) != ids:
        faults.append(f"brokers {sorted(picture.brokers)} are registered instead of {ids}")
    if picture.controller is None:
        faults.append("nobody is in office")
    for tp, state in picture.states.items():
        faults += _partition_faults(tp, state)
    for id_ in ids:
        faults += _metadata_faults(picture, id_) + _disk_faults(picture, id_)
    return faults


def _partition_faults(tp: TopicPartition, state: PartitionState) -> list[str]:
    faults = []
    if state.leader not in state.isr:
        faults.append(f"{tp} is led by {state.leader}, its ISR is {list(state.isr)}")
    if sorted(state.isr) != sorted(state.replicas):
        faults.append(f"{tp} has ISR {list(state.isr)} of replicas {list(state.replicas)}")
    if state.adding_replicas or state.removing_replicas:
        faults.append(f"{tp} is being moved: +{list(state.adding_replicas)} -{list(state.removing_replicas)}")
    return faults


def _metadata_faults(picture: Picture, broker_id: int) -> list[str]:
    """Compare what a broker answers to Metadata with ZooKeeper."""
    said = picture.metadata.get(broker_id)
    if said is None:
        return [f"broker {broker_id} does not answer"]
    faults = []
    if (said.controller and said.controller.id, said.controller_epoch) != (picture.controller, picture.epoch):
        faults.append(f"broker {broker_id} takes {_holder(said)} for the controller")
    if {endpoint.id: endpoint for endpoint in said.brokers} != dict(picture.brokers):
        faults.append(f"broker {broker_id} takes {[endpoint.id for endpoint in said.brokers]} for the live brokers")
    known = {state.tp: state for state in said.partitions}
    wrong = [str(tp) for tp in known.keys() | picture.states.keys() if known.get(tp) != picture.states.get(tp)]
    if wrong:
        faults.append(f"broker {broker_id} knows other things than ZooKeeper of {_some(sorted(wrong))}")
    return faults


def _holder(said: MetadataResponse) -> str:
    return f"{said.controller.id if said.controller else 'nobody'} with epoch {said.controller_epoch}"


def _disk_faults(picture: Picture, broker_id: int) -> list[str]:
    """Compare the directories on a broker's disk with its assigned replicas."""
    wanted = {str(tp): state.topic_id for tp, state in picture.states.items() if broker_id in state.replicas}
    there = picture.disks.get(broker_id, {})
    strays = sorted(name for name in there if there[name] != wanted.get(name))
    missing = sorted(name for name in wanted if name not in there)
    faults = []
    if strays:
        faults.append(f"broker {broker_id} has on its disk what it should not: {_some(strays)}")
    if missing:
        faults.append(f"broker {broker_id} lacks on its disk {_some(missing)}")
    return faults


def _name(value: bytes) -> str:
    return value.rstrip(b".").decode(errors="replace").strip()


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
