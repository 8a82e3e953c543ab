"""The memory of each process, sampled at intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import trio
from attrs import define, field

from tests.cluster.kills_and_pauses.nodes import Node

SECONDS_BETWEEN: Final = 5.0
_MB: Final = 1024


@define
class Memory:
    """Resident memory in KB with the time in seconds, by node and life."""

    samples: dict[tuple[str, int], list[tuple[float, int]]] = field(factory=lambda: defaultdict(list))

    async def watch(self, nodes: Iterable[Node]) -> None:
        """Take samples until cancelled."""
        while True:
            await trio.sleep(SECONDS_BETWEEN)
            for node in nodes:
                size = node.memory_kb()
                if size is not None:
                    self.samples[node.name, node.lives].append((trio.current_time(), size))

    def lines(self) -> list[str]:
        """Return for each node the first and the last size of its longest life.

        The first sample of a life is left out: the process may have been about to start.
        """
        longest: dict[str, list[tuple[float, int]]] = {}
        for (name, _), (_, *samples) in self.samples.items():
            if len(samples) > len(longest.get(name, [])):
                longest[name] = samples
        return [_line(name, samples) for name, samples in longest.items()]


def _line(name: str, samples: list[tuple[float, int]]) -> str:
    (began, first), (ended, last) = samples[0], samples[-1]
    return f"{name:16} {first / _MB:6.1f} MB, after {ended - began:4.0f} s {last / _MB:6.1f} MB"
