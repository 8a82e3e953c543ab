"""Bugs in the channels to brokers."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def the_earlier_of_equal_states_wins(patch: pytest.MonkeyPatch) -> None:
    """Keep the state that waits when another of the same epochs arrives."""
    edit(
        patch,
        "controller.channels.blocks:_newer",
        ("authority(waiting) <= authority(state)", "authority(waiting) < authority(state)"),
    )


def deletions_are_sent_after_leaders(patch: pytest.MonkeyPatch) -> None:
    """Send LeaderAndIsr of a topic created again before the deletion of the one before it."""
    first = "            (self._first_stops, self._take_first_stops),\n"
    leaders = "            (self._leader_and_isr, self._take_leader_and_isr),\n"
    edit(
        patch,
        "controller.channels.backlog:BrokerBacklog.take",
        (first, ""),
        (leaders, leaders + first),
    )
    edit(
        patch,
        "controller.channels.backlog:BrokerBacklog._take_leader_and_isr",
        (", {key for key, _ in self._first_stops})", ")"),
    )


def a_request_is_dropped_with_its_connection(patch: pytest.MonkeyPatch) -> None:
    """Do not repeat a request whose connection broke before its answer."""
    edit(
        patch,
        "actors.channel:Channel._send_over_one_connection",
        (
            "request = await self._next_request()\n",
            "request = await self._next_request()\n                self._under_way = None\n",
        ),
    )


def a_silent_broker_holds_up_its_channel(patch: pytest.MonkeyPatch) -> None:
    """Wait for a broker's answer as long as its connection lasts."""
    edit(
        patch,
        "actors.channel:Channel._ask",
        ("timeout=self._request_timeout", "timeout=1_000_000.0"),
    )


def stops_have_no_number(patch: pytest.MonkeyPatch) -> None:
    """Send StopReplica without the number by which a broker recognises a late request."""
    edit(
        patch,
        "controller.channels.backlog:BrokerBacklog._stop_request",
        ("*epochs, stops, next(self.numbers))", "*epochs, stops)"),
    )


BUGS = (
    the_earlier_of_equal_states_wins,
    deletions_are_sent_after_leaders,
    a_request_is_dropped_with_its_connection,
    a_silent_broker_holds_up_its_channel,
    stops_have_no_number,
)
