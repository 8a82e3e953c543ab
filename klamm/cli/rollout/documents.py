"""Rollouts as documents for programs: their state, what a plan needs, and the outcome of an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from klamm.cli.formats import Time, time_of
from transport.messages import UNKNOWN, UNTHROTTLED, RolloutSettings


class OddMove(Struct):
    """A partition that is not as planned, the state of its move, and the reason."""

    partition: str
    move: str
    because: str


class ProgressRow(Struct):
    """How far a rollout is. `error` is that of the time left so far, as a part of it.

    `waits` counts the moves that wait for something, and `as_of` is the time of these numbers.
    """

    done: int
    in_flight: int
    bytes_left: int
    bytes_per_second: int | None
    seconds_left: int | None
    error: float | None
    waits: dict[str, int]
    as_of: Time | None

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> ProgressRow:
        """Return the progress that a journal or a controller has noted."""
        return ProgressRow(
            noted["done"],
            noted["in_flight"],
            noted["bytes_left"],
            noted["bytes_per_second"],
            noted["seconds_left"],
            noted["error"],
            dict(noted["waits"]),
            time_of(noted.get("at", UNKNOWN)),
        )


class SettingsRow(Struct):
    """The settings of a rollout that a controller carries out; null for a limit, throttle or signal that is not set.

    The limits are the most moves in flight for each broker: into it, out of it, and those that take its leadership;
    then those in all. `bytes` are the most in flight, and `throttle` is in bytes per second.
    """

    into: int
    out_of: int
    leaders: int
    in_all: int
    bytes: int | None
    throttle: int | None
    pause_file: str | None
    go_url: str | None
    ignore_min_isr: bool
    elects: bool
    adapts: bool
    ignore_room: bool

    @classmethod
    def of(cls, settings: RolloutSettings) -> SettingsRow:
        """Return settings."""
        values = asdict(settings)
        nothing = {"bytes": UNTHROTTLED, "throttle": UNTHROTTLED, "pause_file": "", "go_url": ""}
        return SettingsRow(**values | {name: None for name, none in nothing.items() if values[name] == none})


class RolloutRow(Struct):
    """A rollout. `state` is its phase, or `unusable` with a `fault` if the controller has set it aside.

    Only a controller has `queued_behind`, `started_by` and `settings`. `moves` counts the moves in each state.
    """

    rollout: str
    state: str
    fault: str | None
    paused_by: list[str]
    brake: str | None
    started: Time | None
    carried_out_by: str | None
    queued_behind: int | None
    started_by: str | None
    settings: SettingsRow | None
    moves: dict[str, int]
    progress: ProgressRow | None
    not_as_planned: list[OddMove]


class PlanNeeds(Struct):
    """What the moves of a plan need: bytes to copy, windows, and seconds at the throttle at least.

    `unknown_sizes` are the partitions whose bytes are not counted; `busiest_broker` copies most.
    """

    moves: int
    bytes: int
    unknown_sizes: int
    windows: int
    seconds: float | None
    busiest_broker: int | None


class ChangedRollout(Struct):
    """The outcome of a command that changes a rollout, and the rollout afterwards: null if there is none.

    `started` and `ordered` are about rollouts that somebody else carries out, `over` and `interrupted` about those that
    the command carries out itself. `exists` has been started before, and `checked` is the outcome of a dry run, where
    `partial` says what is hidden from the user; null if nothing is.
    """

    rollout: str
    outcome: Literal["started", "exists", "ordered", "over", "interrupted", "removed", "nothing_to_move", "checked"]
    needs: PlanNeeds | None = None
    status: RolloutRow | None = None
    partial: str | None = None
