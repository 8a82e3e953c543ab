"""The plan of a random run, drawn whole from its seed before anything happens: plain data, to print and to compare."""

from __future__ import annotations

from attrs import frozen

from simulator.actions.requests import CreateTopic
from simulator.random_run import (
    chores,
    deletions,
    faults,
    growth,
    late_cancels,
    named_leaders,
    requests,
    topology,
    upkeep,
)
from simulator.random_run.happenings import Happening
from simulator.scheduling import generator
from simulator.settings import Settings


@frozen
class Plan:
    """What a random run does."""

    seed: int
    settings: Settings
    topics: tuple[CreateTopic, ...]
    """What there is at the beginning."""

    records: int
    """How many each partition holds at the beginning."""

    load: tuple[str, ...]
    """The partitions that are steadily written to."""

    records_per_second: float
    happenings: tuple[Happening, ...]
    """In order of their times."""

    seconds: float
    """When faults end."""

    def text(self) -> str:
        """Return the plan, a line for each thing."""
        settings = f"{self.settings}".removeprefix("Settings")
        lines = [f"cluster{settings}", *(f"topic   {topic}" for topic in self.topics)]
        lines.append(f"load    {self.records} records before, then {self.records_per_second:g}/s on {self.load}")
        for happening in self.happenings:
            step = "" if happening.step is None else f"{happening.step} "
            lines.append(f"{happening.at:6.2f}s {step}{happening.action}")
        return "\n".join([*lines, f"{self.seconds:6.2f}s everything is mended"])


def draw(seed: int) -> Plan:
    """Draw a plan."""
    rng = generator(seed, "plan")
    settings = topology.draw_settings(rng)
    topics = topology.draw_topics(rng, settings)
    partitions = topology.partitions_of(topics)
    seconds = rng.uniform(20.0, 30.0)
    asked = requests.draw(rng, settings, partitions, seconds)
    disturbed = faults.draw(rng, settings, partitions, seconds)
    # What came later is drawn apart, so that it does not change all the rest.
    later = generator(seed, "upkeep")
    settings = upkeep.draw_settings(later, settings)
    led = upkeep.draw(later, settings, partitions, seconds)
    deleted = deletions.draw(generator(seed, "deletions"), settings, topics, seconds)
    grown = growth.draw(generator(seed, "growth"), topics, seconds)
    done = chores.draw(generator(seed, "chores"), settings, partitions, seconds)
    named = named_leaders.draw(generator(seed, "named leaders"), settings, partitions, seconds)
    late = late_cancels.draw(generator(seed, "late cancels"), settings, partitions, seconds)
    happenings = (*asked, *disturbed, *led, *deleted, *grown, *done, *named, *late)
    return Plan(
        seed,
        settings,
        topics,
        records=rng.choice((0, 5, 40)),
        load=tuple(name for name in partitions if rng.random() < 0.7),  # noqa: PLR2004  most, and often not all
        records_per_second=rng.uniform(2.0, 8.0),
        happenings=tuple(sorted(happenings, key=lambda happening: happening.at)),
        seconds=seconds,
    )
