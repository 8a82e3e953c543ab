"""What can be done to a simulated cluster, as plain data that a plan is made of. Times are virtual seconds."""

from __future__ import annotations

from attrs import frozen

from controller.simulation.connection import Moment as Instant
from controller.simulation.steps import Moment
from transport.messages import ElectionType

# --- whom it happens to -----------------------------------------------------------------------------------------


@frozen
class Node:
    """A broker or a controller."""

    id: int


@frozen
class Active:
    """Whichever controller is active then; at a step, the one that takes it."""


@frozen
class LeaderOf:
    """Whichever broker leads the partition then."""

    partition: str


Who = Node | Active | LeaderOf

# --- what an administrator does ---------------------------------------------------------------------------------


@frozen
class CreateTopic:
    """Create a topic with the given replicas of each partition."""

    name: str
    assignment: tuple[tuple[int, ...], ...]


@frozen
class DeleteTopic:
    """Delete a topic."""

    name: str


@frozen
class Grow:
    """Let a topic have so many partitions in all."""

    topic: str
    partitions: int


@frozen
class Reassign:
    """Move partitions to new replicas; None cancels."""

    targets: tuple[tuple[str, tuple[int, ...] | None], ...]


@frozen
class Elect:
    """Elect leaders of the partitions named, or of all that need it."""

    kind: ElectionType
    partitions: tuple[str, ...] | None


@frozen
class Stop:
    """A broker ends in good order, and is started again after `lasts`."""

    who: Node | LeaderOf
    lasts: float


# --- faults, which are over after `lasts` -----------------------------------------------------------------------


@frozen
class Crash:
    """A process dies, and is started again; with `wipe`, on an empty disk.

    The store notices when the session times out, or with `noticed` at once.
    """

    who: Who
    lasts: float
    wipe: bool = False
    noticed: bool = False


@frozen
class Pause:
    """A process stands still."""

    who: Who
    lasts: float


@frozen
class Expire:
    """A session with the store ends."""

    who: Who


@frozen
class ExpireInCommit:
    """A session ends right before or after its next commit takes effect; its holder learns of no outcome."""

    who: Who
    instant: Instant


@frozen
class Disconnect:
    """A process loses the store, at once or, with an `instant`, right before or after its next commit takes effect."""

    who: Who
    lasts: float
    instant: Instant | None = None


@frozen
class Depose:
    """An operator deletes `/controller`, while the controller stands still for `pause` seconds."""

    pause: float = 0.0


@frozen
class Isolate:
    """Nothing that some nodes send reaches the others; nor the other way round, unless `one_way`."""

    some: tuple[int, ...]
    others: tuple[int, ...]
    one_way: bool
    lasts: float


@frozen
class BreakConnections:
    """The connections between two nodes break."""

    a: int
    b: int


@frozen
class SlowLink:
    """What one node sends another is slow; with a few bytes per second, it stalls."""

    source: int
    destination: int
    latency: float
    bytes_per_second: float
    lasts: float


@frozen
class SlowStore:
    """The store answers a process slowly."""

    who: Who
    latency: float
    lasts: float


@frozen
class Lag:
    """A server of the store is so many seconds behind."""

    server: int
    seconds: float
    lasts: float


@frozen
class Skew:
    """A process's wall clock is off."""

    who: Who
    milliseconds: int


Fault = (
    Crash
    | Pause
    | Expire
    | ExpireInCommit
    | Disconnect
    | Depose
    | Isolate
    | BreakConnections
    | SlowLink
    | SlowStore
    | Lag
    | Skew
)
Action = CreateTopic | DeleteTopic | Grow | Reassign | Elect | Stop | Fault

# --- when it happens --------------------------------------------------------------------------------------------


@frozen
class AtStep:
    """At the next step of that kind: within it, or with `delay` so much later."""

    round: str
    moment: Moment
    delay: float = 0.0


@frozen
class Happening:
    """An action, at a time or at the first step from that time on."""

    at: float
    step: AtStep | None
    action: Action
