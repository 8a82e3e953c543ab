"""A script of commands as the docs of release 0.1 showed them: each still runs, with a warning at most."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.cli.shell import Shell, run_klamm

SCRIPT: Final = """\
topic create orders --partitions 12 --replication-factor 3
topic create payments --replication-factor 3 --config min.insync.replicas=2
topic create moved --replica-assignment 1:2:3,4:5:6
topic list
topic list -o yaml
topic describe orders -o json
topic describe --under-replicated-partitions
topic add-partitions payments --partitions 2
cluster describe
broker list -o json
config alter --entity-type topics --entity-name orders --add-config min.insync.replicas=2
config describe --entity-type topics --entity-name orders
config alter --entity-type topics --entity-name orders --delete-config min.insync.replicas
log-dirs describe
state dump --format jsonl -o snapshot.jsonl
plan remove-brokers --snapshot snapshot.jsonl --brokers 4 -o plan.json
plan rebalance --snapshot snapshot.jsonl -o monday --json
plan leaders --snapshot snapshot.jsonl --output leaders.json
plan generate-cluster --shape mostly-empty --topics 20 --partitions 200 -o cluster
rollout run plan.json --throttle 50000000 --dry-run
rollout run plan.json --throttle 50000000
rollout status plan.json
rollout list
reassignment execute --reassignment-json-file move.json --dry-run
reassignment execute --reassignment-json-file move.json --rollback-json-file back.json
reassignment verify --reassignment-json-file move.json
reassignment execute --reassignment-json-file back.json --throttle 50000000
reassignment list
reassignment cancel --all
leader elect --election-type preferred --topic moved --partition 0 --replicas 3,1,2
leader elect --election-type preferred --all-topic-partitions
leader elect --election-type unclean --topic moved --partition 0
simulate --seeds 1..2
top --once
topic delete payments
"""
WARNINGS: Final = ("old spelling", "not confirmed")


@pytest.mark.soak  # each old spelling has a quick test of its own
async def test_the_script_runs_unchanged(klamm: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = SCRIPT.splitlines()
    assert len(lines) >= 30
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KLAMM_BOOTSTRAP_SERVER", klamm.bootstrap)
    moves = [{"topic": "moved", "partition": 0, "replicas": [1, 2, 5]}]
    (tmp_path / "move.json").write_text(json.dumps({"version": 1, "partitions": moves}))
    warned = 0
    for line in lines:
        done = await run_klamm(*shlex.split(line))
        said = done.stderr.decode()
        assert done.returncode == 0, (line, said)
        warnings = [text for text in said.splitlines() if any(word in text for word in WARNINGS)]
        assert len(warnings) <= 1, (line, said)
        warned += len(warnings)
    assert warned == 6
    written = [tmp_path / name for name in ("plan.json", "monday", "leaders.json", "snapshot.jsonl", "cluster")]
    assert [path.name for path in written if not path.exists()] == []
