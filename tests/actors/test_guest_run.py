"""trio as a guest of asyncio ends with the loop, however the loop ends."""

from __future__ import annotations

import asyncio
from typing import Any

import trio

from actors.guest_run import _GuestRun, run_in_trio


def test_a_loop_that_ends_while_trio_is_ending_waits_for_it() -> None:
    faults: list[dict[str, Any]] = []
    has_ended = False

    async def main() -> None:
        loop, has_begun = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda _loop, context: faults.append(context))

        async def work() -> None:
            nonlocal has_ended
            has_begun.set()
            try:
                await trio.sleep_forever()
            finally:
                has_ended = True

        task = asyncio.create_task(run_in_trio(work))
        await has_begun.wait()
        task.cancel()
        nursery = _GuestRun.of(loop)._nursery  # noqa: SLF001
        assert nursery is not None
        while not nursery.cancel_scope.cancel_called:
            await asyncio.sleep(0)
        # The end of trio has begun, and the loop cancels what waits for it.

    asyncio.run(main())
    assert has_ended
    assert faults == []
