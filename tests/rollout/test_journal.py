"""The files of a rollout beside its plan: the journal, what it tells, and the lock."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from controller.rollout.states import MoveState
from klamm.cli.rollout.history import History
from klamm.cli.rollout.journal import Journal
from klamm.cli.rollout.plan_files import PlanFiles
from transport.metadata import TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_entries_are_read_once_whoever_wrote_them(tmp_path: Path) -> None:
    ours, theirs = Journal(tmp_path / "j"), Journal(tmp_path / "j")
    assert ours.read() == []
    ours.add("one")
    theirs.add("two", why="x")
    assert [entry["is"] for entry in ours.read()] == ["one", "two"]
    assert ours.read() == []
    assert theirs.read()[1]["why"] == "x"


def test_a_line_that_was_left_unfinished_is_no_line_and_harms_no_other(tmp_path: Path) -> None:
    file = tmp_path / "j"
    Journal(file).add("one")
    with file.open("a") as open_file:
        open_file.write('{"is":"tor')
    journal = Journal(file)
    assert [entry["is"] for entry in journal.read()] == ["one"]
    Journal(file).add("two")
    assert [entry["is"] for entry in journal.read()] == ["two"]


def test_an_entry_is_on_the_disk_when_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink().name))
    Journal(tmp_path / "j").add("one")
    Journal(tmp_path / "j").add("two")
    Journal(tmp_path / "j").note("three")
    assert synced == ["j", tmp_path.name, "j"]


def test_history_is_what_the_journal_tells(tmp_path: Path) -> None:
    journal, history = Journal(tmp_path / "j"), History()
    before, skipped = [[*OTHER, [5]]], [[*OTHER, "has changed"]]
    known = {"topics": {"orders": "id"}, "cluster_id": "c", "brokers": [1, 2], "before": before, "skipped": skipped}
    journal.add("started", plan="d", moves=3, **known)
    journal.add("begun", state="in flight", moves=[[*TP, [1, 2]]])
    journal.add("happened", what="brake", why="broker 1 died")
    history.take(journal.read())
    assert (history.digest, history.topics, sorted(history.brokers)) == ("d", {"orders": "id"}, [1, 2])
    assert history.before == {TP: (1, 2), OTHER: (5,)}
    assert (history.begun, history.why) == ({TP}, {OTHER: "has changed"})
    assert (str(history.state), history.brake) == ("paused by brake", "broker 1 died")
    counts = history.counts(3)
    assert (counts[MoveState.PENDING], counts[MoveState.IN_FLIGHT], counts[MoveState.SKIPPED]) == (1, 1, 1)
    journal.add("ended", state="done", moves=[TP], why="")
    journal.add("ended", state="pending", moves=[TP], why="")
    history.take(journal.read())
    assert history.state_of(TP) is MoveState.DONE


def test_only_one_process_carries_a_plan_out(tmp_path: Path) -> None:
    files = PlanFiles(tmp_path)
    with files.locked():
        assert files.holder == f"process {os.getpid()} on {socket.gethostname()}"
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_dead_process_is_nobodys(tmp_path: Path) -> None:
    code = "import os, sys; from pathlib import Path; from klamm.cli.rollout.plan_files import PlanFiles\n"
    code += "with PlanFiles(Path(sys.argv[1])).locked(): os._exit(9)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (done.returncode, [path.name for path in tmp_path.iterdir()]) == (9, ["rollout.lock"])
    assert PlanFiles(tmp_path).holder is None
    with PlanFiles(tmp_path).locked():
        pass


def test_a_plan_is_the_same_however_it_is_spread_over_files(tmp_path: Path) -> None:
    entries = [{"topic": "orders", "partition": p, "replicas": [3], "before": [1]} for p in range(4)]
    whole, parts = tmp_path / "whole.json", tmp_path / "parts"
    whole.write_text(json.dumps({"partitions": entries}))
    parts.mkdir()
    for number in range(4):
        (parts / f"plan-0000{number}-0001.json").write_text(json.dumps({"partitions": [entries[number]]}))
    for name in ("rollback-00001-0001.json", "plan-00001-0001.json.before-execute.json", "plan.parquet"):
        (parts / name).write_text("no plan")
    assert PlanFiles(whole).read().digest == PlanFiles(parts).read().digest
    entries[0]["replicas"] = [4]
    whole.write_text(json.dumps({"partitions": entries}))
    assert PlanFiles(whole).read().digest != PlanFiles(parts).read().digest
