"""Processor time and memory of plans for mid and large clusters of every shape: `python -m tests.spark.shapes.heavy`.

Each plan is made in a process of its own. The bounds are 20 s up to 10,000 partitions and 60 s up to 100,000.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from random import Random
from typing import Final

import click
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.model.packing import blocks_of
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.faults import of_lists
from tests.spark.shapes.plans import TookTooLong, in_process, planned, table_of, within
from tests.spark.shapes.sizes import (
    Sizes,
    bimodal,
    empty,
    equal,
    exponential,
    lognormal,
    mostly_empty,
    one_giant,
    uniform,
    zipf,
)

SIZES_OF: Final[dict[str, Sizes]] = {
    "zipf": zipf,
    "lognormal": lognormal,
    "exponential": exponential,
    "bimodal": bimodal,
    "uniform": uniform,
    "equal": equal,
    "one-giant": one_giant,
    "mostly-empty": mostly_empty,
    "empty": empty,
}

SCALES: Final = ((7_214, 58), (10_000, 100), (100_000, 300))
GOALS: Final = ("rebalance", "add-brokers", "remove-brokers", "rf-up", "rf-down", "relieve", "repair-racks", "leaders")
_FACTOR: Final = 3

_SPREAD: Final = 0.95
"""The part of the partitions whose replicas are in different racks."""

_TOGETHER: Final = 10_000
"""The most partitions that are drawn together; each needs a number for every broker."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--shape", "shapes", multiple=True, type=click.Choice(list(SIZES_OF)), help="Repeatable; all.")
@click.option("--goal", "goals", multiple=True, type=click.Choice(GOALS), help="Repeatable; all.")
@click.option("--partitions", "largest", default=10_000, show_default=True, help="No cluster has more.")
@click.option("--seed", default=1, show_default=True, help="Of the clusters.")
@click.option("--longest", default=120.0, show_default=True, help="Processor seconds after which a plan is ended.")
@click.option("--alone", is_flag=True, hidden=True, help="Plan the one that is named, here.")
def main(shapes: Sequence[str], goals: Sequence[str], largest: int, seed: int, longest: float, *, alone: bool) -> None:
    """Print a table of how long plans take, and what they reach."""
    if alone:
        click.echo(json.dumps(measured(shapes[0], goals[0], largest, seed, longest)))
        return
    click.echo(f"{'cluster':<14} {'shape':<13} {'goal':<15} {'CPU s':>7} {'MB':>6}  moved / bound, and what is wrong")
    for partitions, brokers in SCALES:
        if partitions > largest:
            continue
        for shape in shapes or SIZES_OF:
            for goal in goals or GOALS:
                row = _in_a_process(["--shape", shape, "--goal", goal, "--seed", str(seed)], partitions, longest)
                click.echo(f"{f'{partitions} x {brokers}':<14} {shape:<13} {goal:<15} {row}")


def _in_a_process(names: Sequence[str], partitions: int, longest: float) -> str:
    command = [sys.executable, "-m", "tests.spark.shapes.heavy", "--alone", *names]
    command += ["--partitions", str(partitions), "--longest", str(longest)]
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **one_thread}, check=False)
    if done.returncode:
        return f"exit code {done.returncode}"
    cpu, megabytes, told = json.loads(done.stdout)
    return f"{cpu:>7.1f} {megabytes:>6.0f}  {told}"


