"""The known-answer inputs in tests/fixtures, as removals of the brokers that are not among their target brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import frozen

from spark_bridge.plan import Plan
from spark_bridge.rules import Cluster
from spark_bridge.snapshot import parse_snapshot

_FOLDER = Path(__file__).parent.parent / "fixtures"


@frozen
class KnownAnswer:
    """A removal and what others say about its plan."""

    cluster: Cluster
    expect: dict[str, Any]

    @classmethod
    def load(cls, name: str) -> KnownAnswer:
        """Read one of the files."""
        document = json.loads((_FOLDER / f"{name}.json").read_text())
        snapshot = parse_snapshot(document["snapshot"])
        removed = {b.id for b in snapshot.brokers}.difference(document["target_brokers"])
        return cls(Cluster(snapshot, frozenset(removed)), document["expect"])

    def lists_after(self, plan: Plan) -> dict[tuple[str, int], tuple[int, ...]]:
        """Return all replica lists as they are once the plan is executed."""
        before = {(p.topic, p.partition): p.replicas for p in self.cluster.snapshot.partitions}
        return before | {(p.topic, p.partition): p.replicas for p in plan.partitions}

    def least_kept(self, plan: Plan) -> int:
        """Return how many of its replicas every partition keeps at least."""
        after = self.lists_after(plan)
        partitions = self.cluster.snapshot.partitions
        return min(len(set(p.replicas).intersection(after[p.topic, p.partition])) for p in partitions)
