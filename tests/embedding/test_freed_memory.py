"""Memory that large events leave behind is given back when the controller is at rest."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from controller.channels.broker_channels import BrokerChannels
from controller.events import BrokerChange
from controller.model.context import ControllerContext
from controller.node.freed_memory import LARGE_SECONDS, QUIET_SECONDS, FreedMemory
from transport.host import Host
from transport.messages import BrokerEndpoint
from transport.network import TcpNetwork


class Given:
    """Counts how often memory was given back."""

    def __init__(self) -> None:
        self.times = 0

    def back(self) -> None:
        """Count."""
        self.times += 1


def process(freed: FreedMemory, seconds: float) -> None:
    freed.started(BrokerChange(), 0)
    freed.finished(BrokerChange(), seconds)


@pytest.mark.parametrize(("seconds", "times"), [(LARGE_SECONDS, 1), (LARGE_SECONDS * 0.9, 0)])
async def test_memory_is_given_back_once_after_a_large_event(
    autojump_clock: MockClock,  # noqa: ARG001
    seconds: float,
    times: int,
) -> None:
    given = Given()
    freed = FreedMemory(given.back)
    async with freed.given_back():
        await wait_all_tasks_blocked()
        process(freed, seconds)
        await trio.sleep(QUIET_SECONDS * 0.9)
        assert given.times == 0
        await trio.sleep(QUIET_SECONDS * 3)
        assert given.times == times
        process(freed, LARGE_SECONDS)
        await trio.sleep(QUIET_SECONDS * 2)
        assert given.times == times + 1


async def test_the_context_of_the_office_shrinks_first(
    autojump_clock: MockClock,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    monkeypatch.setattr(ControllerContext, "compact", lambda _: order.append("compact"))
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), epoch=1, epoch_version=1)
    freed = FreedMemory(lambda: order.append("give back"))
    async with freed.given_back(), trio.open_nursery() as nursery:
        channels = BrokerChannels(nursery, TcpNetwork(), Host(), context.config, context.controller, 1, lambda *_: None)
        freed.took_office(context, channels)
        process(freed, LARGE_SECONDS)
        await trio.sleep(QUIET_SECONDS * 2)
        assert order == ["compact", "give back"]
        freed.left_office()
        process(freed, LARGE_SECONDS)
        await trio.sleep(QUIET_SECONDS * 2)
        assert order == ["compact", "give back", "give back"]


async def test_later_events_put_it_off(autojump_clock: MockClock) -> None:  # noqa: ARG001
    given = Given()
    freed = FreedMemory(given.back)
    async with freed.given_back():
        process(freed, LARGE_SECONDS)
        for _ in range(3):
            await trio.sleep(QUIET_SECONDS * 0.9)
            process(freed, 0)
        freed.started(BrokerChange(), 0)
        await trio.sleep(QUIET_SECONDS * 3)
        assert given.times == 0
        freed.finished(BrokerChange(), 0)
        await trio.sleep(QUIET_SECONDS * 1.1)
        assert given.times == 1


def test_a_library_without_a_call_for_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    Host().give_back_memory()


def test_free_memory_goes_back_to_the_system() -> None:
    trimmed = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trimmed is None:
        pytest.skip("only glibc keeps free memory until it is asked")
    blocks = [bytes(100_000) for _ in range(500)]
    kept = blocks[::25]
    before = _resident()
    del blocks
    Host().give_back_memory()
    assert _resident() < before - 30 * 1_000_000
    assert len(kept) == 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
