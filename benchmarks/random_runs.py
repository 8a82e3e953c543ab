"""The processor time of random runs, one after the other on one core, as `klamm simulate` does on each of its own.

On a machine that does other work, run two versions in turns and compare the ratios. The same seed draws another plan in
another version, so compare the ratios of cluster time to processor time, too.

    python -m benchmarks.random_runs [SEEDS]
"""

from __future__ import annotations

import sys
from statistics import median
from typing import Final

from benchmarks.kit import figures
from benchmarks.kit.times import taking_time
from simulator.random_run.plan import draw
from simulator.random_run.run import run
from simulator.trace import Trace

SEEDS: Final = 100
LIMIT_SECONDS: Final = 1.0
"""The most that a seed may cost on average; far above what it does, as machines differ."""


def cost_of(seed: int) -> tuple[float, float]:
    """Return the processor time of a run, with the draw of its plan, and the virtual seconds that it lasts."""
    trace = Trace()
    with taking_time() as times:
        run(draw(seed), trace=trace)
    return times[0].processor, trace.now


def main() -> None:
    """Print the cost of the runs; end with exit code 1 if it is above the limit."""
    count = int(sys.argv[1]) if sys.argv[1:] else SEEDS
    cost_of(0)  # the first run pays for what is made once
    runs = [cost_of(seed) for seed in range(1, count + 1)]
    costs = [cost for cost, _ in runs]
    cost, lasted = sum(costs) / count, sum(seconds for _, seconds in runs) / count
    print(f"{count} seeds, {lasted:.1f} s of cluster time each")
    print(f"{cost * 1000:.0f} ms of processor time each, median {median(costs) * 1000:.0f} ms: {1 / cost:.1f} a second")
    print(f"{lasted / cost:.0f} : 1 of cluster time to processor time")
    figures.note(f"{count} seeds", "processor, s, of a second of cluster time", cost / lasted)
    if cost > LIMIT_SECONDS:
        sys.exit(f"a seed should cost {LIMIT_SECONDS:.0f} s at most")


if __name__ == "__main__":
    main()
