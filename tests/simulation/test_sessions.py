"""The end of a controller's session interrupts it: a controller that continues is reported."""

from __future__ import annotations

import pytest
import trio

from simulator.safety.sessions import Sessions
from simulator.steps import ControllerStep, Moment
from transport.store.protocol import SessionChanged, SessionState

pytestmark = pytest.mark.usefixtures("autojump_clock")

HOST = "controller-101"
STEP = ControllerStep(101, "BrokerChange", "elect", Moment.DECIDED, ())


def serving() -> Sessions:
    """Return the record of a controller in service whose session has just ended."""
    sessions = Sessions()
    assert list(sessions.began_event(101, "Elect")) == []
    sessions.changed(HOST, SessionChanged(SessionState.SUSPENDED))
    sessions.changed(HOST, SessionChanged(SessionState.EXPIRED))
    return sessions


@pytest.mark.parametrize("event", ["SessionEnded", "Elect"])
async def test_the_end_or_a_new_election_is_the_next_event(event: str) -> None:
    sessions = serving()
    assert list(sessions.began_event(101, event)) == []
    assert list(sessions.began_event(101, "BrokerChange")) == []


async def test_another_event_before_the_end_is_reported() -> None:
    text = "controller-101 processed BrokerChange, although its session had ended at 0.000 s"
    assert list(serving().began_event(101, "BrokerChange")) == [text]


async def test_other_controllers_continue() -> None:
    sessions = serving()
    assert list(sessions.began_event(102, "BrokerChange")) == []
    assert list(sessions.stepped(ControllerStep(102, "BrokerChange", "elect", Moment.DECIDED, ()))) == []


async def test_a_step_after_the_end_is_reported() -> None:
    sessions = serving()
    assert list(sessions.stepped(STEP)) == []
    await trio.sleep(0.1)
    text = "controller-101 decided round elect, although its session had ended at 0.000 s"
    assert list(sessions.stepped(STEP)) == [text]
    assert list(sessions.began_event(101, "SessionEnded")) == []
    assert list(sessions.stepped(STEP)) == []


async def test_a_lost_connection_is_not_the_end_of_a_session() -> None:
    sessions = Sessions()
    assert list(sessions.began_event(101, "Elect")) == []
    sessions.changed(HOST, SessionChanged(SessionState.SUSPENDED))
    assert list(sessions.began_event(101, "BrokerChange")) == []


async def test_a_controller_that_is_not_in_service_yet_does_not_hear_of_the_end() -> None:
    sessions = Sessions()
    sessions.changed(HOST, SessionChanged(SessionState.EXPIRED))
    assert list(sessions.began_event(101, "Elect")) == []
