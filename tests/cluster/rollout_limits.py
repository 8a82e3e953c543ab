"""The moves in flight at each commit, as the traces of all controllers tell, and whether there were ever too many."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from attrs import define, field

from controller.rollout.choosing import Limits
from transport.messages import PartitionState, TracedCommit
from transport.metadata import TopicPartition

LOADED = "loaded"


@define
class Flights:
    """The partitions that are being moved, commit by commit."""

    flying: dict[TopicPartition, PartitionState] = field(factory=dict)
    most: Counter[str] = field(factory=Counter)
    """The most that were in flight at once: in all, and at one broker."""

    _is_loading: bool = False

    def take(self, commit: TracedCommit) -> None:
        """Change what is in flight as a commit does; what a controller loads is all there is."""
        if commit.round == LOADED and not self._is_loading:
            self.flying.clear()
        self._is_loading = commit.round == LOADED
        for state in commit.partitions:
            if state.is_being_reassigned:
                self.flying[state.tp] = state
            else:
                self.flying.pop(state.tp, None)

    def excess(self, limits: Limits) -> Iterator[str]:
        """Yield the limits that are exceeded."""
        into = Counter(broker for state in self.flying.values() for broker in state.adding_replicas)
        out_of = Counter(state.leader for state in self.flying.values() if state.adding_replicas)
        left = Counter(state.leader for state in self.flying.values() if state.leader in state.removing_replicas)
        found = {"in": (into, limits.into), "out": (out_of, limits.out_of), "leaders": (left, limits.leaders)}
        for name, (counts, most) in found.items():
            for broker, count in counts.items():
                self.most[name] = max(self.most[name], count)
                if count > most:
                    yield f"{count} {name} at broker {broker}, the most is {most}"
        self.most["all"] = max(self.most["all"], len(self.flying))
        if len(self.flying) > limits.in_all:
            yield f"{len(self.flying)} in all, the most is {limits.in_all}"


def excesses(commits: Iterable[TracedCommit], limits: Limits) -> tuple[list[str], Counter[str]]:
    """Return each commit after which there were too many moves in flight, and the most there ever were."""
    flights, found = Flights(), []
    for commit in in_order(commits):
        flights.take(commit)
        found += [f"epoch {commit.controller_epoch}, {commit.sequence}: {each}" for each in flights.excess(limits)]
    return found, flights.most


def in_order(commits: Iterable[TracedCommit]) -> list[TracedCommit]:
    """Return the commits of all controllers in their order."""
    return sorted(commits, key=lambda commit: (commit.controller_epoch, commit.sequence))


def gaps(commits: Iterable[TracedCommit]) -> list[tuple[int, int, int]]:
    """Return the epoch and two numbers between which commits are missing."""
    by_epoch: defaultdict[int, list[int]] = defaultdict(list)
    for commit in in_order(commits):
        by_epoch[commit.controller_epoch].append(commit.sequence)
    return [(e, one, two) for e, numbers in by_epoch.items() for one, two in pairwise(numbers) if two != one + 1]
