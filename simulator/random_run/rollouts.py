"""Draws rollouts, with what operators, other administrators and failures do to them in the middle.

Most of it hits the partitions of one topic, which nothing else in the run touches: so it is known which of them still
wait, and an administrator can move just these.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from controller.rollout.adapting import FIRST, LEAST
from simulator.actions.processes import Crash, LimitDisks, ResumeFetching, Start, StopFetching
from simulator.actions.requests import CreateTopic, DeleteTopic, Produce, Reassign
from simulator.actions.rollouts import OrderRollout, StartRollout
from simulator.actions.scene import CONTROLLER, SAME, Action
from simulator.actions.signals import BreakPage, MendPage, RemoveFile, TouchFile
from simulator.random_run import rollout_rows
from simulator.random_run.happenings import AtStep, Happening, InTurn, Lasting, Replace
from simulator.random_run.requests import elsewhere
from simulator.random_run.topology import Replicas, draw_replicas
from simulator.settings import Settings
from simulator.steps import Moment
from transport.messages import UNLIMITED, UNTHROTTLED, RolloutOrder

_ROUNDS: Final = ("marks", "rollouts", "U1", "ISR", "B6")
_ORDERS: Final = (RolloutOrder.PAUSE, RolloutOrder.RESUME, RolloutOrder.ABORT, RolloutOrder.UNDO)

_CHANCE_AT_STEP: Final = 0.5
_CHANCE_OF_A_RESUME: Final = 0.5
_CHANCE_OF_A_PAUSE: Final = 0.5
_CHANCE_OF_AN_UNDO: Final = 0.6
_CHANCE_OF_A_LATE_UNDO: Final = 0.3
_CHANCE_OF_MOVES_BY_HAND: Final = 0.5
_CHANCE_OF_A_SIGNAL: Final = 0.3
_CHANCE_OF_ANOTHER: Final = 0.3
_CHANCE_OF_A_PAGE: Final = 0.25
_CHANCE_OF_ADAPTING: Final = 0.3
_CHANCE_OF_LITTLE_ROOM: Final = 0.25

_CHANCE_OF_DAMAGED_ROWS: Final = 0.35
_CHANCE_OF_CLOSED_ROWS: Final = 0.3
_CHANCE_OF_NO_THROTTLE: Final = 0.2

_MANY: Final = 3

_ROOM: Final = (1_000, 2_000, 2_000, 3_000, 4_000, 10_000)
"""Bytes that are free on a disk: the replicas of plans have 1,000 each."""


@frozen
class _Drawn:
    """A rollout that moves the partitions of a topic, until some second of the run."""

    rng: random.Random
    settings: Settings
    topic: CreateTopic
    targets: Mapping[str, Replicas]
    at: float
    seconds: float

    @property
    def name(self) -> str:
        """Its name is that of its topic."""
        return self.topic.name

    def order(self, order: RolloutOrder) -> OrderRollout:
        """Return an order to it."""
        return OrderRollout(self.name, order)

    def later(self) -> float:
        """Draw a time in it."""
        return self.rng.uniform(self.at, self.seconds - 1)


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a topic that is moved by a rollout in small steps, and what happens to both until `seconds`."""
    del partitions
    topic, factor = f"rolled{rng.randrange(1000)}", rng.choice((1, 2, 2))
    rows = tuple(draw_replicas(rng, settings.broker_ids, factor) for _ in range(rng.randint(4, 12)))
    targets = {f"{topic}-{n}": elsewhere(rng, settings, row) for n, row in enumerate(rows)}
    drawn = _Drawn(rng, settings, CreateTopic(topic, rows), targets, rng.uniform(0.6, 2.0), seconds)
    happenings = [Happening(rng.uniform(0.1, 0.5), None, drawn.topic), *_troubles(drawn)]
    start = _start(rng, drawn.name, targets)
    if rng.random() < _CHANCE_OF_MOVES_BY_HAND:
        start = evolve(start, in_all=1)
        happenings += _moves_by_hand(drawn)
    if rng.random() < _CHANCE_OF_A_SIGNAL:
        start = evolve(start, pause_file=f"/run/{drawn.name}")
        happenings += _signals(drawn, start.pause_file)
    if rng.random() < _CHANCE_OF_ANOTHER:
        happenings += _another(drawn)
    if rng.random() < _CHANCE_OF_A_LATE_UNDO:
        # Once the faults are over, it comes to its end.
        happenings.append(Happening(seconds - 0.1, None, drawn.order(RolloutOrder.UNDO)))
    # What follows has a generator of its own, so that all else is as it would be without it.
    start, troubles = _with_rows(drawn, start)
    happenings += troubles
    drawn = evolve(drawn, rng=random.Random(f"{drawn.name} at {drawn.at}"))
    if drawn.rng.random() < _CHANCE_OF_LITTLE_ROOM:
        return [happenings[0], *_with_little_room(drawn, start)]
    if drawn.rng.random() < _CHANCE_OF_A_PAGE:
        start = evolve(start, go_url=f"http://go/{drawn.name}")
        happenings += _pages(drawn, start.go_url)
    if drawn.rng.random() < _CHANCE_OF_ADAPTING:
        start = evolve(start, throttle=drawn.rng.choice((FIRST, 2 * LEAST)), adapts=True)
        happenings += _slow_copies(drawn)
    return [*happenings, Happening(drawn.at, None, start)]


