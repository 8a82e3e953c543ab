"""The plan of a random run: plain data to print and compare, drawn in full from the seed before the run begins."""

from __future__ import annotations

from attrs import frozen

from simulator.actions.requests import CreateTopic
from simulator.random_run import chores, elections, faults, late_cancels, requests, topics, topology
from simulator.random_run.happenings import Happening
from simulator.scheduling import generator
from simulator.settings import Settings


@frozen
class RunPlan:
    """Everything that a random run does."""

    seed: int
    settings: Settings
    topics: tuple[CreateTopic, ...]
    """The topics that exist at the beginning."""

    records: int
    """The number of records in each partition at the beginning."""

    load: tuple[str, ...]
    """The partitions to which producers write throughout."""

    records_per_second: float
    happenings: tuple[Happening, ...]
    """In order of their times."""

    seconds: float
    """Seconds until the faults end."""

    def text(self) -> str:
        """Return the plan as text, one item per line."""
        settings = f"{self.settings}".removeprefix("Settings")
        lines = [f"cluster{settings}", *(f"topic   {topic}" for topic in self.topics)]
        lines.append(f"load    {self.records} records before, then {self.records_per_second:g}/s on {self.load}")
        for happening in self.happenings:
            step = "" if happening.step is None else f"{happening.step} "
            lines.append(f"{happening.at:6.2f}s {step}{happening.action}")
        return "\n".join([*lines, f"{self.seconds:6.2f}s everything is mended"])


def draw(seed: int) -> RunPlan:
    """Draw a plan."""
    rng = generator(seed, "plan")
    settings = topology.draw_settings(rng)
    created = topology.draw_topics(rng, settings)
    partitions = topology.partitions_of(created)
    seconds = rng.uniform(20.0, 30.0)
    asked = requests.draw(rng, settings, partitions, seconds)
    disturbed = faults.draw(rng, settings, partitions, seconds)
    # Later additions draw from generators of their own, so that they leave the earlier draws of a seed unchanged.
    later = generator(seed, "upkeep")
    settings = elections.draw_settings(later, settings)
    led = elections.draw(later, settings, partitions, seconds)
    deleted = topics.draw_deletions(generator(seed, "deletions"), settings, created, seconds)
    grown = topics.draw_growth(generator(seed, "growth"), created, seconds)
    done = chores.draw(generator(seed, "chores"), settings, partitions, seconds)
    named = elections.draw_named(generator(seed, "named leaders"), settings, partitions, seconds)
    late = late_cancels.draw(generator(seed, "late cancels"), settings, partitions, seconds)
    happenings = (*asked, *disturbed, *led, *deleted, *grown, *done, *named, *late)
    return RunPlan(
        seed,
        settings,
        created,
        records=rng.choice((0, 5, 40)),
        load=tuple(name for name in partitions if rng.random() < 0.7),  # noqa: PLR2004  most, and often not all
        records_per_second=rng.uniform(2.0, 8.0),
        happenings=tuple(sorted(happenings, key=lambda happening: happening.at)),
        seconds=seconds,
    )
