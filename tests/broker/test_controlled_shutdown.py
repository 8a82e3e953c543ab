"""Controlled shutdown of a broker: its requests to be relieved, and their end."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from attrs import define, field

from broker.config import BrokerConfig
from broker.controlled_shutdown import ShutdownOutcome, be_relieved
from tests.broker.cluster import LOOPBACK
from tests.broker.test_controller_link import LinkBench, running_link
from transport.errors import ApiError, ErrorCode
from transport.messages import BrokerEndpoint, ControlledShutdownRequest, ControlledShutdownResponse
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.wire import serve

DONE = ControlledShutdownResponse(())
STILL = ControlledShutdownResponse((TopicPartition("t", 0),))


@define
class ScriptedController:
    """Gives prepared answers, one after the other."""

    answers: list[ControlledShutdownResponse | ApiError]
    requests: list[ControlledShutdownRequest] = field(factory=list)

    async def answer(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """Give the next answer."""
        self.requests.append(request)
        answer = self.answers[len(self.requests) - 1]
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def start(self, it: LinkBench) -> None:
        """Be the controller that spoke last."""
        port = await it.nursery.start(serve, TcpNetwork(), {ControlledShutdownRequest: self.answer}, LOOPBACK, 0)
        it.hear_of(BrokerEndpoint(100, LOOPBACK, port))


def config(*, enable: bool = True) -> BrokerConfig:
    return BrokerConfig(1, Path("unused"), controlled_shutdown_enable=enable, controlled_shutdown_retry_backoff_ms=0)


async def outcome_of(directory: Path, controller: ScriptedController, settings: BrokerConfig) -> ShutdownOutcome:
    async with running_link(directory) as it:
        await controller.start(it)
        with trio.fail_after(20):
            return await be_relieved(settings, it.link)


@pytest.mark.requirement("D6")
async def test_a_broker_asks_until_nothing_is_left(tmp_path: Path) -> None:
    controller = ScriptedController([STILL, ApiError(ErrorCode.BROKER_NOT_AVAILABLE), DONE])
    assert (await outcome_of(tmp_path, controller, config())).is_relieved
    assert [(request.broker_id, request.broker_epoch > 0) for request in controller.requests] == [(1, True)] * 3


@pytest.mark.requirement("D6")
async def test_a_broker_that_is_not_relieved_stops_asking_and_knows_what_it_leads(tmp_path: Path) -> None:
    controller = ScriptedController([STILL] * 3)
    outcome = await outcome_of(tmp_path, controller, config())
    assert (outcome.is_relieved, outcome.remaining) == (False, (TopicPartition("t", 0),))
    assert len(controller.requests) == 3


@pytest.mark.requirement("D6")
async def test_a_refusal_is_told(tmp_path: Path) -> None:
    controller = ScriptedController([ApiError(ErrorCode.STALE_BROKER_EPOCH, "it registered again")] * 3)
    outcome = await outcome_of(tmp_path, controller, config())
    assert (outcome.is_relieved, outcome.remaining) == (False, ())
    assert "it registered again" in outcome.failure


async def test_without_a_controller_it_gives_up_as_well(tmp_path: Path) -> None:
    async with running_link(tmp_path) as it:
        outcome = await be_relieved(config(), it.link)
    assert outcome.failure == "no controller is active"


async def test_a_broker_whose_settings_forbid_it_asks_nobody(tmp_path: Path) -> None:
    controller = ScriptedController([])
    assert (await outcome_of(tmp_path, controller, config(enable=False))).is_relieved
    assert controller.requests == []
