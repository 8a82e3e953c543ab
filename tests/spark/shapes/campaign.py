"""Plans for random clusters of all shapes, judged: `python -m tests.spark.shapes.campaign 0..600`.

Prints each plan with faults, and at the end how many faults there are of which kind, and how long plans took. A seed
alone (`17`) is told with all details.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from queue import SimpleQueue
from statistics import quantiles
from typing import IO, Final

import click
from attrs import define, field

from tests.spark.shapes.clusters import shaped
from tests.spark.shapes.goals import KINDS, kind_of
from tests.spark.shapes.plans import ENGINES
from tests.spark.shapes.worker import ReportLine

CLASSES: Final = ((40, "up to 40 partitions"), (10_000, "up to 10,000"), (sys.maxsize, "more"))
_SHOWN, _SEEDS = 150, 12
"""The number of letters of a fault's details in a line, and of seeds for a kind of fault."""

_EACH: Final = 10
"""After so many plans, a line on stderr says how far the campaign is."""

_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("seeds")
@click.option("--engine", "engines", multiple=True, type=click.Choice(ENGINES), help="Repeatable; kernel and blocks.")
@click.option("--jobs", default=2, show_default=True, help="How many processes plan.")
@click.option("--longest", default=30.0, show_default=True, help="Processor seconds after which a plan is ended.")
@click.option("--every", default=1, show_default=True, help="Of the seeds, only each so manieth.")
@click.option("--goal", "goals", multiple=True, type=click.Choice(list(map(str, KINDS))), help="Repeatable; all.")
def main(seeds: str, engines: Sequence[str], jobs: int, longest: float, every: int, goals: Sequence[str]) -> None:
    """Plan for the clusters of SEEDS (`0..600`, or one alone), and print what is wrong."""
    first, _, end = seeds.partition("..")
    named = range(int(first), int(end or int(first) + 1), every)
    chosen = [seed for seed in named if not goals or str(kind_of(seed)) in goals]
    asked = [(seed, engine, longest) for seed in chosen for engine in engines or ENGINES[:2]]
    if len(chosen) == 1:
        click.echo(_instance(chosen[0]))
    lines = []
    for line in looked_at(asked, jobs):
        lines.append(line)
        if len(lines) % _EACH == 0 or len(lines) == len(asked):
            click.echo(f"{len(lines)} of {len(asked)} plans, up to seed {line.seed}", err=True)
        if len(chosen) == 1:
            click.echo(_details(line))
        elif line.faults:
            click.echo(_brief(line))
    click.echo("\n".join(summed(lines)))
    sys.exit(any(line.faults for line in lines))


Asked = tuple[int, str, float]


def looked_at(asked: Sequence[Asked], jobs: int) -> Iterator[ReportLine]:
    """Yield what came of each, in order."""
    with _workers(jobs) as workers, ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(_ask, repeat(workers), asked)


@define
class _Worker:
    """A process that plans, started when it is needed, and again when it died."""

    process: subprocess.Popen[str] | None = field(default=None)

    def look(self, asked: Asked) -> ReportLine:
        process = self.process = self.process or _start()
        print(json.dumps(asked), file=_there(process.stdin), flush=True)
        answer = _there(process.stdout).readline()
        if answer:
            told = json.loads(answer)
            return ReportLine(**{**told, "faults": tuple(map(tuple, told["faults"]))})
        seed, engine, _ = asked
        given, self.process = shaped(seed), None
        fault = ("worker died", f"exit code {process.wait()}")
        return ReportLine(seed, engine, given.kind, len(given.names), len(given.brokers), None, "", "", (fault,))

    def close(self) -> None:
        if self.process is not None:
            _there(self.process.stdin).close()
            self.process.wait()


def _start() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.spark.shapes.worker"]
    environment = {**os.environ, **_ONE_THREAD}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def _there(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


_Workers = SimpleQueue[_Worker]


@contextmanager
def _workers(jobs: int) -> Iterator[_Workers]:
    workers, queue = [_Worker() for _ in range(jobs)], SimpleQueue[_Worker]()
    for worker in workers:
        queue.put(worker)
    try:
        yield queue
    finally:
        for worker in workers:
            worker.close()


def _ask(workers: _Workers, asked: Asked) -> ReportLine:
    worker = workers.get()
    try:
        return worker.look(asked)
    finally:
        workers.put(worker)


def summed(lines: Sequence[ReportLine]) -> Iterator[str]:
    """Yield the end of a campaign: faults by kind and goal with their seeds, refusals, and processor time."""
    kinds = sorted({(what, line.goal) for line in lines for what, _ in line.faults})
    yield f"\n{len(lines)} plans, {sum(bool(line.faults) for line in lines)} with faults"
    for what, goal in kinds:
        seeds = [line for line in lines if line.goal == goal and what in {fault for fault, _ in line.faults}]
        # The smallest first: it is the one to look at.
        named = sorted({(line.partitions * line.brokers, line.seed) for line in seeds})
        more = f" and {len(named) - _SEEDS} more" if len(named) > _SEEDS else ""
        yield f"{len(seeds):>5}  {what}, {goal}: seeds {', '.join(str(s) for _, s in named[:_SEEDS])}{more}"
    refused = [line.refusal for line in lines if line.refusal]
    yield f"refused: {', '.join(f'{refused.count(r)} {r}' for r in sorted(set(refused))) or 'none'}"
    yield from _cut(lines)
    yield "processor seconds    plans    mean     p99     max"
    least = 0
    for most, name in CLASSES:
        times = [line.cpu for line in lines if least < line.partitions <= most and line.cpu is not None]
        least = most
        if times:
            high = quantiles(times, n=100, method="inclusive")[-1] if len(times) > 1 else times[0]
            yield f"{name:<20} {len(times):>5} {sum(times) / len(times):>7.2f} {high:>7.2f} {max(times):>7.2f}"


def _cut(lines: Sequence[ReportLine]) -> Iterator[str]:
    """Yield how many plans the bound on work ended, and which of them planning again would change."""
    cut = [line for line in lines if line.cut]
    moving = sorted({line.seed for line in cut if line.cut == "moves again"})
    named = f": seeds {', '.join(map(str, moving[:_SEEDS]))}" if moving else ""
    if cut:
        yield f"cut by the bound on work: {len(cut)}, of which {len(moving)} move again{named}"


def _brief(line: ReportLine) -> str:
    told = "; ".join(f"{what} ({details[-_SHOWN:].strip()})" for what, details in line.faults)
    return f"seed {line.seed}, {line.engine}, {line.goal}, {line.partitions} x {line.brokers}: {told}"


def _instance(seed: int) -> str:
    """Return all that there is to know of a seed's cluster, up to a hundred partitions."""
    given = shaped(seed)
    rows = zip(given.names, given.replicas, given.size, given.bytes_in, strict=True)
    told = [f"{topic}-{number} on {list(row)}: {size} bytes, {rate} in" for (topic, number), row, size, rate in rows]
    brokers = [f"broker {n}: {broker}" for n, broker in enumerate(given.brokers.rows)]
    return "\n".join([str(given.goal), *brokers, *told[:100]])


def _details(line: ReportLine) -> str:
    faults = [f"FAULT {what}: {details}" for what, details in line.faults]
    time = "unfinished" if line.cpu is None else f"{line.cpu:.2f} s"
    said = f"refused {line.refusal}: {line.said}" if line.refusal else "planned"
    cut = [f"cut by the bound on work: {line.cut}"] if line.cut else []
    return "\n".join([f"{line.engine}: {said}, {time}", *cut, *faults])


if __name__ == "__main__":
    main()