def _with_rows(drawn: _Drawn, start: StartRollout) -> tuple[StartRollout, list[Happening]]:
    """Draw rows that make no sense or are closed, with a generator of their own; a closed throttle is needed."""
    rng, found = random.Random(f"rows of {drawn.name} at {drawn.at}"), list[Happening]()
    if rng.random() < _CHANCE_OF_DAMAGED_ROWS:
        found += rollout_rows.draw(rng, drawn.name, drawn.at, drawn.seconds)
    if rng.random() < _CHANCE_OF_CLOSED_ROWS:
        found += rollout_rows.draw_closed(rng, drawn.name, drawn.at, drawn.seconds)
    if rng.random() < _CHANCE_OF_NO_THROTTLE:
        start = evolve(start, throttle=FIRST)
        found += rollout_rows.draw_unthrottled(rng, drawn.settings.broker_ids, drawn.at)
    return start, found


def _with_little_room(drawn: _Drawn, start: StartRollout) -> Iterator[Happening]:
    """Draw a rollout that finds disks with room for a few replicas at once, or none; nothing else happens to it."""
    yield Happening(drawn.at, None, evolve(start, into=_MANY, out_of=_MANY, leaders=_MANY, in_all=2 * _MANY))
    yield from _slow_copies(drawn)
    for at in (0.0, drawn.at + drawn.rng.uniform(5.0, 8.0)):
        free = {id_: drawn.rng.choice(_ROOM) for id_ in drawn.settings.broker_ids}
        yield Happening(at, None, LimitDisks(free))


def _start(rng: random.Random, name: str, targets: Mapping[str, Replicas]) -> StartRollout:
    limits = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 4)
    throttle, most_bytes = rng.choice((UNTHROTTLED, 10_000_000)), rng.choice((UNLIMITED, UNLIMITED, 1_500, 4_000))
    return StartRollout(name, targets, *limits, throttle, most_bytes)


def _troubles(drawn: _Drawn) -> Iterator[Happening]:
    rng = drawn.rng
    for _ in range(rng.randint(1, 5)):
        step = AtStep(rng.choice(_ROUNDS), rng.choice((Moment.DECIDED, Moment.COMMITTED)))
        yield Happening(drawn.later(), step if rng.random() < _CHANCE_AT_STEP else None, _trouble(drawn))
    if rng.random() < _CHANCE_OF_A_RESUME:
        yield Happening(drawn.seconds - 0.5, None, drawn.order(RolloutOrder.RESUME))


def _trouble(drawn: _Drawn) -> Action:
    rng, settings = drawn.rng, drawn.settings
    name = rng.choice(sorted(drawn.targets))
    return rng.choice(
        (
            drawn.order(rng.choice(_ORDERS)),
            drawn.order(rng.choice(_ORDERS)),
            drawn.order(rng.choice((*_ORDERS, RolloutOrder.REMOVE))),
            _change(rng, drawn.name),
            Reassign({name: elsewhere(rng, settings, drawn.targets[name])}),
            rng.choice((DeleteTopic(drawn.topic.name), Replace(drawn.topic, by_hand=rng.random() < 0.5))),  # noqa: PLR2004
            Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.5, 4.0), (Start(SAME),)),
            Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.5, 4.0), (Start(SAME),)),
            Lasting(Crash(rng.choice(settings.broker_ids), noticed=True), rng.uniform(0.5, 4.0), (Start(SAME),)),
        )
    )


