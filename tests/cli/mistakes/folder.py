"""The folder in which mistakes are made: files of every kind that a user may pass to a command."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

Contents = dict[str, tuple[object, ...]]

BROKERS: Final = [{"id": id_, "host": "a", "port": 1, "rack": None} for id_ in (1, 2, 3, 4)]


def _partition(topic: str, partition: int, *replicas: int) -> dict[str, Any]:
    state = {"topic": topic, "partition": partition, "replicas": replicas, "leader": replicas[0], "isr": replicas}
    return {**state, "adding_replicas": [], "removing_replicas": []}


def _snapshot(*partitions: dict[str, Any], brokers: object = BROKERS) -> str:
    return json.dumps({"brokers": brokers, "partitions": partitions})


def _moves(*entries: str, head: str = '"version":1,') -> str:
    return f'{{{head}"partitions":[{",".join(entries)}]}}'


def _entry(topic: str, partition: object, replicas: object, more: str = "") -> str:
    return f'{{"topic":"{topic}","partition":{partition},"replicas":{replicas}{more}}}'


_GOOD: Final = _moves(_entry("orders", 0, "[1,2,4]"))
_SNAPSHOT: Final = _snapshot(_partition("orders", 0, 1, 2), _partition("orders", 1, 2, 3))

FILES: Final[dict[str, str | bytes]] = {
    # Of no use to anybody.
    "empty": "",
    "spaces": "  \n\n",
    "truncated.json": _GOOD[:-9],
    "array.json": "[]",
    "number.json": "1",
    "null.json": "null",
    "string.json": '"orders"',
    "object.json": "{}",
    "nan.json": '{"version":NaN,"partitions":NaN}',
    "deep.json": "[" * 100_000,
    "utf16.json": _GOOD.encode("utf-16"),
    "latin1.json": _GOOD.replace("orders", "örders").encode("latin-1"),
    "bom.json": b"\xef\xbb\xbf" + _GOOD.encode(),
    "surrogate.json": _moves(_entry("\\ud800", 0, "[1]")),
    "binary": bytes(range(256)),
    "prose.txt": "Dear controller, move everything.\n",
    # Moves.
    "good.json": _GOOD,
    "version-2.json": _moves(_entry("orders", 0, "[1,2,4]"), head='"version":2,'),
    "no-list.json": '{"version":1,"partitions":{}}',
    "nothing.json": _moves(),
    "no-replicas.json": _moves(_entry("orders", 0, "[]")),
    "twice.json": _moves(_entry("orders", 0, "[1,2,4]"), _entry("orders", 0, "[1,2,5]")),
    "key-twice.json": _moves('{"topic":"orders","topic":"single","partition":0,"replicas":[1,2,4]}'),
    "broker-twice.json": _moves(_entry("orders", 0, "[1,2,2]")),
    "negative-broker.json": _moves(_entry("orders", 0, "[1,2,-4]")),
    "text-broker.json": _moves(_entry("orders", 0, '[1,2,"4"]')),
    "true-broker.json": _moves(_entry("orders", 0, "[1,2,true]")),
    "half-broker.json": _moves(_entry("orders", 0, "[1,2,3.5]")),
    "huge-broker.json": _moves(_entry("orders", 0, f"[1,2,{10**22}]")),
    "exponent-broker.json": _moves(_entry("orders", 0, "[1,2,1e400]")),
    "negative-partition.json": _moves(_entry("orders", -1, "[1,2,4]")),
    "huge-partition.json": _moves(_entry("orders", 10**22, "[1,2,4]")),
    "text-partition.json": _moves(_entry("orders", '"0"', "[1,2,4]")),
    "no-topic.json": _moves('{"partition":0,"replicas":[1]}'),
    "empty-topic.json": _moves(_entry("", 0, "[1]")),
    "slash-topic.json": _moves(_entry("../../brokers", 0, "[1]")),
    "long-topic.json": _moves(_entry("t" * 300, 0, "[1]")),
    "control-topic.json": _moves(_entry("a\\u0007b", 0, "[1]")),
    "log-dirs-short.json": _moves(_entry("orders", 0, "[1,2,4]", ',"log_dirs":["any"]')),
    "log-dirs-named.json": _moves(_entry("orders", 0, "[1,2,4]", ',"log_dirs":["any","any","/data"]')),
    "unknown-topic.json": _moves(_entry("nowhere", 0, "[1]")),
    "unknown-partition.json": _moves(_entry("orders", 99, "[1,2,4]")),
    "unknown-broker.json": _moves(_entry("orders", 0, "[1,2,99]")),
    "dead-broker.json": _moves(_entry("orders", 0, "[1,2,8]")),
    "one-bad.json": _moves(_entry("orders", 0, "[1,2,4]"), _entry("orders", 1, "[2,3,99]")),
    "dying.json": _moves(_entry("dying", 0, "[1,2]")),
    "single.json": _moves(_entry("single", 0, "[1]")),
    # Elections.
    "order-of-strangers.json": _moves(_entry("orders", 0, "[4,5,6]")),
    "order-short.json": _moves(_entry("orders", 0, "[2,1]")),
    # What plans are made of.
    "snapshot.json": _SNAPSHOT,
    "brokers-only.json": json.dumps({"brokers": BROKERS}),
    "no-brokers.json": _snapshot(_partition("orders", 0, 1, 2), brokers=[]),
    "same-broker.json": _snapshot(_partition("orders", 0, 1, 2), brokers=[*BROKERS, BROKERS[0]]),
    "same-partition.json": _snapshot(_partition("orders", 0, 1, 2), _partition("orders", 0, 2, 3)),
    "replica-twice.json": _snapshot(_partition("orders", 0, 1, 1)),
    "all-on-two.json": _snapshot(_partition("orders", 0, 1, 2), brokers=BROKERS[:2]),
    "text-id.json": _snapshot(_partition("orders", 0, 1, 2), brokers=[{**BROKERS[0], "id": "one"}]),
    "loads.csv": "topic,partition,bytes\norders,0,10\n",
    "loads-head.csv": "topic,partition,size\norders,0,10\n",
    "loads-negative.csv": "topic,partition,bytes\norders,0,-10\n",
    "loads-nan.csv": "topic,partition,bytes\norders,0,nan\n",
    "loads-inf.csv": "topic,partition,bytes\norders,0,inf\n",
    "loads-twice.csv": "topic,partition,bytes\norders,0,10\norders,0,20\n",
    "loads-short.csv": "topic,partition,bytes\norders,0\n",
    "brokers.csv": "id,rack,capacity\n1,a,1\n2,b,1\n3,a,1\n4,b,1\n",
    "brokers-twice.csv": "id,rack,capacity\n1,a,1\n1,b,1\n",
    "brokers-zero.csv": "id,rack,capacity\n1,a,0\n",
    "brokers-unknown.csv": "id,rack,capacity\n99,a,1\n",
    "brokers-state.csv": "id,state\n1,sleepy\n",
    "brokers-racks.csv": "id,racks\n1,a\n",
    "capacity.json": '{\n"brokerCapacities": [{"brokerId": "-1", "capacity": {"DISK": "100000"}}]}',
    "plan.json": _moves(_entry("orders", 0, "[1,2,4]", ',"before":[1,2,3]')),
    "executed.txt": f"Current partition replica assignment\n\n{_GOOD}\n\nSave this to use as the "
    "--reassignment-json-file option during rollback\n",
    "described.txt": "Topic: orders\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\nError while executing topic command\n",
    # Settings.
    "klamm.toml": "[controller]\ncontroller.id = 1001\n",
    "wrong.toml": "[controller\n",
    "table.toml": "[contoller]\ncontroller.id = 1001\n",
    "setting.toml": "[controller]\nreqest.timeout.ms = 5\n",
    "value.toml": '[controller]\nrequest.timeout.ms = "soon"\n',
    "range.toml": "[controller]\nrequest.timeout.ms = -1\n",
    "twice.toml": "[controller]\ncontroller.id = 1\ncontroller.id = 2\n",
    "both.toml": '[controller]\n"controller.id" = 1\ncontroller.id = 2\n',
    "latin1.toml": "[broker]\nrack = 'Köln'\n".encode("latin-1"),
    "no-id.toml": "[broker]\nrack = 'a'\n",
    # Scenarios.
    "tab.yaml": "brokers:\n\t3\n",
    "list.yaml": "- 1\n",
    "unknown.yaml": "brokers: 3\nbrokrs: 3\n",
    "bomb.yaml": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "python.yaml": "brokers: !!python/object/apply:os.system ['true']\n",
    "latin1.yaml": "title: Köln\n".encode("latin-1"),
    "twice.yaml": "brokers: 3\nbrokers: 4\n",
    "keep.json": "what somebody wants to keep\n",
}


PROFILES: Final = {
    "config": '[lab]\nbootstrap-server = "127.0.0.1:1"\n\n[old]\nzookeeper = "127.0.0.1:1/old"\n\n'
    '[typo]\nbootstrap-servers = "127.0.0.1:1"\n\n[safe]\nbootstrap-server = "127.0.0.1:1"\n'
    'command-config = "nowhere.properties"\n',
    "broken-config": "[lab\n",
}
"""Folders of configuration, each with profiles."""

FORBIDDEN: Final = ("secret.json", "locked/")
"""Files that may not be read, and folders that may not be written to."""


def furnish(folder: Path) -> None:
    """Put everything into a folder: files, folders, devices, and what is none of these."""
    for name, text in FILES.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    for name, text in PROFILES.items():
        (folder / name / "klamm").mkdir(parents=True)
        (folder / name / "klamm" / "profiles.toml").write_text(text)
    (folder / "folder").mkdir()
    (folder / "full-folder").mkdir()
    (folder / "full-folder" / "file").write_text("")
    (folder / "secret.json").write_text(_GOOD)
    (folder / "secret.json").chmod(0)
    (folder / "locked").mkdir(0o500)
    (folder / "nowhere-link").symlink_to("nowhere/file")
    (folder / "loop").symlink_to("loop")
    for name, minor in (("full", 7), ("zero", 5)):
        _device(folder / name, minor)


def _device(path: Path, minor: int) -> None:
    """Make a device of our own; who may not make one gets a link to the system's."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("rb").close()
    except PermissionError:
        path.unlink(missing_ok=True)
        path.symlink_to(f"/dev/{path.name}")


def contents(folder: Path) -> Contents:
    """Return everything in a folder, with what would change if somebody touched it."""
    return {str(path): _described(path) for path in folder.rglob("*")}


def _described(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    changed = () if stat.S_ISDIR(found.st_mode) else (found.st_size, found.st_mtime_ns)
    return stat.S_IFMT(found.st_mode), found.st_ino, *changed
