"""Messages between administrators and the controller: rollouts, large plans that it carries out a few moves at a time.

A plan is uploaded in parts, and exists only once it has been started. Each request may be repeated if its answer was
lost: a part replaces the same part, and a rollout that was started with the same digest is the one that is there.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Final

from transport.errors import ErrorCode
from transport.messages.common import MAX_LISTED_TOPICS, Message, PartitionError, Request
from transport.messages.reassignments import UNKNOWN, UNTHROTTLED
from transport.metadata import OfPartition

UNLIMITED: Final = UNTHROTTLED
"""The limit, in bytes, that means none."""

MOVES_OF_A_PART: Final = 5_000
"""The most moves of one request. A part of this size takes the controller less than 0.1 s."""


class RolloutMove(OfPartition, Message, frozen=True):
    """A move of a plan.

    `before` and `topic_id` are what the plan was made from; what is left empty is taken from the cluster. `size` is
    that of one replica in bytes.
    """

    topic: str
    partition: int
    after: tuple[int, ...]
    before: tuple[int, ...] = ()
    topic_id: str = ""
    size: int = UNKNOWN


class RolloutSettings(Message, frozen=True):
    """The settings of a rollout, of which the limits and the throttle can be changed while it runs.

    The limits are the most moves in flight: into each broker, out of each leader, that take away a broker's leadership,
    and in all. `bytes` are those in flight. `throttle` is in bytes per second and broker. No move begins while
    `pause_file` exists on the controller's host, or while GET of `go_url` is not answered with 2xx.
    """

    into: int = 5
    out_of: int = 5
    leaders: int = 5
    in_all: int = 500
    bytes: int = UNLIMITED
    throttle: int = UNTHROTTLED
    pause_file: str = ""
    go_url: str = ""
    ignore_min_isr: bool = False
    elects: bool = True
    """Whether the preferred leader of a partition is elected once it has been moved."""

    adapts: bool = False
    """Whether the throttle is changed by how brokers do; once it is set by hand, it is not any more."""

    ignore_room: bool = False
    """Whether moves begin to brokers that have not been asked for the room on their disks."""


class RolloutChanges(Message, frozen=True):
    """Changes of settings; None leaves one as it is.

    With `adapts` the throttle is changed by how brokers do, from the one that there is.
    """

    into: int | None = None
    out_of: int | None = None
    leaders: int | None = None
    in_all: int | None = None
    bytes: int | None = None
    throttle: int | None = None
    adapts: bool | None = None
    ignore_min_isr: bool | None = None


class UploadRolloutResponse(Message, frozen=True):
    """The moves that cannot be made, or whose partition is not as the plan found it, with the reasons.

    If there are any, the part was stored without them if the request skips them, and not at all otherwise.
    """

    left_out: tuple[PartitionError, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class UploadRolloutRequest(Request[UploadRolloutResponse], frozen=True):
    """Upload a part of a plan; `first` is the number of its first move in the plan, from 0.

    `digest` identifies the content of the plan. Parts of another digest under this name are dropped, unless a rollout
    of this name has been started.
    """

    max_listed: ClassVar[int | None] = MOVES_OF_A_PART

    name: str
    digest: str
    first: int
    moves: tuple[RolloutMove, ...]
    skips: bool = False


class StartRolloutResponse(Message, frozen=True):
    """The rollout has started, or waits for others: it is at `place` in the queue, and runs at 0."""

    moves: int = 0
    place: int = 0
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class StartRolloutRequest(Request[StartRolloutResponse], frozen=True):
    """Start the rollout of an uploaded plan of `total` moves, those included that were left out."""

    name: str
    digest: str
    total: int
    settings: RolloutSettings = RolloutSettings()
    by: str = ""


class RolloutDescription(Message, frozen=True):
    """A rollout. Times are in ms since 1970, or in ms.

    `phase` and `holds` are those of `controller.rollout.states`; `why` says in words what holds it. `counts` has the
    moves in each state, `waits` how many of the moves looked at last wait for what. `place` is 0 for the rollout that
    runs, and UNKNOWN for one that is over. `error_percent` is the error of the time left so far. `fault` says why a
    rollout is quarantined: nothing else is known of it then, and `phase` is one that does not run.
    """

    name: str
    digest: str
    phase: str
    holds: tuple[str, ...]
    why: str
    place: int
    settings: RolloutSettings
    started_ms: int
    started_by: str
    moves: int
    counts: tuple[tuple[str, int], ...]
    waits: tuple[tuple[str, int], ...] = ()
    bytes: int = 0
    bytes_left: int = 0
    rate: int = UNKNOWN
    left_ms: int = UNKNOWN
    error_percent: int = UNKNOWN
    fault: str = ""


class DescribeRolloutsResponse(Message, frozen=True):
    """The rollouts, first those that run or wait, in the order of the queue."""

    rollouts: tuple[RolloutDescription, ...]
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class DescribeRolloutsRequest(Request[DescribeRolloutsResponse], frozen=True):
    """Describe all rollouts, or those of these names that exist."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    names: tuple[str, ...] | None = None


class RolloutMoveState(OfPartition, Message, frozen=True):
    """The state of a move, and why unless that is as planned."""

    topic: str
    partition: int
    state: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    why: str = ""


class DescribeRolloutMovesResponse(Message, frozen=True):
    """Moves of a part of the plan; `next` is the next part, UNKNOWN after the last one."""

    moves: tuple[RolloutMoveState, ...]
    next: int = UNKNOWN
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class DescribeRolloutMovesRequest(Request[DescribeRolloutMovesResponse], frozen=True):
    """Describe the moves of one part of the plan that are in these states, as `controller.rollout.states` names them.

    Begin with part 0.
    """

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    name: str
    states: tuple[str, ...] | None = None
    part: int = 0


class RolloutOrder(Enum):
    """The orders that operators give to a rollout."""

    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"
    UNDO = "undo"
    SET = "set"
    REMOVE = "remove"
    """Forget a rollout that is over."""


class ChangeRolloutResponse(Message, frozen=True):
    """The rollout after the order; None if it was removed."""

    rollout: RolloutDescription | None = None
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class ChangeRolloutRequest(Request[ChangeRolloutResponse], frozen=True):
    """Give an order to a rollout. Any order may come with changes of its settings.

    With `without_dead` a rollout no longer waits for the brokers that are dead now.
    """

    name: str
    order: RolloutOrder
    changes: RolloutChanges = RolloutChanges()
    without_dead: bool = False
    by: str = ""