def _change(rng: random.Random, name: str) -> OrderRollout:
    """Draw other limits, and perhaps another throttle."""
    limits = {what: rng.randint(1, 3) for what in rng.sample(("into", "out_of", "leaders", "in_all"), 2)}
    throttle = rng.choice((None, None, 5_000_000, UNTHROTTLED))
    return OrderRollout(name, RolloutOrder.SET, **limits, throttle=throttle)


def _moves_by_hand(drawn: _Drawn) -> Iterator[Happening]:
    """Draw moves by hand, there and back again, of partitions that wait and of those that were moved first.

    Nothing that is seen of these partitions later says that somebody has moved them.
    """
    rng, names = drawn.rng, list(drawn.targets)
    waiting = rng.sample(names[len(names) // 2 :], rng.randint(1, 2))
    begin = drawn.at + rng.choice((0.1, 0.5, 2.0)) * rng.random()
    if rng.random() < _CHANCE_OF_A_PAUSE:
        yield Happening(drawn.at + 0.05, None, drawn.order(RolloutOrder.PAUSE))
        yield Happening(begin + rng.uniform(1.0, 5.0), None, drawn.order(RolloutOrder.RESUME))
    for name in waiting:
        row = drawn.topic.assignment[names.index(name)]
        yield from _there_and_back(drawn, name, row, begin)
    first = names[rng.randrange(2)]
    yield from _there_and_back(drawn, first, drawn.targets[first], begin + rng.uniform(1.0, 4.0))
    if rng.random() < _CHANCE_OF_AN_UNDO:
        yield Happening(rng.uniform(begin + 1.0, drawn.seconds), None, drawn.order(RolloutOrder.UNDO))


def _there_and_back(drawn: _Drawn, name: str, home: Replicas, at: float) -> Iterator[Happening]:
    there = _other(drawn.rng, drawn.settings.broker_ids, (home, drawn.targets[name]))
    yield Happening(at, None, Reassign({name: there}))
    yield Happening(at + drawn.rng.uniform(0.2, 2.0), None, Reassign({name: home}))


def _other(rng: random.Random, brokers: Replicas, known: Sequence[Replicas]) -> Replicas:
    """Draw as many brokers as in rows that are known, other than in these."""
    while (row := draw_replicas(rng, brokers, len(known[0]))) in known:
        continue
    return row


def _signals(drawn: _Drawn, path: str) -> Iterator[Happening]:
    """Draw how long the file exists that holds a rollout up: until the end at most."""
    at = drawn.later()
    yield Happening(at, None, TouchFile(path))
    yield Happening(at + drawn.rng.uniform(0.5, 8.0), None, RemoveFile(path))


def _pages(drawn: _Drawn, url: str) -> Iterator[Happening]:
    """Draw when the page does not say yes: before the first move or later, and until the end at most."""
    at = drawn.rng.choice((0.0, drawn.later()))
    yield Happening(at, None, BreakPage(url, silent=drawn.rng.random() < 0.3))  # noqa: PLR2004
    yield Happening(at + drawn.rng.uniform(0.5, 12.0), None, MendPage(url))


def _slow_copies(drawn: _Drawn) -> Iterator[Happening]:
    """Draw moves that stay in flight until the controller has looked at how brokers do, and at their disks."""
    names, brokers = tuple(sorted(drawn.targets)), drawn.settings.broker_ids
    # Without records, a replica that fetches nothing lacks nothing.
    yield Happening(drawn.at - 0.1, None, Produce(dict.fromkeys(names, 2)))
    yield Happening(drawn.at - 0.01, None, InTurn(tuple(StopFetching({id_: names}) for id_ in brokers)))
    end = drawn.at + drawn.rng.uniform(5.5, 9.0)
    yield Happening(end, None, InTurn(tuple(ResumeFetching({id_: names}) for id_ in brokers)))


def _another(drawn: _Drawn) -> Iterator[Happening]:
    """Draw another rollout of partitions of the same topic, which has to wait for the first one."""
    rng, name = drawn.rng, f"{drawn.name}-again"
    some = rng.sample(sorted(drawn.targets), rng.randint(1, len(drawn.targets)))
    targets = {each: elsewhere(rng, drawn.settings, drawn.targets[each]) for each in some}
    yield Happening(drawn.at + rng.uniform(0.0, 3.0), None, _start(rng, name, targets))
    if rng.random() < _CHANCE_OF_AN_UNDO:
        yield Happening(drawn.later(), None, OrderRollout(name, rng.choice(_ORDERS)))
