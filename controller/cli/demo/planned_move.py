"""The demo's second move: planned on Spark, executed like any other."""

from __future__ import annotations

import click
import orjson

from controller.admin.removal_planning import compute_plan
from controller.cli.demo.scenario import Scene, reassign
from controller.cli.reassignment.watching import wait_for
from controller.monitoring.state_dump import dump
from spark_bridge.plan import PlanRequest
from transport.metadata import TopicPartition


async def remove_broker_one(scene: Scene) -> None:
    """Compute on Spark where the replicas of broker 1 go, and move them there."""
    click.echo("computing on Spark where the replicas of broker 1 go")
    snapshot = scene.cluster.data_dir / "snapshot.json"
    snapshot.write_bytes(orjson.dumps(await dump(scene.cluster.store)))
    plan = await compute_plan(PlanRequest(str(snapshot), (1,)))
    targets = {TopicPartition(item.topic, item.partition): item.replicas for item in plan.partitions}
    await reassign(scene.admin, targets)
    await wait_for(scene.admin, targets)
    moved = ", ".join(f"{tp} to {list(target)}" for tp, target in targets.items())
    click.echo(f"moved by the plan: {moved}")
