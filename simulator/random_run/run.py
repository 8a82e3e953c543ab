"""One random run: a plan executed on a simulated cluster, and its outcome."""

from __future__ import annotations

import gc
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from traceback import format_exception_only
from typing import Final

import trio
from attrs import frozen

from simulator import scheduling
from simulator.administration import partition_named
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.quiet_logs import ignore, quiet_logs
from simulator.random_run.coverage import Coverage
from simulator.random_run.plan import RunPlan
from simulator.random_run.scene import carry_out
from simulator.random_run.spectator import Spectator
from simulator.safety.invariants import Violation
from simulator.trace import Trace
from transport.metadata import TopicPartition

LAST_EVENTS: Final = 30
RECORD_BYTES: Final = 500


@frozen
class RunOutcome:
    """The outcome of a run. `last` holds the last events of a run that failed."""

    seed: int
    digest: str
    counts: Mapping[str, int]
    violation: Violation | None = None
    last: tuple[str, ...] = ()
    is_kafkas: bool = False
    """Whether the brokers were Apache Kafka's."""

    always: tuple[str, ...] = ()
    """The features that were wanted, whatever the seed."""

    @property
    def options(self) -> str:
        """The options of the command that replays it."""
        wanted = "".join(f" --with {shlex.quote(name)}" for name in self.always)
        return f"{' --kafka' * self.is_kafkas}{wanted} --seed {self.seed}"


def run(plan: RunPlan, *, trace: Trace | None = None, spectator: Spectator | None = None) -> RunOutcome:
    """Execute a plan in a trio run of its own. The product's log is dropped, except for unexpected failures."""
    trace, spectator = trace or Trace(), spectator or Spectator()
    counts: Counter[str] = Counter()
    violation = None
    with quiet_logs(ignore), _without_collector():
        try:
            scheduling.run(partial(_execute, plan, trace, counts, spectator), seed=plan.seed)
        except Violation as found:
            violation = found
        except Exception as error:  # noqa: BLE001  whatever nobody foresaw is what we are after
            violation = Violation("a cluster starts and stops without an exception", _text(error))
    last = () if violation is None else _up_to_violation(trace)
    is_kafkas, counted = plan.settings.is_kafkas, dict(sorted(counts.items()))
    return RunOutcome(plan.seed, trace.digest, counted, violation, last, is_kafkas, plan.always)


async def _execute(plan: RunPlan, trace: Trace, counts: Counter[str], spectator: Spectator) -> None:
    async with simulated_cluster(plan.settings, seed=plan.seed, trace=trace) as cluster:
        safety = cluster.world.safety
        with quiet_logs(partial(safety.report, "nothing fails unexpectedly")):
            try:
                await _do_all(plan, cluster, Coverage(cluster.durable, counts), spectator)
            except Exception as error:  # noqa: BLE001  whatever nobody foresaw is what we are after
                safety.report("a run ends without an exception", _text(error))
                await trio.sleep_forever()
        judged = safety.judge_history()
        counts["histories explained"] += judged.explained
        counts["histories too long"] += judged.too_long
        counts["histories with rows written by hand"] += judged.written_by_others
        counts["records acknowledged"] += cluster.load.acknowledged
        unclean, lost = safety.losses()
        counts["unclean elections"] += unclean
        counts["acknowledged records lost by unclean elections"] += lost


async def _do_all(plan: RunPlan, cluster: SimulatedCluster, coverage: Coverage, spectator: Spectator) -> None:
    cluster.steps.watch(coverage.step)
    await _prepare(plan, cluster)
    spectator.begins(cluster)
    await carry_out(plan.happenings, plan.seconds, cluster, coverage, spectator)
    await cluster.settle()
    spectator.settled(cluster)


async def _prepare(plan: RunPlan, cluster: SimulatedCluster) -> None:
    values = [f"{n:>{RECORD_BYTES}}".encode() for n in range(plan.records)]
    # One producer for all partitions: a run has better uses for its time than connections.
    async with cluster.load.producer("producer") as producer:
        for topic in plan.topics:
            await cluster.create_topic(topic.name, topic.assignment)
            for number, replicas in enumerate(topic.assignment):
                if values and len(replicas) >= plan.settings.min_insync_replicas:
                    await cluster.load.send(producer, TopicPartition(topic.name, number), values)
    for name in plan.load:
        # Each partition has a producer of its own, so that one waiting for a leader does not delay the others.
        cluster.load.start(f"producer-{name}", [partition_named(name)], plan.records_per_second / len(plan.load))


def _text(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return "".join(format_exception_only(error)).strip()


def _up_to_violation(trace: Trace) -> tuple[str, ...]:
    """Return the last events up to the violation; those after it only belong to the end of the run."""
    entries = list(trace.entries)
    end = next((n for n, entry in enumerate(entries, 1) if entry.kind == "violation"), len(entries))
    return tuple(entry.text() for entry in entries[max(end - LAST_EVENTS, 0) : end])


@contextmanager
def _without_collector() -> Iterator[None]:
    """Collect garbage after the block, not during it: that is faster, and nothing depends on the time of collection.

    Only what the block has made is searched for garbage.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        if was_enabled:
            gc.enable()
