"""Draws the faults of a random run."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import define, evolve, field

from simulator.actions.network import BreakConnections, Heal, Isolate, Slow
from simulator.actions.processes import Crash, FailDisk, MendDisk, Pause, Restart, Skew, Start, Wake
from simulator.actions.requests import AlterTopic, Elect, Reassign
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME, Node, Request, Strike
from simulator.actions.sessions import AtCommit, Depose, Disconnect, Expire, Lag, Reconnect, SlowStore
from simulator.random_run.happenings import AtStep, Happening, InTurn, Lasting, Leave
from simulator.random_run.requests import elsewhere
from simulator.random_run.skews import pick, skewed
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment
from simulator.store.host import Moment as Instant
from transport.dynamic_configs import UNCLEAN_LEADER_ELECTION_ENABLE
from transport.messages import ElectionType

_ENDS: Final = (
    ("U1", Moment.COMMITTED),
    ("U1", Moment.PUBLISHED),
    ("A1", Moment.COMMITTED),
    ("ISR", Moment.COMMITTED),
    ("ISR", Moment.PUBLISHED),
    ("B3", Moment.COMMITTED),
    ("B4", Moment.COMMITTED),
    ("B4", Moment.PUBLISHED),
    ("B6", Moment.COMMITTED),
)
"""The rounds of a reassignment, each with a moment that shows it."""

_OTHER_ENDS: Final = (
    ("elect", Moment.COMMITTED),
    ("leave", Moment.COMMITTED),
    ("create", Moment.COMMITTED),
    ("adopt", Moment.PUBLISHED),
    ("resend", Moment.PUBLISHED),
    ("metadata", Moment.PUBLISHED),
    ("strays", Moment.PUBLISHED),
    ("deleted", Moment.COMMITTED),
    ("configs", Moment.COMMITTED),
    ("shutting down", Moment.DECIDED),
    ("B6", Moment.PUBLISHED),
)

_ENDS_OF_DELETION: Final = (
    ("mark", Moment.COMMITTED),
    ("delete", Moment.PUBLISHED),
    ("stop", Moment.PUBLISHED),
    ("remove", Moment.COMMITTED),
)
"""The rounds of a topic's deletion, each with its last visible moment."""

_INSTANTS: Final[tuple[Instant, ...]] = ("before", "after")

_STALLED: Final = 20.0
"""Bytes per second."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a handful of faults of all kinds for the time until `seconds`."""
    maker = _Maker(rng, settings, list(partitions))
    return [maker.fault(rng.uniform(0.0, seconds - 2)) for _ in range(rng.randint(2, 8))]


