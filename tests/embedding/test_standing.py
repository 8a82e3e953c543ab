"""A controller between a failure and its next election, and the time for which it sets a subject aside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
import trio
from attrs import define
from structlog.testing import capture_logs
from trio.testing import MockClock

from controller.events import ControllerEvent, PartitionModifications
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds
from controller.node import dispatch, service
from controller.node.quarantine import QUARANTINE_SECONDS
from tests.kit.service import Controllers
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages import MetadataRequest
from transport.network import StreamHandler

LONG = 3 * QUARANTINE_SECONDS


@define
class Alone:
    """A network on which nobody else is."""

    async def addresses(self, host: str) -> Sequence[str]:
        return [host]

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:  # noqa: ARG002
        raise OSError(f"nobody is at {host}:{port}")

    async def serve(
        self,
        handler: StreamHandler,  # noqa: ARG002 - nobody connects
        host: str,  # noqa: ARG002
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        task_status.started(port)
        await trio.sleep_forever()


@pytest.mark.requirement("D1", "E1")
async def test_a_fault_in_every_failover_is_tried_later_and_later_and_holds_up_nothing(
    controllers: Controllers, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = []

    def failover(*_: object) -> Rounds[None]:
        times.append(trio.current_time())
        raise ZeroDivisionError

    monkeypatch.setattr(service, "failover", failover)
    with capture_logs() as logs:
        faulty = await controllers.start(network=Alone())
        await trio.sleep(100)
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert pauses[0] <= 0.1
        assert all(5 <= pause <= 10 for pause in pauses[8:])
        assert len(pauses) > 10
        told = [log["failures"] for log in logs if log["event"].startswith("the controller keeps failing")]
        assert told == list(range(5, len(times) + 1))

        now = autojump_clock.current_time()
        with pytest.raises(ApiError) as caught:
            await faulty.answer(MetadataRequest())
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        controllers.memory.expire(faulty.store.session_id)
        while "SessionEnded" not in faulty.statistics():
            await trio.lowlevel.checkpoint()
        assert autojump_clock.current_time() == now


async def test_a_topic_that_is_set_aside_is_looked_at_again_after_an_hour(
    controllers: Controllers, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = PartitionModifications("poison")
    sound = dispatch.rounds_for
    times = []

    def rounds_for(context: ControllerContext, event: ControllerEvent, host: Host) -> Rounds[object]:
        if event == poison:
            times.append(trio.current_time())
            if len(times) <= 3:
                raise ZeroDivisionError
        return sound(context, event, host)

    monkeypatch.setattr(dispatch, "rounds_for", rounds_for)
    with capture_logs():
        running = await controllers.start(network=Alone())
        for _ in range(10):
            running.tell(poison)
            await trio.sleep(10)
        assert len(times) == 3
        await trio.sleep(LONG)
    assert len(times) == 4
    assert times[3] - times[2] == QUARANTINE_SECONDS
    assert running.is_active
    assert autojump_clock.current_time() > LONG
