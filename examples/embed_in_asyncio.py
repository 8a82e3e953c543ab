"""Run two controllers in an asyncio program: one leads, and the other takes over when the first is cancelled.

Start it with `python examples/embed_in_asyncio.py`; it needs neither Java nor ZooKeeper.
"""

from __future__ import annotations

import asyncio
import contextlib

import klamm
from transport.host import Host
from transport.store.memory import MemoryZooKeeper


async def main() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    services: dict[int, klamm.ControllerService] = {}
    tasks: dict[int, asyncio.Task[None]] = {}
    for controller_id in (1001, 1002):
        config = klamm.ControllerConfig(controller_id)
        started = asyncio.Event()

        def remember(
            service: klamm.ControllerService, id_: int = controller_id, event: asyncio.Event = started
        ) -> None:
            services[id_] = service
            event.set()

        run = klamm.run_asyncio(config, on_started=remember, open_store=zookeeper.session)
        tasks[controller_id] = asyncio.create_task(run)
        await started.wait()
    for controller_id, other in ((1001, 1002), (1002, None)):
        while not services[controller_id].is_active:
            await asyncio.sleep(0.01)
        print(f"controller {controller_id} leads")
        tasks[controller_id].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await tasks[controller_id]
        print(f"controller {controller_id} resigned" + (f", {other} is next" if other else ""))


if __name__ == "__main__":
    asyncio.run(main())