def draw_crashes_in_moves(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw moves, and crashes of the controller at one of their rounds."""
    happenings: list[Happening] = []
    for _ in range(rng.randint(1, 3)):
        at, name, (end, moment) = (
            rng.uniform(0.5, seconds - 3),
            rng.choice(list(partitions)),
            rng.choice(_ENDS),
        )
        crash = Lasting(Crash(CONTROLLER), rng.uniform(0.5, 6.0), (Start(SAME),))
        happenings.append(Happening(at, AtStep(end, moment, rng.choice((0.0, 0.0, 0.005))), crash))
        happenings.append(Happening(at, None, Reassign({name: elsewhere(rng, settings, partitions[name])})))
    return happenings


def draw_step(rng: random.Random) -> AtStep:
    """Draw a moment of a round, mostly of a reassignment's."""
    ends = rng.choices((_ENDS, _OTHER_ENDS, _ENDS_OF_DELETION), (80, 10, 10))[0]
    name, end = rng.choice(ends)
    moment = rng.choice((Moment.DECIDED, *[end] * 4))
    return AtStep(name, moment, rng.choice((0.0, 0.0, rng.uniform(0.0, 0.01))))


def draw_optional_step(rng: random.Random, chance: float) -> AtStep | None:
    """Draw a moment of a round with this chance, or None."""
    return draw_step(rng) if rng.random() < chance else None


def draw_kinds(
    rng: random.Random,
    kinds: Sequence[tuple[float, Callable[[], Strike]]],
    seconds: float,
    counts: tuple[int, int],
    chance_at_step: float,
) -> list[Happening]:
    """Draw faults of some kinds, with skewed weights, for the time until `seconds`; `counts` bound their number."""
    what = skewed(rng, kinds)
    happenings = []
    for _ in range(rng.randint(*counts)):
        at = rng.uniform(0.0, seconds - 2)
        step = draw_optional_step(rng, chance_at_step)
        happenings.append(Happening(at, step, pick(rng, what)()))
    return happenings


def draw_in_commits(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw ends of sessions and connections in the middle of commits."""
    maker = _Maker(rng, settings, list(partitions))
    return [Happening(rng.uniform(0.0, seconds - 2), None, maker.in_commit()) for _ in range(rng.randint(1, 4))]


def draw_calamity(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw crashes of a partition's replicas one after the other, and the requests that administrators then make."""
    del settings
    at = rng.uniform(0.0, seconds / 2)
    name = rng.choice(list(partitions))
    happenings = []
    for _ in partitions[name]:
        crash = Lasting(Crash(LEADER_OF + name, noticed=True), rng.uniform(3.0, 15.0), (Start(SAME),))
        happenings.append(Happening(at, None, crash))
        at += rng.uniform(0.2, 2.0)
    survivor = rng.choice(partitions[name])
    asked: list[Request] = [Reassign({name: (survivor,)}), Elect(ElectionType.UNCLEAN, (name,))]
    asked.append(AlterTopic({name.rpartition("-")[0]: {UNCLEAN_LEADER_ELECTION_ENABLE: "true"}}))
    for request in rng.sample(asked, rng.randint(1, 3)):
        happenings.append(Happening(at, None, request))
        at += rng.uniform(0.0, 6.0)
    return happenings


@define
class _Maker:
    rng: random.Random
    settings: Settings
    partitions: Sequence[str]
    _when: Sequence[tuple[float, str]] = field(init=False)
    _what: Sequence[tuple[float, Callable[[], Strike]]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        times = ((6, "crash at a step"), (1, "deposed at a step"), (4, "at a step"), (12, "at a time"))
        self._when = skewed(self.rng, times)
        self._what = skewed(self.rng, self._kinds())

    def fault(self, at: float) -> Happening:
        """Return a fault at that time, or at the first matching step after it."""
        rng = self.rng
        kind = pick(rng, self._when)
        if kind == "crash at a step":
            return Happening(at, draw_step(rng), Lasting(Crash(CONTROLLER), self._time(), (Start(SAME),)))
        if kind == "deposed at a step":
            return Happening(at, draw_step(rng), self._depose())
        if kind == "at a step":
            action = rng.choice((self._pause(CONTROLLER), self._disconnect(CONTROLLER), self._any()))
            return Happening(at, draw_step(rng), action)
        return Happening(at, None, self._any())

    def _any(self) -> Strike:
        return pick(self.rng, self._what)()

    def _kinds(self) -> tuple[tuple[float, Callable[[], Strike]], ...]:
        return (
            (4, self._crash),
            (1, self._stop),
            (1, self._fail_disk),
            (2, lambda: self._pause(self._anyone())),
            (3, self._session),
            (4, self.in_commit),
            (1, self._depose),
            (3, self._isolate),
            (2, self._break),
            (3, self._slow),
            (1, self._lag),
            (1, self._skew),
        )

    def _crash(self) -> Strike:
        wipe = self.rng.random() < 0.1  # noqa: PLR2004  rare
        who = self._leader() if self.rng.random() < 0.6 else self._anyone()  # noqa: PLR2004  often
        noticed, moves = self.rng.random() < 0.3, self.rng.random() < 0.2  # noqa: PLR2004
        return Lasting(Crash(who, noticed), self._time(), (Start(SAME, wipe, moves),))

    def _stop(self) -> Strike:
        who = self._leader() if self.rng.random() < 0.6 else self._anyone()  # noqa: PLR2004  often
        return Leave(who, self._time(), self.rng.random() < 0.2)  # noqa: PLR2004

    def _fail_disk(self) -> Strike:
        fault = FailDisk(self._leader(), self.rng.choice((None, 0, 1)))
        return Lasting(fault, self._time(), (MendDisk(SAME), Restart(SAME)))

    def _pause(self, who: Node) -> Strike:
        return Lasting(Pause(who), self._time(), (Wake(SAME),))

    def _disconnect(self, who: Node) -> Strike:
        return Lasting(Disconnect(who), self._time(), (Reconnect(SAME),))

    def _session(self) -> Strike:
        if self.rng.random() < 0.4:  # noqa: PLR2004
            return Expire(self._anyone())
        return self._disconnect(self._anyone())

    def in_commit(self) -> Strike:
        """Return the end of a session or a connection in the middle of a commit."""
        instant = self.rng.choice(_INSTANTS)
        who = CONTROLLER if self.rng.random() < 0.8 else self._anyone()  # noqa: PLR2004  brokers commit rarely
        if self.rng.random() < 0.7:  # noqa: PLR2004
            return AtCommit(who, instant, (Expire(SAME),))
        return AtCommit(who, instant, (self._disconnect(SAME),))

    def _depose(self) -> Strike:
        # Shorter than the session timeout, so that the session survives.
        pause = self.settings.session_timeout * self.rng.choice((0.0, 0.1, 0.5))
        return InTurn((Lasting(Pause(CONTROLLER), pause, (Wake(SAME),)), Depose())) if pause else Depose()

    def _isolate(self) -> Strike:
        nodes = self._nodes()
        some = tuple(self.rng.sample(nodes, self.rng.choice((1, 1, 2))))
        rest = tuple(node for node in nodes if node not in some)
        others = rest if self.rng.random() < 0.5 else tuple(self.rng.sample(rest, 1))  # noqa: PLR2004
        one_way = self.rng.random() < 0.5  # noqa: PLR2004
        return Lasting(Isolate(some, others, one_way), self._time(), (Heal(),))

    def _break(self) -> BreakConnections:
        return BreakConnections(self.rng.sample(self._nodes(), 2))

    def _slow(self) -> Strike:
        if self.rng.random() < 0.3:  # noqa: PLR2004
            return self._slow_store(2.0)
        source, destination = self.rng.sample(self._nodes(), 2)
        latency = self.rng.choice((0.001, 0.1, 1.0))
        slow = Slow(source, latency, self.rng.choice((_STALLED, 2_000.0)), destination, one_way=True)
        return Lasting(slow, self._time(), (evolve(slow, bytes_per_second=None),))

    def _slow_store(self, most: float) -> Strike:
        slow = SlowStore({self._anyone(): self.rng.uniform(0.05, most)})
        return Lasting(slow, self._time(), (SlowStore({SAME: None}),))

    def _lag(self) -> Strike:
        if self.settings.servers == 1:
            return self._slow_store(1.0)
        server, seconds = self.rng.randint(2, self.settings.servers), self.rng.uniform(0.1, 2.0)
        return Lasting(Lag({server: seconds}), self._time(), (Lag({server: 0.0}),))

    def _skew(self) -> Skew:
        return Skew({self._anyone(): self.rng.choice((-3600.0, -1.5, 1.5, 3600.0))})

    def _anyone(self) -> Node:
        draws = (CONTROLLER, self.rng.choice(self._nodes()), self.rng.choice(self._nodes()), self._leader())
        return self.rng.choice(draws)

    def _leader(self) -> str:
        return LEADER_OF + self.rng.choice(self.partitions)

    def _nodes(self) -> list[int]:
        return [*self.settings.broker_ids, *self.settings.controller_ids]

    def _time(self) -> float:
        return self.rng.choice((0.5, 4.0, 12.0)) * self.rng.uniform(0.5, 1.5)
