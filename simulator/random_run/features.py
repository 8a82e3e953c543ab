"""The features of random runs, of which each seed draws a subset.

Some runs have few features and much of each, others have many, so that rare pairs meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Final

from attrs import frozen

from simulator.random_run import (
    alike,
    broker_faults,
    chores,
    closed_records,
    closed_znodes,
    configs,
    conflicts,
    costly_cancels,
    damages,
    directories,
    elections,
    endpoints,
    faults,
    floods,
    last_replicas,
    late_answers,
    late_cancels,
    late_copies,
    network_faults,
    odd_requests,
    readers,
    recreations,
    requests,
    rests,
    rewrites,
    rollouts,
    sizes,
    stalls,
    store_faults,
    topics,
    touched_states,
    unclean,
)
from simulator.random_run.happenings import Happening
from simulator.random_run.topology import Replicas
from simulator.scheduling import generator
from simulator.settings import Settings

Draw = Callable[[random.Random, Settings, Mapping[str, Replicas], float], list[Happening]]
"""Draws happenings for the partitions, by name with their replicas, until a number of seconds."""


@frozen
class Feature:
    """One sort of things that can happen in a random run."""

    name: str
    draw: Draw
    chance: float
    """The chance that a seed of the usual style draws it; also its weight in the others."""

    settings: Callable[[random.Random, Settings], Settings] | None = None
    """Draws other settings of the cluster, where what happens needs them."""


FEATURES: Final = (
    Feature("moves", requests.draw, 0.9),
    Feature("faults", faults.draw, 0.9),
    Feature("crashes in moves", faults.draw_crashes_in_moves, 0.4),
    Feature("commits cut off", faults.draw_in_commits, 0.3),
    Feature("calamities", faults.draw_calamity, 0.3),
    Feature("shutdowns", elections.draw_shutdowns, 0.7),
    Feature("elections", elections.draw, 0.7),
    Feature("deletions", topics.draw_deletions, 0.5),
    Feature("growth", topics.draw_growth, 0.5),
    Feature("chores", chores.draw, 0.7),
    Feature("named leaders", elections.draw_named, 0.7),
    Feature("late cancels", late_cancels.draw, 0.4),
    Feature("costly cancels", costly_cancels.draw, 0.2),
    Feature("stalls", stalls.draw, 0.5),
    Feature("readers", readers.draw, 0.7),
    Feature("odd requests", odd_requests.draw, 0.5),
    Feature("flawed proposals", odd_requests.draw_proposals, 0.3),
    Feature("refusals", broker_faults.draw, 0.4),
    Feature("refused deletions", broker_faults.draw_refused_deletions, 0.25),
    Feature("store", store_faults.draw, 0.5),
    Feature("late copies", late_copies.draw, 0.4),
    Feature("lost disks", late_copies.draw_lost_disks, 0.25),
    Feature("requests in transit", network_faults.draw, 0.6),
    Feature("unclean elections", unclean.draw, 0.4),
    Feature("log directories", directories.draw, 0.25),
    Feature("alike partitions", alike.draw, 0.15),
    Feature("last replicas", last_replicas.draw, 0.25),
    Feature("damage", damages.draw, 0.3),
    Feature("settings", configs.draw, 0.3),
    Feature("rewritten znodes", rewrites.draw, 0.25),
    Feature("growth by tools", rewrites.draw_growth, 0.25),
    Feature("recreated topics", recreations.draw, 0.12),
    Feature("touched states", touched_states.draw, 0.25),
    Feature("closed znodes", closed_znodes.draw, 0.25),
    Feature("touched rounds", conflicts.draw, 0.15, conflicts.draw_settings),
    Feature("rests", rests.draw, 0.2),
    Feature("rollouts", rollouts.draw, 0.15),
    Feature("floods", floods.draw, 0.12),
    Feature("sizes", sizes.draw, 0.03),
    Feature("small requests", sizes.draw_small, 0.08, sizes.draw_limit),
    Feature("endpoints", endpoints.draw, 0.2),
    Feature("closed records", closed_records.draw, 0.2),
    Feature("disabled deletions", topics.draw_deletions_in_vain, 0.06, topics.draw_disabled),
    Feature("late answers", late_answers.draw, 0.2),
    Feature("failing services", broker_faults.draw_failing_services, 0.25),
    Feature("validated settings", configs.draw_checks, 0.12),
)


@frozen
class Chosen:
    """A feature that a seed has drawn, and how many times over."""

    feature: Feature
    times: int

    def __str__(self) -> str:
        return self.feature.name if self.times == 1 else f"{self.feature.name} x {self.times}"

    def settings(self, seed: int, settings: Settings) -> Settings:
        """Draw the settings of the cluster, from those drawn so far."""
        if self.feature.settings is None:
            return settings
        return self.feature.settings(generator(seed, f"settings of {self.feature.name}"), settings)

    def happenings(
        self, seed: int, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
    ) -> list[Happening]:
        """Draw what happens. Each feature has a generator of its own, so that others do not depend on its draws."""
        rng = generator(seed, self.feature.name)
        draws = [self.feature.draw(rng, settings, partitions, seconds) for _ in range(self.times)]
        return [happening for each in draws for happening in each]


NAMES: Final = tuple(feature.name for feature in FEATURES)


def choose(seed: int, always: Collection[str] = ()) -> tuple[Chosen, ...]:
    """Choose the features of a seed, and those named in `always` even if it has not drawn them."""
    drawn = _draw(seed)
    known = {each.feature.name for each in drawn}
    missing = [feature for feature in FEATURES if feature.name in always and feature.name not in known]
    return (*drawn, *(Chosen(feature, 1) for feature in missing))


def _draw(seed: int) -> tuple[Chosen, ...]:
    """Draw the features of a seed: each by its chance, or few and many times over, or nearly all."""
    rng = generator(seed, "features")
    style = rng.choices(("usual", "focused", "crowded"), (5, 3, 1))[0]
    # Each lot has a generator of its own, so that a feature that is added later leaves most seeds as they were.
    lots = {feature: generator(seed, f"lot of {feature.name}").random() for feature in FEATURES}
    if style == "usual":
        return tuple(Chosen(feature, 1) for feature, lot in lots.items() if lot < feature.chance)
    if style == "crowded":
        return tuple(Chosen(feature, 1) for feature, lot in lots.items() if lot < 2 * feature.chance)
    ranked = sorted(FEATURES, key=lambda feature: lots[feature] / feature.chance)
    few = ranked[: rng.randint(1, 3)]
    return tuple(Chosen(feature, rng.randint(1, 3)) for feature in few)
