"""The demo's second move, made by the planner and executed like any other."""

from __future__ import annotations

import click
import orjson

from controller.admin.planning import PlanRequest, compute_plan
from controller.monitoring.state_dump import dump
from klamm.cli.demo.scenario import DemoScene, reassign
from klamm.cli.reassignment.watching import wait_for
from spark_bridge.inputs.sources import Sources
from spark_bridge.model.goal import Goal, GoalKind
from transport.metadata import TopicPartition


async def remove_broker_one(scene: DemoScene) -> None:
    """Plan new places for the replicas of broker 1, and move them there."""
    click.echo("planning new places for the replicas of broker 1")
    snapshot, folder = scene.cluster.data_dir / "snapshot.json", scene.cluster.data_dir / "plan"
    snapshot.write_bytes(orjson.dumps(await dump(scene.cluster.store)))
    goal = Goal(GoalKind.REMOVE_BROKERS, frozenset({1}))
    await compute_plan(PlanRequest(Sources(snapshot), goal, str(folder)))
    rows = orjson.loads((folder / "plan.json").read_bytes())["partitions"]
    targets = {TopicPartition(row["topic"], row["partition"]): tuple(row["replicas"]) for row in rows}
    await reassign(scene.admin, targets)
    await wait_for(scene.admin, targets)
    moved = ", ".join(f"{tp} to {list(target)}" for tp, target in targets.items())
    click.echo(f"moved by the plan: {moved}")
