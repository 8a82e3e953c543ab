"""`klamm rollout` while Kafka's own controller, played by a script, is active, on a real ZooKeeper."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import trio

from tests.cluster.test_kafka_znodes import TARGET, KafkaEstate, kafka_estate
from transport.child_process import spawn

BEFORE = [1, 2, 3]


def rollout(kafka: KafkaEstate, verb: str, plan: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "klamm", "rollout", verb, str(plan), *options, "--zookeeper", kafka.address]


async def test_kafka_is_asked_for_one_window_after_the_other(zookeeper: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    entries = [{"topic": "orders", "partition": p, "replicas": TARGET, "before": BEFORE} for p in (0, 1)]
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    async with kafka_estate(f"{zookeeper}/kafka-rollout", tmp_path, 3) as kafka:
        kafka.controller.may_catch_up.set()
        done = await trio.run_process(
            rollout(kafka, "run", plan, "--in-flight", "1"), capture_stdout=True, capture_stderr=True
        )
        assert done.stdout == b"rollout: done: 2 done\n"
        assert b"the room on the disks of brokers 4, 5, 6 is not known, and not checked\n" in done.stderr
        asked = [json.loads(request)["partitions"] for request in kafka.controller.requests]
        assert [len(partitions) for partitions in asked] == [1, 1]
        assert kafka.controller.partitions == {"0": TARGET, "1": TARGET}
        done = await trio.run_process(rollout(kafka, "undo", plan), capture_stdout=True)
        assert done.stdout == b"rollout: undone: 2 back\n"
        assert kafka.controller.partitions == {"0": BEFORE, "1": BEFORE}


async def test_what_is_in_flight_ends_before_an_abort_does(zookeeper: str, tmp_path: Path) -> None:
    plan, log = tmp_path / "plan.json", tmp_path / "abort.log"
    entries = [{"topic": "orders", "partition": p, "replicas": TARGET, "before": BEFORE} for p in (0, 1)]
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    async with kafka_estate(f"{zookeeper}/kafka-abort", tmp_path, 3) as kafka:
        running = spawn(rollout(kafka, "run", plan, "--in-flight", "1"), tmp_path / "run.log")
        kafka.spawned.append(running)
        with trio.fail_after(60):
            while not kafka.controller.adding:
                await trio.sleep(0.05)
        aborting = spawn(rollout(kafka, "abort", plan), log)
        kafka.spawned.append(aborting)
        with trio.fail_after(60):
            while "takes no cancel through ZooKeeper" not in (tmp_path / "run.log").read_text():
                await trio.sleep(0.05)
        kafka.controller.may_catch_up.set()
        assert await trio.to_thread.run_sync(aborting.wait) == 0
        assert log.read_text().endswith("rollout: aborted: 1 pending, 1 done\n")
        assert kafka.controller.partitions == {"0": TARGET, "1": BEFORE}