def measured(shape: str, goal: str, partitions: int, seed: int, longest: float) -> tuple[float, float, str]:
    """Plan for one cluster; return processor seconds, megabytes at the most, and what to say of it."""
    brokers = dict(SCALES)[partitions]
    given = heavy(shape, goal, partitions, brokers, seed)
    blocks = list(blocks_of(table_of(given), given.brokers.ids))
    try:
        with within(longest):
            plan = planned(given, blocks, in_process)
    except TookTooLong:
        return longest, _megabytes(), "unfinished"
    if plan.summary is None or plan.refusal is not None:
        return plan.cpu, _megabytes(), f"refused: {plan.refusal}"
    summary = plan.summary
    cost = summary.moved_bytes if any(given.size) else summary.moved_replicas
    ratio = cost / summary.lower_bound if summary.lower_bound else 1.0
    ends = ", ".join(f"{e.measure} {100 * e.before:.0f} -> {100 * e.after:.1f} %" for e in summary.evenness)
    faults = "".join(f"; FAULT {fault.what}: {fault.details[:100]}" for fault in of_lists(given, plan))
    return plan.cpu, _megabytes(), f"{ratio:.2f}; {ends}{faults}"


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def heavy(shape: str, goal: str, partitions: int, brokers: int, seed: int) -> Instance:
    """Draw a large cluster with a goal."""
    kind = "set-replication-factor" if goal.startswith("rf-") else goal
    rng, drawn = Random(seed), np.random.default_rng(seed)
    rows = [Broker(n, f"rack-{n % 5}", rng.choice((1.0, 1.0, 2.0))) for n in range(brokers)]
    added = max(1, brokers // 20) if goal == "add-brokers" else 0
    sizes = [1_000_000 * size for size in SIZES_OF[shape](rng, partitions)]
    replicas = _Placement.of(drawn, rows[: brokers - added]).draw(drawn, partitions)
    held = np.bincount(replicas.ravel(), np.repeat(np.array(sizes, float), _FACTOR), brokers)
    fullest = np.argsort(-held, kind="stable")[:2].tolist()
    return Instance(
        seed=seed,
        kind=goal,
        names=tuple((f"topic-{n // 20}", n % 20) for n in range(partitions)),
        replicas=tuple(map(tuple, replicas.tolist())),
        size=tuple(sizes),
        bytes_in=tuple(int(size * rng.uniform(0.0, 0.001)) for size in sizes),
        brokers=Brokers.of(rows),
        goal=_goal(goal, GoalKind(kind), brokers, added, fullest),
    )


def _goal(name: str, kind: GoalKind, brokers: int, added: int, fullest: Sequence[int]) -> Goal:
    match name:
        case "add-brokers":
            return Goal(kind, frozenset(range(brokers - added, brokers)))
        case "remove-brokers":
            return Goal(kind, frozenset({0, 7, 13}))
        case "relieve":
            return Goal(kind, frozenset(fullest))
        case "rf-up" | "rf-down":
            return Goal(kind, replication_factor=_FACTOR + (1 if name == "rf-up" else -1))
        case _:
            return Goal(kind)


@frozen(eq=False)
class _Placement:
    """The weights with which brokers drew replicas so far, (B), and their racks, (B)."""

    pull: NDArray[np.float64]
    rack: NDArray[np.int64]

    @classmethod
    def of(cls, drawn: np.random.Generator, rows: Sequence[Broker]) -> _Placement:
        names = sorted({str(b.rack) for b in rows})
        capacity = np.array([b.capacity for b in rows])
        return cls(drawn.uniform(0.3, 1.0, len(rows)) * capacity, np.array([names.index(str(b.rack)) for b in rows]))

    def draw(self, drawn: np.random.Generator, partitions: int) -> NDArray[np.int64]:
        """Draw (P, 3) replicas; of one partition in twenty without regard for racks."""
        parts = range(0, partitions, _TOGETHER)
        return np.concatenate([self._some(drawn, min(_TOGETHER, partitions - first)) for first in parts])

    def _some(self, drawn: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Draw (n, 3) replicas, one column after another: the broker with the least key of those that may follow."""
        keys = drawn.exponential(size=(count, len(self.pull))) / self.pull
        spread, rows = drawn.random(count) < _SPREAD, np.arange(count)
        lists = np.empty((count, _FACTOR), np.int64)
        for column in range(_FACTOR):
            lists[:, column] = broker = keys.argmin(axis=1)
            keys[rows, broker] = np.inf
            keys[spread[:, None] & (self.rack == self.rack[broker][:, None])] = np.inf
        return lists


if __name__ == "__main__":
    main()
