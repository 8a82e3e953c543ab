"""The signals of operators, as a controller asks them: outside its queue, which is told of changes only."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import RolloutSignalled
from controller.model.context import ControllerContext
from controller.model.rollout_facts import RolloutWritten
from controller.node.rollout_signals import RolloutSignals
from transport.host import Host
from transport.messages import BrokerEndpoint, RolloutSettings
from transport.signals import signal_of
from transport.store.rollouts import StoredRollout


@pytest.mark.parametrize(("exists", "said"), [(True, "{} exists"), (False, "")])
async def test_a_file_says_no(tmp_path: Path, exists: bool, said: str) -> None:
    path = tmp_path / "stop"
    if exists:
        path.touch()
    assert await signal_of(str(path), "", Host()) == said.format(path)


async def test_what_is_no_page_says_no() -> None:
    said = await signal_of("", "file:///etc/passwd", Host())
    assert said == "file:///etc/passwd is not the URL of a page"


def rollout_of(settings: RolloutSettings) -> ControllerContext:
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), 1, 1, config=ControllerConfig(1001))
    stored = StoredRollout("digest", 1, 0, "", "running", settings, (), ())
    context.apply(RolloutWritten("monday", stored, 1))
    return context


async def test_the_queue_is_told_what_has_changed(tmp_path: Path) -> None:
    path, told = tmp_path / "stop", list[RolloutSignalled]()
    context = rollout_of(RolloutSettings(pause_file=str(path)))
    signals = RolloutSignals(told.append, Host())

    async def look() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                signals.look(nursery, context)

    for is_there in (True, True, False):
        if is_there:
            path.touch()
        else:
            path.unlink()
        await look()
        context.rollouts.by_name["monday"].signal = told[-1].text
    assert told == [RolloutSignalled("monday", f"{path} exists"), RolloutSignalled("monday", "")]


async def test_an_unforeseen_fault_holds_the_rollout_up_and_is_logged_once() -> None:
    async def break_down(url: str) -> str | None:
        raise RuntimeError(url)

    told = list[RolloutSignalled]()
    context = rollout_of(RolloutSettings(go_url="http://go/"))
    signals = RolloutSignals(told.append, Host(page_fault=break_down))
    with capture_logs() as logs:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                signals.look(nursery, context)
            context.rollouts.by_name["monday"].signal = told[-1].text
    assert told == [RolloutSignalled("monday", "its signal cannot be asked: RuntimeError")]
    assert [log["log_level"] for log in logs] == ["error"]
