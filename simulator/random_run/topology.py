"""Draws the cluster that a random run begins with."""

from __future__ import annotations

import random

from simulator.actions.requests import CreateTopic
from simulator.settings import Settings

Replicas = tuple[int, ...]


def draw_settings(rng: random.Random) -> Settings:
    """Draw the size and the configuration of the cluster."""
    return Settings(
        brokers=rng.choice((3, 4, 4, 4, 4, 5, 5, 7)),
        controllers=rng.choice((1, 2, 2, 2, 3)),
        servers=rng.choice((1, 3)),
        racks=rng.choice(((), ("a", "b"), ("a", "b", "c"))),
        min_insync_replicas=rng.randint(1, 2),
        session_timeout=rng.choice((2.0, 4.0, 6.0)),
        request_timeout=rng.choice((2.0, 5.0)),
        replica_lag_time=rng.choice((2.0, 5.0, 10.0)),
        fetch_wait=rng.choice((0.5, 2.0, 4.0)),
        latency=rng.choice((0.0005, 0.001, 0.01)),
        bytes_per_second=rng.choice((float("inf"), float("inf"), 20_000.0)),
        store_latency=rng.choice((0.0, 0.001, 0.01)),
    )


def draw_topics(rng: random.Random, settings: Settings) -> tuple[CreateTopic, ...]:
    """Draw topics: mostly a few of a few partitions each, sometimes one alone or many."""
    return tuple(draw_topic(rng, settings, f"t{number}") for number in range(rng.choice((1, 1, 2, 2, 3, 4, 6))))


def draw_topic(rng: random.Random, settings: Settings, name: str) -> CreateTopic:
    """Draw a topic whose partitions are mostly on three brokers each."""
    factor = rng.choice((1, 2, 3, 3, 3, 3))
    rows = tuple(draw_replicas(rng, settings.broker_ids, factor) for _ in range(rng.choice((1, 1, 2, 3, 5))))
    return CreateTopic(name, rows)


def draw_replicas(rng: random.Random, brokers: Replicas, count: int) -> Replicas:
    """Draw `count` brokers, in random order."""
    return tuple(rng.sample(brokers, count))


def partitions_of(topics: tuple[CreateTopic, ...]) -> dict[str, Replicas]:
    """Return the replicas of each partition by its name."""
    return {f"{topic.name}-{number}": row for topic in topics for number, row in enumerate(topic.assignment)}
