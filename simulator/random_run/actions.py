"""What can be done to a simulated cluster, as plain data that a plan is made of. Times are virtual seconds."""

from __future__ import annotations

from attrs import frozen

from simulator.steps import Moment
from simulator.store.host import Moment as Instant
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
class Reassign:
    """Move partitions to new replicas; None cancels."""

    targets: tuple[tuple[str, tuple[int, ...] | None], ...]


@frozen
class DeleteTopic:
    """Delete a topic, through the api or by a marker in the store; with `again`, create it anew as soon as that goes.

    `again` are the replicas of each partition of its namesake, which is asked for until the old one is gone.
    """

    name: str
    by_hand: bool = False
    again: tuple[tuple[int, ...], ...] = ()


@frozen
class Grow:
    """Let a topic have so many partitions in all."""

    topic: str
    partitions: int


@frozen
class Elect:
    """Elect leaders of the partitions named, or of all; `by_hand` by the znode of Kafka's old tool, preferred ones.

    With `orders`, the replicas of these partitions are put into an order, be it one of theirs or not.
    """

    kind: ElectionType
    partitions: tuple[str, ...] | None
    by_hand: bool = False
    orders: tuple[tuple[str, tuple[int, ...]], ...] = ()


@frozen
class NameLeader:
    """Put the replicas of partitions into another order: the one at `place`, as they stand then, is to lead."""

    partitions: tuple[str, ...]
    place: int


@frozen
class Alter:
    """Give a topic a setting, all brokers by default without a name; None takes it away again."""

    topic: str
    setting: str
    value: str | None


Request = CreateTopic | Reassign | DeleteTopic | Grow | Elect | NameLeader | Alter


# --- what brokers write in the store ----------------------------------------------------------------------------


@frozen
class NotifyIsrChange:
    """A notification says that the ISRs of partitions changed, be it so or not."""

    partitions: tuple[str, ...]


@frozen
class NotifyLogDir:
    """A notification says that a broker lost a log directory, be it so or not."""

    broker: int


Notification = NotifyIsrChange | NotifyLogDir


# --- faults, which are over after `lasts` -----------------------------------------------------------------------


@frozen
class Crash:
    """A process dies, and is started again; with `wipe`, on an empty disk, a broker with `moves` on another port.

    The store notices when the session times out, or with `noticed` at once.
    """

    who: Who
    lasts: float
    wipe: bool = False
    noticed: bool = False
    moves: bool = False


@frozen
class CancelAfterFailover:
    """The controller dies in the middle of phase B, and the next one is asked to cancel what has not ended.

    It is asked by hand in the store before it is in office, or else through the api: then the brokers of the target
    die too, without which it would have gone on before anybody could ask.
    """

    by_hand: bool
    lasts: float


@frozen
class Stop:
    """A process ends in good order, a broker by a controlled shutdown, and is started again so long after that."""

    who: Who
    lasts: float
    moves: bool = False


@frozen
class FailLogDir:
    """A broker cannot use a log directory any more, all of them with None. It is started anew when that is mended."""

    who: Who
    directory: int | None
    lasts: float


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
    | CancelAfterFailover
    | Stop
    | FailLogDir
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
Action = Request | Notification | Fault

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
