"""The plan of a random run: plain data to print and compare, drawn in full from the seed before the run begins."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from attrs import frozen

from simulator.actions.requests import CreateTopic
from simulator.random_run import conflicts, elections, features, kafka_brokers, network_faults, topology
from simulator.random_run.happenings import Happening
from simulator.scheduling import generator
from simulator.settings import Settings

_SECONDS: Final = ((5.0, 8.0), (8.0, 13.0), (13.0, 20.0))
"""Ranges of the length of a run. The last is long enough for a request and a session to time out one after the other.

The number of faults does not depend on it: longer runs cost more, and their faults meet less often.
"""


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
    features: tuple[str, ...]
    """The features that the seed has drawn."""

    happenings: tuple[Happening, ...]
    """In order of their times."""

    seconds: float
    """Seconds until the faults end."""

    always: tuple[str, ...] = ()
    """The features that were wanted, whatever the seed."""

    def text(self) -> str:
        """Return the plan as text, one item per line."""
        settings = f"{self.settings}".removeprefix("Settings")
        lines = [f"cluster{settings}"]
        if self.settings.releases:
            lines.append(f"brokers Apache Kafka's, of {', '.join(self.settings.releases)}")
        if self.settings.chunk_operations != Settings().chunk_operations:
            lines.append(f"chunks  of at most {self.settings.chunk_operations} operations")
        lines += [f"topic   {topic}" for topic in self.topics]
        lines.append(f"load    {self.records} records before, then {self.records_per_second:g}/s on {self.load}")
        lines.append(f"drawn   {', '.join(self.features) or 'nothing'}")
        for happening in self.happenings:
            step = "" if happening.step is None else f"{happening.step} "
            lines.append(f"{happening.at:6.2f}s {step}{happening.action}")
        return "\n".join([*lines, f"{self.seconds:6.2f}s everything is mended"])


def draw(seed: int, *, kafkas: bool = False, always: tuple[str, ...] = ()) -> RunPlan:
    """Draw a plan; with `kafkas`, one for the same cluster with brokers of Apache Kafka's.

    It has all features named in `always`, and otherwise what it would have without them.
    """
    rng = generator(seed, "plan")
    settings = elections.draw_settings(rng, topology.draw_settings(rng))
    settings = network_faults.draw_settings(generator(seed, "timeouts"), settings)
    settings = conflicts.draw_chunks(generator(seed, "chunks"), settings)
    created = topology.draw_topics(rng, settings)
    partitions = topology.partitions_of(created)
    seconds = rng.uniform(*rng.choice(_SECONDS))
    chosen = features.choose(seed, always)
    if kafkas:
        settings = kafka_brokers.draw_settings(generator(seed, "releases"), settings)
        chosen = kafka_brokers.chosen(seed, chosen)
    for each in chosen:
        settings = each.settings(seed, settings)
    happenings = [each for some in chosen for each in some.happenings(seed, settings, partitions, seconds)]
    return RunPlan(
        seed,
        settings,
        created,
        records=rng.choice((0, 5, 40)),
        load=tuple(name for name in partitions if rng.random() < 0.7),  # noqa: PLR2004  most, and often not all
        records_per_second=rng.uniform(0.5, 4.0),
        features=tuple(map(str, chosen)),
        happenings=tuple(sorted(happenings, key=attrgetter("at"))),
        seconds=seconds,
        always=always,
    )
