"""`python -m tests.cli.top.pictures`: draw the pictures of `klamm top` for the docs, of a cluster that is made up."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from attrs import evolve

from controller.rollout.states import RolloutState
from klamm.cli.top.following import Look
from klamm.cli.top.reading import Reading
from klamm.cli.top.screen import TopApp
from tests.cli.top.readings import MB, NOW_MS, cluster, move, partition, rollout
from transport.messages import BrokerEndpoint, DescribedBroker

FOLDER: Final = Path(__file__).parents[3] / "docs" / "pictures"
PICTURES: Final = {"top-80x24": ((80, 24), "2"), "top-200x50": ((200, 50), "2")}
_WAITS: Final = "broker 3: {} MB and {} records behind, throttled to 20.0 MB/s"


def made_up() -> Look:
    """Return a cluster with a dead broker, in the middle of a rollout."""
    moves = []
    for number in range(14):
        has = 623 - 43 * number
        waits = _WAITS.format(f"{640 - has}.0", f"{(640 - has) * 9:,}")
        one = move(number, has=max(has, 12) * MB, of=640 * MB, rate=(21 - number % 7) * MB, waits_for=waits)
        moves.append(msgspec.structs.replace(one, start_time_ms=NOW_MS - 40_000 + 1_700 * number))
    dead = "broker 4, which is not alive"
    moves[11] = move(11, has=80 * MB, of=640 * MB, waits_for=dead, stalled_ms=95_000)
    states = [partition(number, (2, 4, 1), (2, 1), 2) for number in range(20, 29)]
    states += [partition(30, (4, 1, 2), (1,), 1), partition(31, (4,), (4,), -1)]
    counts = {"topics": 12, "partitions": 480, "offline": 1, "under_replicated": 10, "under_min_isr": 1}
    brokers = tuple(
        DescribedBroker(BrokerEndpoint(id_, f"kafka{id_}.example", 9092, "abc"[id_ % 3]), id_, 96 + id_, 288 - 3 * id_)
        for id_ in (1, 2, 3, 5, 6)
    )
    counted = msgspec.structs.replace(cluster(), brokers=brokers, being_reassigned=14, **counts)
    running = evolve(rollout(RolloutState(), done=212, pending=174, in_flight=14), name="drain-4")
    return Look(NOW_MS, Reading(counted, tuple(moves), 118 * MB, 41_000, tuple(states), {"orders": 2}, (running,)))


async def draw(name: str, size: tuple[int, int], key: str) -> None:
    """Draw the screen after a key."""

    async def follow(_take: Callable[[Look], None]) -> None:
        await asyncio.sleep(0)

    app = TopApp("kafka1.example:9092", made_up(), follow, lambda: None)
    async with app.run_test(size=size) as pilot:
        await pilot.press(key)
        await pilot.pause()
        svg = app.export_screenshot(title=f"klamm top, {size[0]} x {size[1]}")
        # The fonts are those of the reader's machine, none from the network.
        svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
        (FOLDER / f"{name}.svg").write_text(
            "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"
        )


if __name__ == "__main__":
    for name, (size, key) in PICTURES.items():
        asyncio.run(draw(name, size, key))
